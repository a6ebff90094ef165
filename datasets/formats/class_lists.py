"""Names of classes from the files that formats without names in them come with: YAML, lists, colour tables."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

import yaml

from aiplatform.lib.wording import Worded
from datasets.formats.listing import Listing
from datasets.formats.problems import Problems

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
_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # of libyaml where it is installed
_YAML_EVENTS = 100_000
_YAML_TAGS = {"tag:yaml.org,2002:str", "tag:yaml.org,2002:seq", "tag:yaml.org,2002:map"}
_YAML_NESTING = 64  # lists and objects within one another
Colour = tuple[int, int, int]


@dataclass(slots=True)
class ClassNames:
    """Names by index or by colour, and the files they come from."""

    by_index: dict[int, str] = field(default_factory=dict)
    by_colour: dict[Colour, str] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)


def read_lists(listing: Listing, problems: Problems) -> ClassNames:
    """Read names from the first list: a name per line, the first line is index 0. An empty line keeps its index."""
    result = ClassNames()
    candidates = [
        name for name in listing.files if PurePosixPath(name).name.casefold() in LISTS or name.endswith(".names")
    ]
    for name in sorted(candidates, key=lambda name: (name.count("/"), name)):
        lines = _text(listing, name, problems).splitlines()
        names = {index: line.strip() for index, line in enumerate(lines) if line.strip()}
        if not names or len(names) > MAX_CLASSES:
            continue
        result.files.append(name)
        if not result.by_index:
            result.by_index = names
    return result


def read_color_tables(listing: Listing, problems: Problems) -> ClassNames:
    """Read names from a color table: CVAT's `labelmap.txt` (name:r,g,b:…) or a CSV with name, r, g, b."""
    result = ClassNames()
    for name in listing.files:
        base = PurePosixPath(name).name.casefold()
        if base in {"labelmap.txt", "label_colors.txt", "label_map.txt"}:
            table = _labelmap(_text(listing, name, problems))
        elif base in {"class_dict.csv", "classes.csv", "_classes.csv", "labels.csv", "colormap.csv"}:
            table = _colour_csv(_text(listing, name, problems))
        else:
            continue
        if table and not result.by_colour:
            result.by_colour = table
            result.files.append(name)
    return result


def _labelmap(text: str) -> dict[Colour, str]:
    table: dict[Colour, str] = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        if ":" in line:  # CVAT: name:r,g,b:parts:actions
            name, _colon, rest = line.partition(":")
            channels = rest.partition(":")[0].split(",")
        else:  # CamVid: r g b name
            *channels, name = line.split() or [""]
        if name.strip() and (colour := _colour(channels)):
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


def _colour(channels: list[str]) -> Colour | None:
    numbers = [int(word) for word in map(str.strip, channels) if word.isdigit()]
    return (numbers[0], numbers[1], numbers[2]) if len(numbers) == 3 and max(numbers) < 256 else None


def yaml_object(listing: Listing, name: str, problems: Problems | None = None) -> dict[str, Any] | None:
    """A small YAML file as an object whose scalars are all texts ("yes", "1"); None for anything else.

    An alias is the node it names and is not expanded, so a file cannot grow. What is nested deeper than the data of a
    YOLO file, or belongs to a tag, is left out.
    """
    text = _text(listing, name, problems)
    depth = 0
    try:
        for count, event in enumerate(yaml.parse(text, Loader=_LOADER)):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if count > _YAML_EVENTS or depth > _YAML_NESTING:
                return None
        node = yaml.compose(text, Loader=_LOADER)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    return _plain(node)


def _plain(node: yaml.Node | None) -> dict[str, Any] | None:
    """Scalars, lists and objects of scalars by the keys of the document; anything deeper is left out."""
    if not isinstance(node, yaml.MappingNode):
        return None
    read: dict[int, Any] = {}  # an alias gives the value of its node
    for _key, value in node.value:
        if id(value) in read or value.tag not in _YAML_TAGS:
            continue
        if isinstance(value, yaml.ScalarNode):
            read[id(value)] = value.value
        elif isinstance(value, yaml.SequenceNode):
            read[id(value)] = [entry.value for entry in value.value if isinstance(entry, yaml.ScalarNode)]
        elif isinstance(value, yaml.MappingNode):
            pairs = [(key, entry) for key, entry in value.value if isinstance(key, yaml.ScalarNode)]
            read[id(value)] = {key.value: entry.value for key, entry in pairs if isinstance(entry, yaml.ScalarNode)}
    pairs = [(key, value) for key, value in node.value if isinstance(key, yaml.ScalarNode)]
    return {key.value: read[id(value)] for key, value in pairs if id(value) in read}


def yaml_names(data: dict[str, Any]) -> dict[int, str] | None:
    """Return the `names` of a YOLO data set, a list or an object of indices; None without any."""
    names = data.get("names")
    if isinstance(names, list):
        names = dict(enumerate(names))
    if not isinstance(names, dict) or not names or len(names) > MAX_CLASSES:
        return None
    by_index: dict[int, str] = {}
    for key, name in names.items():
        number = str(key).strip()
        if not number.isascii() or not number.isdecimal() or len(number) > 6 or not isinstance(name, str):
            return None
        if name.strip():
            by_index[int(number)] = name.strip()
    return by_index


def _text(listing: Listing, name: str, problems: Problems | None) -> str:
    """The text of a list; "" where it cannot be read, which is reported."""
    try:
        return listing.text(name, problems, max_bytes=MAX_BYTES)
    except Worded as exc:
        if problems is not None:
            problems.add(name, "unreadable", exc.worded)
    except OSError:
        pass
    return ""
