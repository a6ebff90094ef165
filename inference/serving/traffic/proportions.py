"""Failure rates estimated from counts of failures among requests."""

from __future__ import annotations

import math

EXPECTED = 0.05  # how far shares of failures lie apart, where they do


def interval(count: int, total: int, z: float = 1.96) -> tuple[float, float]:
    """Bounds of a proportion at 95 %: E. B. Wilson, 1927, "Probable inference, the law of succession …"."""
    if not total:
        return 0.0, 1.0
    share = count / total
    middle = (share + z * z / (2 * total)) / (1 + z * z / total)
    half = z / (1 + z * z / total) * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    return max(0.0, middle - half), min(1.0, middle + half)


def is_more(count: int, total: int, than_count: int, than_total: int, error: float = 0.01) -> bool:
    """Whether the first proportion is higher than the second, however often one asks while counts grow.

    A mixture sequential probability ratio test: of two equal proportions at most `error` of all that are watched for
    ever are called different. Johari, Koomen, Pekelis, Walsh: "Peeking at A/B tests", KDD 2017, with a normal mixture
    of deviation `EXPECTED`.
    """
    if not total or not than_total:
        return False
    pooled = (count + than_count) / (total + than_total)
    variance = pooled * (1 - pooled) * (1 / total + 1 / than_total)
    more = count / total - than_count / than_total
    if variance <= 0 or more <= 0:
        return False
    both = variance + EXPECTED**2
    log_ratio = 0.5 * math.log(variance / both) + EXPECTED**2 * more**2 / (2 * variance * both)
    return log_ratio > -math.log(error)
