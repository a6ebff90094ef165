"""Ids and numbers in addresses: those that no row can have answer 404, or count as not given."""

from __future__ import annotations

from collections.abc import Mapping

from django.http import Http404

MAX_ID = 2**63 - 1  # of a row's id, in every database we speak to


def require_possible(named: Mapping[str, object]) -> None:
    """Refuse ids beyond what the database can hold, which would be an error there.

    Raises:
        Http404: one is larger than any id.
    """
    for value in named.values():
        digits = str(value)
        if digits.isdecimal() and (len(digits) > 19 or int(digits) > MAX_ID):
            raise Http404


def number(text: str) -> int | None:
    """Return a text of 1 to 18 plain digits as a number; None for any other, such as "²" or 5,000 digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None
