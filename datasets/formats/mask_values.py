"""Which class the values of masks mean where the masks of a set differ: palettes, colours, numbers of 8 and 16 bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from aiplatform.lib.wording import message
from datasets.formats import class_lists
from datasets.formats.class_lists import ClassNames, Colour
from datasets.formats.listing import Listing
from datasets.formats.problems import Problems

Value = int | Colour


@dataclass(slots=True)
class Content:
    """The values of one mask.

    Args:
        values: colours of a mask in colour, else numbers; without the background.
        palette: colours of the numbers, where the mask has a palette.
        is_wide: the numbers have 16 bits or more.
        classes: value → what it means in the whole set, see `unify`.
    """

    values: Sequence[Value]
    palette: Mapping[int, Colour] = field(default_factory=dict)
    is_wide: bool = False
    classes: Mapping[Value, Value] = field(init=False)

    def __post_init__(self) -> None:
        self.classes = {value: value for value in self.values}

    @property
    def has_colours(self) -> bool:
        return any(isinstance(value, tuple) for value in self.values)

    @property
    def has_coloured_palette(self) -> bool:
        """Whether the palette is more than the numbers as shades of gray."""
        return any(len(set(colour)) > 1 for colour in self.palette.values())

    @property
    def numbers(self) -> set[int]:
        return {value for value in self.values if isinstance(value, int)}


def palette(flat: Sequence[int]) -> dict[int, Colour]:
    """Index → colour of a palette as Pillow has it."""
    return {index: (flat[3 * index], flat[3 * index + 1], flat[3 * index + 2]) for index in range(len(flat) // 3)}


def unify(contents: Sequence[Content], listing: Listing, problems: Problems) -> ClassNames:
    """Give values of all masks of a set one meaning, report what remains doubtful, and return the names of values.

    Where masks in colour are there, or where palettes contradict each other and no list names the numbers, a mask with
    a palette means the colours of its own palette. Otherwise its numbers count.
    """
    table = class_lists.read_color_tables(listing, problems)
    common, conflict = _common(contents)
    colours = any(content.has_colours for content in contents)
    names = table if table.by_colour else ClassNames()
    if not table.by_colour and not colours:
        names = class_lists.read_lists(listing, problems)
    by_colour = colours or (conflict and not names.by_index)
    if conflict:
        report = problems.note if by_colour else problems.add
        report("", "other_palettes", message("report.palette_colours" if by_colour else "report.palette_numbers"))
    for content in contents:
        if by_colour:
            content.classes = {value: _colour(content, value) for value in content.values}
    if table.by_colour and not conflict:
        names.by_index = {
            index: table.by_colour[colour] for index, colour in common.items() if colour in table.by_colour
        }
    _report_mixture(contents, names, problems)
    return names


def _colour(content: Content, value: Value) -> Value:
    colour = content.palette.get(value) if isinstance(value, int) and content.has_coloured_palette else None
    return colour if colour and any(colour) else value


def _common(contents: Sequence[Content]) -> tuple[dict[int, Colour], bool]:
    """The palettes of all masks in one, and whether a number that masks use has two colours."""
    common: dict[int, Colour] = {}
    used: dict[int, Colour] = {}
    conflict = False
    for content in contents:
        for index in content.numbers & content.palette.keys() if content.has_coloured_palette else ():
            conflict = conflict or used.setdefault(index, content.palette[index]) != content.palette[index]
        for index, colour in content.palette.items():
            common.setdefault(index, colour)
    return common, conflict


def _report_mixture(contents: Sequence[Content], names: ClassNames, problems: Problems) -> None:
    """Report masks of numbers mixed with colors, and of 8 bits mixed with 16: they may mean the same classes."""
    meant = {value for content in contents for value in content.classes.values()}
    numbers = {value for value in meant if isinstance(value, int)} - names.by_index.keys()
    wide = {value for content in contents if content.is_wide for value in content.numbers} & numbers
    narrow = {value for content in contents if not content.is_wide for value in content.numbers} & numbers
    if numbers and len(meant) > len([value for value in meant if isinstance(value, int)]):
        problems.add("", "mixed_masks", message("report.colours_and_numbers"))
    elif wide and narrow and not wide & narrow:
        problems.add("", "mixed_masks", message("report.narrow_and_wide"))
