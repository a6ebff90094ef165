"""Run the probes in every setting that this machine offers and write the grid: `python -m tests.isolation`."""

from __future__ import annotations

from tests.isolation import grid


def main() -> None:
    table = grid.drawn({setting: grid.run(setting) for setting in grid.offered()})
    before, _begin, rest = grid.PAGE.read_text().partition(grid.BEGIN)
    _old, _end, after = rest.partition(grid.END)
    grid.PAGE.write_text(f"{before}{grid.BEGIN}\n{table}\n{grid.END}{after}")
    print(table)


if __name__ == "__main__":
    main()
