"""Leaks: images to score on that are also learned from, found by their content."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any

from datasets.formats.neutral import SPLITS


def between(contents: Iterable[Mapping[str, int]]) -> list[dict[str, Any]]:
    """Count the leaks between splits, the largest first.

    Args:
        contents: per content, how many images of each split ("" without one) hold it.

    Returns:
        [{"of", "also", "images", "total"}]: so many of the `total` images of split `of` stand in `also` too.
    """
    leaked: Counter[tuple[str, str]] = Counter()
    total: Counter[str] = Counter()
    for splits in contents:
        total.update(splits)
        named = [split for split in SPLITS if splits.get(split)]
        for also, of in combinations(named, 2):
            leaked[of, also] += splits[of]
    return [
        {"of": of, "also": also, "images": images, "total": total[of]}
        for (of, also), images in sorted(leaked.items(), key=lambda item: -item[1])
    ]
