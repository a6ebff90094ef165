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

MAX_USERS = 1000
MAX_NAMES_SHOWN = 10  # names of an error; the rest is a number
_BETWEEN = re.compile(r"[\s,;，；、]+")


class PeopleInput(forms.Textarea):
    """Usernames as text; a script makes it a search with one tag per person (base/people.js)."""

    def __init__(self, *, max_count: int) -> None:
        super().__init__(
            {
                "rows": 1 if max_count == 1 else 3,
                "autocomplete": "off",
                "autocapitalize": "none",
                "spellcheck": "false",
                "data-people": reverse_lazy("accounts:people-find"),
                "data-most": max_count,
            }
        )

    def format_value(self, value: Any) -> str:
        """Return the usernames of accounts, or the typed text unchanged."""
        if value is None or isinstance(value, str):
            return value or ""
        return ", ".join(person.username for person in value)


class PeopleField(forms.CharField):
    """Usernames between spaces, commas or lines; cleaned to accounts, each once, in the order they were named.

    Args:
        among: accounts that may be named; all others are reported as unknown.
        most: how many at once, at most 1,000.
    """

    def __init__(self, *, among: QuerySet[User] | None = None, max_count: int = MAX_USERS, **kwargs: Any) -> None:
        self.among = User.objects.none() if among is None else among
        self.most = max_count
        if max_count > 1:
            kwargs.setdefault(
                "help_text",
                gettext_lazy("Search by name, or paste usernames separated by spaces, commas or line breaks."),
            )
        super().__init__(widget=PeopleInput(max_count=max_count), max_length=max_count * 52, **kwargs)

    def clean(self, value: Any) -> list[User]:
        names = {name.lower(): name for name in _BETWEEN.split(super().clean(value) or "") if name}
        if len(names) > self.most:
            text = ngettext("Enter only one user.", "Enter at most %(most)s users at once.", self.most)
            raise forms.ValidationError(text % {"most": self.most})
        people = {person.username.lower(): person for person in _with_usernames(self.among, names)}
        if missing := [name for key, name in names.items() if key not in people]:
            raise forms.ValidationError(_unknown_names(missing))
        return [people[key] for key in names]


def _with_usernames(among: QuerySet[User], usernames: Mapping[str, str]) -> QuerySet[User]:
    """Return accounts with these usernames: in lower case, and as typed, since SQLite lowers ASCII only."""
    matches = Q(lower__in=list(usernames)) | Q(username__in=list(usernames.values()))
    return among.annotate(lower=Lower("username")).filter(matches)


def _unknown_names(missing: list[str]) -> str:
    """Return a message with the unknown names, so that all can be corrected at once."""
    names, more = ", ".join(f"“{name[:50]}”" for name in missing[:MAX_NAMES_SHOWN]), len(missing) - MAX_NAMES_SHOWN
    if more > 0:
        return _("No user is named %(names)s; %(n)s more of these names are also unknown.") % {
            "names": names,
            "n": more,
        }
    return _("No user is named %(names)s.") % {"names": names}
