"""CPU time of every parser of foreign bytes: `python -m tests.bench.parsers [--short] [NAME …]`.

For each entry of tests/growth: its worst input, the largest size that is measured, CPU time at three sizes and the
exponent of the growth. Parsers that read more than that at once are marked with the size that they take.
"""

from __future__ import annotations

import argparse
import os

import django

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
        rows.append((worst, one.limit))
    rows.sort(key=lambda row: -row[0].seconds[-1])
    print(
        f"{'parser':<26} {'worst input':<24} {'limit':>12} "
        + " ".join(f"{f'1/{4 >> n}':>9}" for n in range(3))
        + "  exponent"
    )
    for growth, limit in rows:
        times = " ".join(f"{seconds * 1000:6.1f} ms" for seconds in growth.seconds[-3:])
        name = growth.input.strip() or "spaces"
        print(f"{growth.parser:<26} {name:<24} {limit:>12,} {times}  {growth.exponent:.2f}  of {growth.sizes[-1]:,} B")
    steepest = max(growth.exponent for growth, _limit in rows)
    over = sum(growth.seconds[-1] * 1000 > WEB_BUDGET_MS for growth, _limit in rows)
    print(
        f"{len(rows)} parsers, steepest exponent {steepest:.2f}; above {WEB_BUDGET_MS} ms at the largest size: {over}"
    )


if __name__ == "__main__":
    main()
