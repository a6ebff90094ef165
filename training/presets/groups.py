"""Images that belong together, and parts of a dataset that divide no such group. Standard library only.

Photographs of one patient, frames of one film: learned from and scored on, they flatter. A group is found by the path
of an image; groups are dealt out so that every part gets its share of each class, as far as groups allow.
"""

from __future__ import annotations

import hashlib
import json
import re
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence

FOLDER = "folder"
MAX_LENGTH = 200  # characters of a pattern
MAX_DURATION_S = 20  # of a processor that a pattern may take for all images


class NoGroups(ValueError):
    """Images cannot be grouped in this way; the message states the reason."""


def names(paths: Sequence[str], group_by: str) -> list[str]:
    """The group of each image.

    A regular expression is matched by a process of its own: on some paths some expressions take for ever.

    Raises:
        NoGroups: see `name_for`; or it takes too long.
    """
    if group_by in ("", FOLDER):
        return [name_for(path, group_by) for path in paths]
    command = [sys.executable, "-IWignore", __file__, group_by, str(MAX_DURATION_S)]
    done = subprocess.run(command, input=json.dumps(paths), capture_output=True, text=True, check=False)  # noqa: S603  ourselves
    if done.returncode < 0:  # the kernel ended it
        raise NoGroups(
            f"group_by takes more than {MAX_DURATION_S} seconds to find the groups of {len(paths)} images. Choose an "
            "expression that repeats nothing that itself repeats."
        )
    if done.returncode:
        raise NoGroups(done.stderr.strip())
    return list(json.loads(done.stdout))


def name_for(path: str, group_by: str) -> str:
    """Return the group of an image: its folder, or a match in its path; with "" each image is its own group.

    Raises:
        NoGroups: the expression is wrong, or finds nothing in this path.
    """
    if not group_by:
        return path
    if group_by == FOLDER:
        return path.rpartition("/")[0]
    try:
        match = re.search(group_by, path)
    except (re.error, OverflowError, RecursionError) as error:
        raise NoGroups(f"group_by is no regular expression: {error}.") from error
    if match is None or (match.re.groups and match[1] is None):
        raise NoGroups(f"group_by finds nothing in {path}. It must say of every image which group it belongs to.")
    return str(match[1] if match.re.groups else match[0])


def parts(images: Sequence[tuple[str, Iterable[int]]], count: int) -> list[int]:
    """Return the part of each image, 1 to `count`.

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
        best = min(range(count), key=lambda index: (costs[index], filled[index][-1], index))
        filled[best].update(held[group])
        number_of[group] = best + 1
    return [number_of[group] for group, _classes in images]


def _main(group_by: str, most_s: str) -> int:
    """Print the groups of the paths on stdin; exit with code 1 and a message where a path has none."""
    resource.setrlimit(resource.RLIMIT_CPU, (int(most_s), int(most_s)))
    try:
        names = [name_for(path, group_by) for path in json.load(sys.stdin)]
    except NoGroups as error:
        sys.stderr.write(f"{error}\n")
        return 1
    json.dump(names, sys.stdout)
    return 0


if __name__ == "__main__":
    raise SystemExit(_main(*sys.argv[1:]))
