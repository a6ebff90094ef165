"""Colors of classes: the class at one place of the class list has the same color on every page and drawn image."""

from __future__ import annotations

#: The hues `--chart-1` to `--chart-16` of static/base/tokens.css, for images that are drawn without a style sheet.
PALETTE = (
    "#4353d6", "#0f8f86", "#d0741b", "#b8388a", "#5b8c1a", "#8757d6", "#2584c6", "#a3641f",
    "#e6194b", "#2e9e3e", "#d62bcd", "#808000", "#a88400", "#e0503f", "#008a98", "#9c1f4a",
)  # fmt: skip


def rgb_of(index: int) -> tuple[int, int, int]:
    """Return red, green and blue of the class at `index` of its list, from 0."""
    color = PALETTE[index % len(PALETTE)]
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)
