"""The field that names people: found by name, several at once, pasted by the hundred."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from django import forms
from django.db.models import Q, QuerySet
from django.db.models.functions import Lower
from django.urls import reverse_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.models import User

MOST = 1000
TOLD = 10  # names of an error; the rest is a number
_BETWEEN = re.compile(r"[\s,;，；、]+")


class PeopleInput(forms.Textarea):
    """Usernames as text; a script makes it a search with one tag per person (base/people.js)."""

    def __init__(self, *, most: int) -> None:
        super().__init__(
            {
                "rows": 1 if most == 1 else 3,
                "autocomplete": "off",
                "autocapitalize": "none",
                "spellcheck": "false",
                "data-people": reverse_lazy("accounts:people-find"),
                "data-most": most,
            }
        )

    def format_value(self, value: Any) -> str:
        """The usernames of accounts, or what was typed as it stands."""
        if value is None or isinstance(value, str):
            return value or ""
        return ", ".join(person.username for person in value)


class PeopleField(forms.CharField):
    """Usernames between spaces, commas or lines; cleaned to accounts, each once, in the order they were named.

    Args:
        among: accounts that may be named; to all others the field says that nobody is called so.
        most: how many at once, at most 1,000.
    """

    def __init__(self, *, among: QuerySet[User] | None = None, most: int = MOST, **kwargs: Any) -> None:
        self.among = User.objects.none() if among is None else among
        self.most = most
        if most > 1:
            kwargs.setdefault(
                "help_text", gettext_lazy("Search by name, or paste usernames: with spaces, commas or lines between.")
            )
        super().__init__(widget=PeopleInput(most=most), max_length=most * 52, **kwargs)

    def clean(self, value: Any) -> list[User]:
        asked = {name.lower(): name for name in _BETWEEN.split(super().clean(value) or "") if name}
        if len(asked) > self.most:
            said = ngettext("Name one person only.", "Name at most %(most)s people at once.", self.most)
            raise forms.ValidationError(said % {"most": self.most})
        found = {person.username.lower(): person for person in _called(self.among, asked)}
        if missing := [name for key, name in asked.items() if key not in found]:
            raise forms.ValidationError(_nobody(missing))
        return [found[key] for key in asked]


def _called(among: QuerySet[User], asked: Mapping[str, str]) -> QuerySet[User]:
    """Accounts with these usernames: in lower case, and as typed, since SQLite lowers ASCII only."""
    names = Q(lower__in=list(asked)) | Q(username__in=list(asked.values()))
    return among.annotate(lower=Lower("username")).filter(names)


def _nobody(missing: list[str]) -> str:
    """A sentence with the names that nobody has, so that all can be mended at one go."""
    names, more = ", ".join(f"“{name[:50]}”" for name in missing[:TOLD]), len(missing) - TOLD
    if more > 0:
        return _("Nobody is called %(names)s, nor by %(n)s more of these names.") % {"names": names, "n": more}
    return _("Nobody is called %(names)s.") % {"names": names}
