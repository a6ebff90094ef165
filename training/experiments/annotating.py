"""What people say of runs: tags, notes, stars, archiving, who may see them; and saved views of the table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.errors import DomainError, Invalid, NameTaken, NotFound, Refusals
from training.experiments import records, table
from training.experiments.models import Run, Star, Tag, View, Visibility

MAX_AT_ONCE = 1000
MAX_TAGS = 50
MAX_NOTES_LENGTH = 20_000
MAX_VIEWS = 200
_TAG = re.compile(r"[\w][\w .:/@+-]{0,99}\Z")


class TooMany(DomainError, code="too_many"):
    """No more of them are kept."""


@dataclass(frozen=True)
class Change:
    """A change of runs; None leaves a value unchanged."""

    add_tags: Iterable[str] = ()
    drop_tags: Iterable[str] = ()
    star: bool | None = None
    archived: bool | None = None
    visibility: str | None = None
    notes: str | None = None
    experiment: str | None = None

    @property
    def is_of_owner(self) -> bool:
        """Whether it changes the run itself, not only the reader's star."""
        values = (self.archived, self.visibility, self.notes, self.experiment)
        return bool([*self.add_tags, *self.drop_tags]) or any(value is not None for value in values)


def change(user: User, numbers: Iterable[int], changes: Change) -> list[Run]:
    """Apply the changes to all of these runs, or to none.

    Raises:
        Invalid: a tag, a note or a word that is none; more than a thousand runs.
        NotFound: one of them is not there for this person, or is not theirs to change.
    """
    wanted = list(dict.fromkeys(numbers))
    if not 0 < len(wanted) <= MAX_AT_ONCE:
        message = _("Select 1 to %(limit)s runs.") % {"limit": MAX_AT_ONCE}
        raise Invalid(message, field="runs")
    tags = _checked(changes)
    with transaction.atomic():
        rows = Run.objects.visible_to(user)
        if changes.is_of_owner:
            rows = rows.editable_by(user)
        by_number = rows.in_bulk(wanted)
        if missing := [number for number in wanted if number not in by_number]:
            raise NotFound(_("You have no run %(numbers)s.") % {"numbers": ", ".join(map(str, missing[:20]))})
        runs = [by_number[number] for number in wanted]
        if tags:
            full = [run for run in runs if len({row.key for row in run.tags.all()} | set(tags)) > MAX_TAGS]
            if full:
                text = _("%(name)s would have more than %(limit)s tags.") % {"name": full[0], "limit": MAX_TAGS}
                raise Invalid(text, field="add_tags")
            for run in runs:
                records.set_tags(run, tags)
        Tag.objects.filter(run__in=wanted, key__in=[tag.partition("=")[0] for tag in changes.drop_tags]).delete()
        if changes.star is True:
            Star.objects.bulk_create((Star(run=run, user=user) for run in runs), ignore_conflicts=True)
        elif changes.star is False:
            Star.objects.filter(run__in=wanted, user=user).delete()
        names = ("archived", "visibility", "notes", "experiment")
        columns = {name: value for name in names if (value := getattr(changes, name)) is not None}
        if columns:
            Run.objects.filter(pk__in=wanted).update(**columns)
            for run in runs:
                for name, value in columns.items():
                    setattr(run, name, value)
    return runs


def _checked(changes: Change) -> dict[str, str]:
    refusals, tags = Refusals(), {}
    for text in changes.add_tags:
        key, _equals, value = text.strip().partition("=")
        with refusals:
            if not _TAG.match(key) or len(value) > 500:
                rule = _(
                    "“%(tag)s” is not a valid tag: use letters, digits, spaces and _ . : / @ + -, at most 100 "
                    "characters."
                )
                raise Invalid(rule % {"tag": text[:40]}, field="add_tags")
            tags[key] = value
    with refusals:
        if changes.visibility is not None and changes.visibility not in Visibility.values:
            choices = ", ".join(Visibility.values)
            text = _("%(name)s must be one of %(words)s.") % {"name": "visibility", "words": choices}
            raise Invalid(text, field="visibility")
    with refusals:
        if changes.notes is not None and len(changes.notes) > MAX_NOTES_LENGTH:
            text = _("The notes are longer than %(limit)s characters.") % {"limit": MAX_NOTES_LENGTH}
            raise Invalid(text, field="notes")
    with refusals:
        if changes.experiment is not None and len(changes.experiment) > 100:
            raise Invalid(_("The name of an experiment can have at most 100 characters."), field="experiment")
    refusals.end()
    return tags


def save_view(
    user: User, *, name: str, query: Mapping[str, Any], visibility: str = Visibility.PRIVATE, view: View | None = None
) -> View:
    """Save the filter, columns, order and grouping of the table under a name, or change a view.

    Raises:
        Invalid: the filter or the order cannot be read, or a word is none.
        NameTaken: another view of theirs has this name.
        TooMany: they keep two hundred views already.
    """
    stored_query = _query(user, query)
    if not name.strip():
        raise Invalid(_("Enter a name for the view."), field="name")
    if visibility not in Visibility.values:
        text = _("%(name)s must be one of %(words)s.") % {"name": "visibility", "words": ", ".join(Visibility.values)}
        raise Invalid(text, field="visibility")
    if view is None and View.objects.filter(owner=user).count() >= MAX_VIEWS:
        message = _("You have %(limit)s views. Delete one that you no longer need.") % {"limit": MAX_VIEWS}
        raise TooMany(message)
    row = view or View(owner=user)
    row.name, row.query, row.visibility = name.strip()[:60], stored_query, visibility
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:
        raise NameTaken(_("You already have a view with this name. Choose another name, or edit that view.")) from None
    return row


def _query(user: User, query: Mapping[str, Any]) -> dict[str, Any]:
    """Return a query in stored form; it is evaluated once, so that no invalid view is saved."""
    stored: dict[str, Any] = {
        "filter": str(query.get("filter") or ""),
        "columns": [str(name) for name in query.get("columns") or ()],
        "sort": str(query.get("sort") or ""),
        "group": [str(name) for name in query.get("group") or ()],
        "archived": bool(query.get("archived")),
    }
    table.check(user, text=stored["filter"], columns=[*stored["columns"], *stored["group"]], sort=stored["sort"])
    return stored
