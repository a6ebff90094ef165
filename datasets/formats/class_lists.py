"""Names of classes from the files that formats without names in them come with: YAML, lists, colour tables."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from datasets.formats.listing import Listing

MAX_BYTES = 1 << 20
MAX_CLASSES = 10_000
LISTS = (
    "classes.txt",
    "obj.names",
    "labels.txt",
    "class_names.txt",
    "names.txt",
    "predefined_classes.txt",
    "codes.txt",
)
_YAML_EVENTS = 100_000
Colour = tuple[int, int, int]


@dataclass(slots=True)
class ClassNames:
    """Names by index or by colour, and the files they come from."""

    by_index: dict[int, str] = field(default_factory=dict)
    by_colour: dict[Colour, str] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)


def listed(listing: Listing) -> ClassNames:
    """Names from the first list there is: a name per line, the first line is index 0."""
    found = ClassNames()
    candidates = [
        name for name in listing.files if PurePosixPath(name).name.casefold() in LISTS or name.endswith(".names")
    ]
    for name in sorted(candidates, key=lambda name: (name.count("/"), name)):
        lines = _text(listing.root / name).splitlines()
        names = [line.strip() for line in lines if line.strip()]
        if not names or len(names) > MAX_CLASSES:
            continue
        found.files.append(name)
        if not found.by_index:
            found.by_index = dict(enumerate(names))
    return found


def coloured(listing: Listing) -> ClassNames:
    """Names from a colour table: CVAT's `labelmap.txt` (name:r,g,b:…) or a CSV with name, r, g, b."""
    found = ClassNames()
    for name in listing.files:
        base = PurePosixPath(name).name.casefold()
        if base in {"labelmap.txt", "label_colors.txt", "label_map.txt"}:
            table = _labelmap(_text(listing.root / name))
        elif base in {"class_dict.csv", "classes.csv", "_classes.csv", "labels.csv", "colormap.csv"}:
            table = _colour_csv(_text(listing.root / name))
        else:
            continue
        if table and not found.by_colour:
            found.by_colour = table
            found.files.append(name)
    return found


def _labelmap(text: str) -> dict[Colour, str]:
    table: dict[Colour, str] = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        if ":" in line:  # CVAT: name:r,g,b:parts:actions
            name, _colon, rest = line.partition(":")
            words = rest.partition(":")[0].split(",")
        else:  # CamVid: r g b name
            *words, name = line.split() or [""]
        if name.strip() and (colour := _colour(words)):
            table[colour] = name.strip()
    return table


def _colour_csv(text: str) -> dict[Colour, str]:
    table: dict[Colour, str] = {}
    try:
        for row in csv.DictReader(text.splitlines()):
            low = {str(key).strip().casefold(): str(value).strip() for key, value in row.items()}
            name = low.get("name") or low.get("class") or low.get("label") or ""
            if name and (colour := _colour([low.get("r", ""), low.get("g", ""), low.get("b", "")])):
                table[colour] = name
    except csv.Error:
        return {}
    return table


def _colour(words: list[str]) -> Colour | None:
    numbers = [int(word) for word in map(str.strip, words) if word.isdigit()]
    return (numbers[0], numbers[1], numbers[2]) if len(numbers) == 3 and max(numbers) < 256 else None


def yaml_object(path: Path) -> dict[str, Any] | None:
    """A small YAML file as an object; None for anything else.

    Aliases are refused: a few lines of them unpack to more than there is memory. So is what is no plain data.
    """
    text = _text(path)
    try:
        for count, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
            if isinstance(event, yaml.AliasEvent) or count > _YAML_EVENTS:
                return None
        data = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def yaml_names(data: dict[str, Any]) -> dict[int, str] | None:
    """The `names` of a YOLO data set: a list, or an object of indices; None where there are none."""
    names = data.get("names")
    if isinstance(names, list):
        names = dict(enumerate(names))
    if not isinstance(names, dict) or not names or len(names) > MAX_CLASSES:
        return None
    found: dict[int, str] = {}
    for key, name in names.items():
        if isinstance(key, bool) or not isinstance(key, int) or not 0 <= key < 1_000_000:
            return None
        found[key] = str(name)
    return found


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_BYTES:
            return ""
        return path.read_bytes().decode("utf-8-sig", "replace")
    except OSError:
        return ""
