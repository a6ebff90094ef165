"""Where the tiles of an image lie."""

from __future__ import annotations

STEP = 4  # px: tiles begin at multiples of it, so that their maps, of cells of 1, 2 or 4 px, lie upon each other


def grid(width: int, height: int, tile: tuple[int, int], overlap: float) -> list[tuple[int, int]]:
    """Left and top of the tiles that cover an image, row by row; neighbours share at least `overlap` of a side.

    The last ones may reach beyond the image by less than STEP.

    Args:
        tile: width and height in pixels; an image that is smaller has a single tile, which reaches beyond it.
    """
    across, down = (_starts(size, side, overlap) for size, side in zip((width, height), tile, strict=True))
    return [(left, top) for top in down for left in across]


def _starts(size: int, side: int, overlap: float) -> list[int]:
    if size <= side:
        return [0]
    distance = -(-(size - side) // STEP)
    steps = -(-distance // max(1, int(side * (1 - overlap) / STEP)))
    return [STEP * round(step * distance / steps) for step in range(steps + 1)]
