"""Choose among files of one name: the one whose folder is nearest to another folder. No Django."""

from __future__ import annotations

from collections.abc import Sequence

from datasets.formats.problems import natural


def nearest(paths: Sequence[str], folder: str) -> str:
    """The path whose folders have most in common with `folder`; the shallower, then the first by name among equals."""
    if len(paths) == 1:
        return paths[0]
    wanted = [] if folder in {"", "."} else folder.split("/")

    def distance(path: str) -> tuple[int, int, list[tuple[int, int, str]]]:
        parts = path.split("/")[:-1]
        shared = 0
        for mine, theirs in zip(parts, wanted, strict=False):
            if mine != theirs:
                break
            shared += 1
        same_words = len(set(parts[shared:]) & set(wanted[shared:]))
        return len(parts) + len(wanted) - 2 * shared - 2 * same_words, len(parts), natural(path)

    return min(paths, key=distance)
