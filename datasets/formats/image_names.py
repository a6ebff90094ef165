"""How annotation files name images: paths of another computer, addresses, another case, encoding or ending."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import unquote

from aiplatform.lib.wording import Message, message
from datasets.formats.file_kinds import IMAGE_SUFFIXES
from datasets.formats.problems import Problems

#: How a path is looked up by a name that differs from it.
KEYS: dict[str, Callable[[str], str]] = {
    "path": lambda path: path,
    "case": lambda path: PurePosixPath(path).name.casefold(),
    "escape": lambda path: unescaped(PurePosixPath(path).name),
    "stem": lambda path: stem_of(PurePosixPath(path).name),
    "exact stem": lambda path: PurePosixPath(path).stem,
}

MAX_PLACES = 5  # images that a report names where several have one name
_FALLBACKS = {
    "suffix": "report.matched_suffix",
    "case": "report.matched_case",
    "escape": "report.matched_escape",
    "stem": "report.matched_stem",
    "prefix": "report.matched_prefix",
}


@dataclass(frozen=True, slots=True)
class Match:
    """The image that an annotation file means by a name.

    Args:
        source: its path; None where no image fits, or several do and none fits better.
        tied: the images that fit equally well where `source` is None.
        by: in what it differs: "suffix" (only the end of its path is the same), "case", "escape", "stem", "prefix"; ""
            in nothing.
        count: images that fit equally well, of which the nearest was chosen.
    """

    source: str | None
    by: str = ""
    count: int = 1
    tied: tuple[str, ...] = ()

    def report(self, problems: Problems, where: str, name: str, missing: Message | None = None) -> None:
        """Report that a fallback was used, that a choice was made, or why no image was found.

        Args:
            missing: what is reported where no image has the name; None reports nothing then.
        """
        if self.tied:
            report_tie(problems, where, name, self.tied)
        elif self.source is None:
            if missing is not None:
                problems.add(where, "missing_image", missing)
        elif self.count > 1:
            text = message("report.several_images", count=self.count, name=name, image=self.source)
            problems.add(where, "several_images", text)
        elif self.by:
            problems.note(where, f"matched_{self.by}", message(_FALLBACKS[self.by], name=name, image=self.source))


def report_tie(problems: Problems, where: str, name: str, images: Sequence[str]) -> None:
    """Report a name that several images have of which none is nearer, with their places."""
    places = ", ".join(images[:MAX_PLACES]) + (", …" if len(images) > MAX_PLACES else "")
    problems.add(
        where, "ambiguous_image", message("report.ambiguous_image", count=len(images), name=name, places=places)
    )


def key_function(what: str) -> Callable[[str], str]:
    """How paths are looked up: a name of `KEYS`, or "last N" for the last N parts."""
    word, _space, count = what.partition(" ")
    if word == "last":
        return lambda path: last_parts(path.split("/"), int(count))
    return KEYS[what]


def last_parts(parts: list[str], count: int) -> str:
    """The last parts of a path as it is compared: folders in any case, the name as it is. "" where there are fewer."""
    if count > len(parts):
        return ""
    return "/".join([*map(str.casefold, parts[-count:-1]), parts[-1]])


def plain(name: str) -> str:
    """A path with "/" and without what leads out of the data: a scheme with its host, a drive, "..", a query."""
    text = unicodedata.normalize("NFC", name.replace("\\", "/"))
    scheme, mark, rest = text.partition("://")
    if mark and scheme.isalnum():
        text = unquote(rest.partition("?")[0].partition("#")[0].partition("/")[2])
    parts = [part for part in text.split("/") if part not in {"", ".", ".."}]
    if parts and len(parts[0]) == 2 and parts[0][1] == ":":
        parts = parts[1:]
    return "/".join(parts)


def unescaped(name: str) -> str:
    return unquote(name).casefold()


def stem_of(name: str) -> str:
    pure = PurePosixPath(unquote(name))
    return (pure.stem if pure.suffix.lower() in IMAGE_SUFFIXES else pure.name).casefold()


def longest_suffix(paths: list[str], wanted: str) -> tuple[list[str], int]:
    """Those of `paths` that share the most last parts with `wanted`, and how many these are (at least 1)."""
    parts = wanted.split("/")

    def shared(path: str) -> int:
        count = 1  # the last part fits already, in whatever way
        for mine, theirs in zip(reversed(path.split("/")[:-1]), reversed(parts[:-1]), strict=False):
            if mine.casefold() != theirs.casefold():
                break
            count += 1
        return count

    lengths = {path: shared(path) for path in paths}
    longest = max(lengths.values())
    return [path for path in paths if lengths[path] == longest], longest
