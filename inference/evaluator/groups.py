"""Images that belong together, and parts of a dataset that divide no such group. Standard library only.

Photographs of one patient, frames of one film: learned from and scored on, they flatter. A group is found by the path
of an image; groups are dealt out so that every part gets its share of each class, as far as groups allow.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence

FOLDER = "folder"
LONGEST = 200  # characters of a pattern


class NoGroups(ValueError):
    """Images cannot be told apart in this way; the message says why."""


def of(path: str, group_by: str) -> str:
    """The group of an image: its folder, or what a regular expression finds in its path; "" makes each one its own.

    Raises:
        NoGroups: the expression is wrong, or finds nothing in this path.
    """
    if not group_by:
        return path
    if group_by == FOLDER:
        return path.rpartition("/")[0]
    try:
        found = re.search(group_by, path)
    except re.error as error:
        raise NoGroups(f"group_by is no regular expression: {error}.") from error
    if found is None or (found.re.groups and found[1] is None):
        raise NoGroups(f"group_by finds nothing in {path}. It must say of every image which group it belongs to.")
    return str(found[1] if found.re.groups else found[0])


def parts(images: Sequence[tuple[str, Iterable[int]]], count: int) -> list[int]:
    """The part of each image, 1 to `count`.

    The groups that weigh most come first, each into the part that has least of what it holds. That keeps the squares
    of the shares small, and so their variance between the parts.

    Args:
        images: group and classes of each.

    Raises:
        NoGroups: fewer groups than parts, or groups that are the classes.
    """
    held: dict[str, Counter[int]] = {}
    for group, classes in images:
        held.setdefault(group, Counter()).update([-1, *sorted(set(classes))])  # -1: the image itself
    if len(held) < count:
        raise NoGroups(f"{len(held)} groups are too few for {count} folds: each needs one to score on.")
    total: Counter[int] = sum(held.values(), Counter())
    once = all(sum(kind in mine for mine in held.values()) == 1 for kind in total if kind != -1)
    if once and len(total) > 2 and len(held) > 1:
        raise NoGroups("Every class lies in one group alone, so none could be learned where it is scored on.")
    weight = {kind: 1 / number**2 for kind, number in total.items()}
    size = {group: sum(number**2 * weight[kind] for kind, number in mine.items()) for group, mine in held.items()}
    order = sorted(held, key=lambda group: (-size[group], hashlib.sha256(group.encode()).hexdigest()))
    filled: list[Counter[int]] = [Counter() for _ in range(count)]
    number_of: dict[str, int] = {}
    for group in order:
        costs = [sum(n * part[kind] * weight[kind] for kind, n in held[group].items()) for part in filled]
        best = min(range(count), key=lambda place: (costs[place], filled[place][-1], place))
        filled[best].update(held[group])
        number_of[group] = best + 1
    return [number_of[group] for group, _classes in images]
