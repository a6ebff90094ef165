"""CPU time of every parser of foreign bytes: `python -m tests.bench.parsers [--short] [NAME …]`.

For each entry of tests/growth: its worst input, the largest size that is measured, CPU time at three sizes and the
exponent of the growth. "runs in" says where the product calls it: in a web process, or in a job, a worker or a process
of its own. "at limit" is the time of the largest input that is taken, by the growth from the largest measured one; a
parser that stops at another limit before, such as a count, takes less.
"""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

import django

if TYPE_CHECKING:
    from tests.growth.measuring import Growth

os.environ.setdefault("AIP_BOOTSTRAP", "0")
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "aiplatform.settings")

WEB_BUDGET_MS = 50


def main() -> None:
    """Measure and print one line a parser, the slowest first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of names; all without")
    parser.add_argument("--short", action="store_true", help="an eighth of the size")
    asked = parser.parse_args()
    django.setup()
    from tests.growth import measuring, registry

    largest = measuring.LARGEST // 8 if asked.short else measuring.LARGEST
    rows = []
    for one in registry.load().values():
        if asked.names and not any(name in one.name for name in asked.names):
            continue
        worst = max(
            (measuring.measure(one, kind, largest) for kind in one.inputs), key=lambda growth: growth.seconds[-1]
        )
        rows.append((worst, one))
    rows.sort(key=lambda row: -row[0].seconds[-1])
    print(
        f"{'parser':<26} {'runs in':<7} {'worst input':<24} {'limit':>14} "
        + " ".join(f"{f'1/{4 >> n}':>9}" for n in range(3))
        + "   at limit  exponent"
    )
    for growth, one in rows:
        times = " ".join(f"{seconds * 1000:6.1f} ms" for seconds in growth.seconds[-3:])
        name = growth.input.strip() or "spaces"
        print(
            f"{growth.parser:<26} {one.runs_in:<7} {name:<24} {one.limit:>14,} {times}"
            f" {at_limit(growth, one.limit):>7.0f} ms  {growth.exponent:.2f}  of {growth.sizes[-1]:,} B"
        )
    steepest = max(growth.exponent for growth, _one in rows)
    slow = [one.runs_in for growth, one in rows if growth.seconds[-1] * 1000 > WEB_BUDGET_MS]
    print(
        f"{len(rows)} parsers, steepest exponent {steepest:.2f}; above {WEB_BUDGET_MS} ms at the largest size: "
        f"{slow.count('web')} in web processes, {slow.count('job')} in jobs"
    )


def at_limit(growth: Growth, limit: int) -> float:
    """Milliseconds at the limit, if the time grows on as at the end; linearly where it was too short to tell."""
    power = max(0.0, growth.exponent) if growth.exponent else 1.0
    return growth.seconds[-1] * 1000 * max(1, limit / growth.sizes[-1]) ** power


if __name__ == "__main__":
    main()
