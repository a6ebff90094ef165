"""Ids in addresses: those that no row can have answer 404."""

from __future__ import annotations

from collections.abc import Mapping

from django.http import Http404

LARGEST = 2**63 - 1  # of a row's id, in every database we speak to


def require_possible(named: Mapping[str, object]) -> None:
    """Refuse ids beyond what the database can hold, which would be an error there.

    Raises:
        Http404: one is larger than any id.
    """
    for value in named.values():
        digits = str(value)
        if digits.isdecimal() and (len(digits) > 19 or int(digits) > LARGEST):
            raise Http404
