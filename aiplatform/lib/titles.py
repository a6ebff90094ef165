"""Names that people give to their things: words in any script, as they would write them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

from django.core.validators import RegexValidator
from django.utils.text import slugify
from django.utils.translation import gettext_lazy as _

RULE = _(
    "Only letters, digits, spaces and _ . - + ( ); the first and last character must be a letter, a digit or a bracket."
)

#: Such a name can be a file name, a word on a command line between quotes, and stand before ":VERSION".
TITLE = RegexValidator(r"^[\w(](?:[\w .+()-]*[\w)+])?\Z", RULE)


def slug(name: str, fallback: str) -> str:
    """Return the name as a part of an address: lower-case ASCII letters, digits and dashes.

    Args:
        fallback: what it is where no letter of the name is ASCII.
    """
    return slugify(name) or fallback


def derive_name(*parts: str, taken: Iterable[str] = (), room: int) -> str:
    """Return a name made of `parts`, such as cells_detect, with a number appended if it is taken.

    Args:
        taken: names that are taken, in any case.
        room: how many characters it may have.
    """
    cleaned = [re.sub(r"[^\w.-]+", "_", part).strip("_.-") for part in parts]
    stem = "_".join(word for word in cleaned if word)[:room].rstrip("_.-") or "unnamed"
    folded = {name.casefold() for name in taken}
    if stem.casefold() not in folded:
        return stem
    for number in itertools.count(2):
        if (name := f"{stem[: room - 1 - len(str(number))]}_{number}").casefold() not in folded:
            return name
    raise AssertionError("numbers do not end")
