"""Deal images out to train, val and test: by ratios and a seed, evenly by class, scenes and equal files kept together.

Pure and repeatable: the same images, ratios and seed give the same splits on every machine.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import PurePosixPath
from typing import Any

from datasets.formats.neutral import SPLITS

#: The number at the end of a name, read backwards: "scene7_0012.png" and "scene7_0013.png" are images of "scene7".
#: A search for it from the front takes cubic time.
_COUNTER_REVERSED = re.compile(r"[\W_]*+\d*+[\W_]*+")


@dataclass(frozen=True, slots=True)
class Wish:
    """How to split.

    Args:
        train, val, test: percent; together 100.
        seed: another one gives another split.
        stratify: classes are spread as the ratios say, rare ones first.
        group: "folder" or "prefix" keeps images of one folder, or of one name before its number, together.
    """

    train: int = 80
    val: int = 10
    test: int = 10
    seed: int = 0
    stratify: bool = True
    group: str = ""

    @property
    def ratios(self) -> dict[str, float]:
        """Splits that get anything, with their share of 1."""
        return {split: getattr(self, split) / 100 for split in SPLITS if getattr(self, split)}

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Item:
    """An image as far as splitting asks."""

    path: str
    content: str  # hash of its bytes
    classes: Collection[int] = ()


def by_folder(path: str) -> str:
    return str(PurePosixPath(path).parent)


def by_prefix(path: str) -> str:
    """The name without its ending and without the number it ends with; folders count too."""
    name = PurePosixPath(path)
    counter = _COUNTER_REVERSED.match(name.stem[::-1])
    return str(name.with_name(name.stem[: len(name.stem) - (counter.end() if counter else 0)] or "#"))


GROUPS: Mapping[str, Callable[[str], str]] = {"folder": by_folder, "prefix": by_prefix}


@dataclass(slots=True)
class _Unit:
    """Images that go to the same split."""

    key: str
    paths: list[str] = field(default_factory=list)
    classes: Counter[int] = field(default_factory=Counter)  # class → images with the class


def deal(items: Iterable[Item], wish: Wish) -> dict[str, str]:
    """Path → split of every image."""
    units = _units(items, wish)
    units.sort(key=lambda unit: hashlib.sha256(f"{wish.seed}\0{unit.key}".encode()).digest())
    dealer = _Dealer(units, wish.ratios)
    if wish.stratify:
        dealer.deal_by_class()
    dealer.deal_the_rest()
    return {path: split for split, dealt in dealer.dealt.items() for unit in dealt for path in unit.paths}


def groups_of(items: Iterable[Item], wish: Wish) -> int:
    """How many bundles there are to deal out."""
    return len(_units(items, wish))


def _units(items: Iterable[Item], wish: Wish) -> list[_Unit]:
    """Bundle images that must stay together: equal files always, scenes if requested."""
    parents: dict[str, str] = {}

    def root(key: str) -> str:
        while (above := parents.setdefault(key, key)) != key:
            parents[key] = parents[above]
            key = above
        return key

    listed = list(items)
    scene = GROUPS.get(wish.group)
    for item in listed:
        parents[root(f"content:{item.content}")] = root(f"scene:{scene(item.path)}" if scene else f"path:{item.path}")
    units: dict[str, _Unit] = {}
    for item in listed:
        key = root(f"content:{item.content}")
        unit = units.setdefault(key, _Unit(key))
        unit.paths.append(item.path)
        unit.classes.update(set(item.classes))
    for unit in units.values():
        unit.key = min(unit.paths)  # the same in whatever order the images come
    return list(units.values())


class _Dealer:
    """Gives units to the split that still wants most; stratified as Sechidis et al. (2011) describe."""

    def __init__(self, units: list[_Unit], ratios: Mapping[str, float]) -> None:
        self.left = dict(enumerate(units))
        self.dealt: dict[str, list[_Unit]] = {split: [] for split in ratios}
        total = sum(len(unit.paths) for unit in units)
        per_class: Counter[int] = Counter()
        for unit in units:
            per_class.update(unit.classes)
        self.wanted = {split: share * total for split, share in ratios.items()}
        self.wanted_of = {
            split: {number: share * count for number, count in per_class.items()} for split, share in ratios.items()
        }

    def deal_by_class(self) -> None:
        """The rarest class of those left first, its units to the split that lacks it most."""
        with_class: dict[int, list[int]] = defaultdict(list)
        for number, unit in self.left.items():
            for class_id in unit.classes:
                with_class[class_id].append(number)
        open_units = {class_id: len(numbers) for class_id, numbers in with_class.items()}
        while any(open_units.values()):
            rarest = min((id_ for id_, count in open_units.items() if count), key=lambda id_: (open_units[id_], id_))
            for number in with_class[rarest]:
                if number in self.left:
                    for class_id in self.left[number].classes:
                        open_units[class_id] -= 1
                    self._assign(number, rarest)

    def deal_the_rest(self) -> None:
        for number in sorted(self.left, key=lambda number: -len(self.left[number].paths)):  # large bundles first
            self._assign(number, None)

    def _assign(self, number: int, class_id: int | None) -> None:
        unit = self.left.pop(number)
        split = max(
            self.dealt,
            key=lambda name: (
                self.wanted_of[name].get(class_id, 0.0) if class_id is not None else 0.0,
                self.wanted[name],
            ),
        )
        self.dealt[split].append(unit)
        self.wanted[split] -= len(unit.paths)
        for its_class, count in unit.classes.items():
            self.wanted_of[split][its_class] -= count
