"""What counts of failures among requests tell about how often they happen."""

from __future__ import annotations

import math


def interval(count: int, total: int, z: float = 1.96) -> tuple[float, float]:
    """Bounds of a proportion at 95 %: E. B. Wilson, 1927, "Probable inference, the law of succession …"."""
    if not total:
        return 0.0, 1.0
    share = count / total
    middle = (share + z * z / (2 * total)) / (1 + z * z / total)
    half = z / (1 + z * z / total) * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    return max(0.0, middle - half), min(1.0, middle + half)


def is_more(count: int, total: int, than_count: int, than_total: int, z: float = 2.33) -> bool:
    """Whether the first proportion is higher than the second: pooled two-proportion test, one-sided at 1 %."""
    if not total or not than_total:
        return False
    pooled = (count + than_count) / (total + than_total)
    spread = math.sqrt(pooled * (1 - pooled) * (1 / total + 1 / than_total))
    return spread > 0 and (count / total - than_count / than_total) / spread > z
