"""Numbers in addresses: what no row can be called is not there."""

from __future__ import annotations

from collections.abc import Mapping

from django.http import Http404

LARGEST = 2**63 - 1  # of a row's id, in every database we speak to


def require_possible(named: Mapping[str, object]) -> None:
    """Look at the numbers of an address before a database does, which answers a larger one with a fault of its own.

    Raises:
        Http404: one is larger than any id.
    """
    for value in named.values():
        digits = str(value)
        if digits.isdecimal() and (len(digits) > 19 or int(digits) > LARGEST):
            raise Http404
