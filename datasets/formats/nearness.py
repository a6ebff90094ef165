"""Choose among files of one name: the one whose folder is nearest to another folder. No Django."""

from __future__ import annotations

from collections.abc import Sequence

from datasets.formats.problems import natural


def nearest(paths: Sequence[str], folder: str) -> str:
    """The path whose folders have most in common with `folder`; the shallower, then the first by name among equals."""
    return all_nearest(paths, folder)[0]


def all_nearest(paths: Sequence[str], folder: str) -> list[str]:
    """All paths that are as near to `folder` as the nearest, the shallower first, then by name."""
    if len(paths) == 1:
        return list(paths)
    wanted = [] if folder in {"", "."} else folder.split("/")
    distances = {path: _distance(path.split("/")[:-1], wanted) for path in paths}
    least = min(distances.values())
    near = [path for path in paths if distances[path] == least]
    return sorted(near, key=lambda path: (path.count("/"), natural(path)))


def _distance(parts: list[str], wanted: list[str]) -> int:
    """How many folders differ; one that both have in another place counts for neither."""
    shared = 0
    for mine, theirs in zip(parts, wanted, strict=False):
        if mine != theirs:
            break
        shared += 1
    same_words = len(set(parts[shared:]) & set(wanted[shared:]))
    return len(parts) + len(wanted) - 2 * shared - 2 * same_words
