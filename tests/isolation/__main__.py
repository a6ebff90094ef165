"""Run the probes in every tier that this machine offers and write the grid: `python -m tests.isolation`."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from tests.isolation import grid


def main() -> None:
    found = {}
    for tier in grid.offered():
        with TemporaryDirectory() as folder:
            found[tier] = grid.run(tier, Path(folder) / "ground")
    table = grid.drawn(found)
    before, _begin, rest = grid.PAGE.read_text().partition(grid.BEGIN)
    _old, _end, after = rest.partition(grid.END)
    grid.PAGE.write_text(f"{before}{grid.BEGIN}\n{table}\n{grid.END}{after}")
    print(table)


if __name__ == "__main__":
    main()
