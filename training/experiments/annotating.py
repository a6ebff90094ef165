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

MOST_AT_ONCE = 1000
MOST_TAGS = 50
LONGEST_NOTES = 20_000
MOST_VIEWS = 200
_TAG = re.compile(r"[\w][\w .:/@+-]{0,99}\Z")


class TooMany(DomainError):
    """No more of them are kept."""

    code = "too_many"


@dataclass(frozen=True)
class Change:
    """What is to be said of runs; None leaves a thing as it is."""

    add_tags: Iterable[str] = ()
    drop_tags: Iterable[str] = ()
    star: bool | None = None
    archived: bool | None = None
    visibility: str | None = None
    notes: str | None = None
    experiment: str | None = None

    @property
    def is_of_owner(self) -> bool:
        """Whether it changes the run itself, not just the reader's star."""
        rest = (self.archived, self.visibility, self.notes, self.experiment)
        return bool([*self.add_tags, *self.drop_tags]) or any(one is not None for one in rest)


def change(user: User, numbers: Iterable[int], said: Change) -> list[Run]:
    """Say it of all these runs, or of none.

    Raises:
        Invalid: a tag, a note or a word that is none; more than a thousand runs.
        NotFound: one of them is not there for this person, or is not theirs to change.
    """
    wanted = list(dict.fromkeys(numbers))
    if not 0 < len(wanted) <= MOST_AT_ONCE:
        said_of = _("Choose from 1 to %(limit)s runs.") % {"limit": MOST_AT_ONCE}
        raise Invalid(said_of, field="runs")
    tags = _checked(said)
    with transaction.atomic():
        rows = Run.objects.visible_to(user)
        if said.is_of_owner:
            rows = rows.editable_by(user)
        found = rows.in_bulk(wanted)
        if missing := [number for number in wanted if number not in found]:
            raise NotFound(_("There is no run %(numbers)s of yours.") % {"numbers": ", ".join(map(str, missing[:20]))})
        runs = [found[number] for number in wanted]
        if tags:
            full = [run for run in runs if len({row.key for row in run.tags.all()} | set(tags)) > MOST_TAGS]
            if full:
                text = _("%(name)s would have more than %(limit)s tags.") % {"name": full[0], "limit": MOST_TAGS}
                raise Invalid(text, field="add_tags")
            for run in runs:
                records.set_tags(run, tags)
        Tag.objects.filter(run__in=wanted, key__in=[tag.partition("=")[0] for tag in said.drop_tags]).delete()
        if said.star is True:
            Star.objects.bulk_create((Star(run=run, user=user) for run in runs), ignore_conflicts=True)
        elif said.star is False:
            Star.objects.filter(run__in=wanted, user=user).delete()
        names = ("archived", "visibility", "notes", "experiment")
        columns = {name: value for name in names if (value := getattr(said, name)) is not None}
        if columns:
            Run.objects.filter(pk__in=wanted).update(**columns)
            for run in runs:
                for name, value in columns.items():
                    setattr(run, name, value)
    return runs


def _checked(said: Change) -> dict[str, str]:
    found, tags = Refusals(), {}
    for text in said.add_tags:
        key, _equals, value = text.strip().partition("=")
        with found:
            if not _TAG.match(key) or len(value) > 500:
                rule = _("“%(tag)s” is no tag: letters, digits, spaces and _ . : / @ + - only, at most 100 of them.")
                raise Invalid(rule % {"tag": text[:40]}, field="add_tags")
            tags[key] = value
    with found:
        if said.visibility is not None and said.visibility not in Visibility.values:
            words = ", ".join(Visibility.values)
            text = _("%(name)s is one of %(words)s.") % {"name": "visibility", "words": words}
            raise Invalid(text, field="visibility")
    with found:
        if said.notes is not None and len(said.notes) > LONGEST_NOTES:
            text = _("The notes are longer than %(limit)s characters.") % {"limit": LONGEST_NOTES}
            raise Invalid(text, field="notes")
    with found:
        if said.experiment is not None and len(said.experiment) > 100:
            raise Invalid(_("The name of an experiment has at most 100 characters."), field="experiment")
    found.end()
    return tags


def keep_view(
    user: User, *, name: str, query: Mapping[str, Any], visibility: str = Visibility.PRIVATE, view: View | None = None
) -> View:
    """Keep the filter, columns, order and grouping of the table under a name, or change a view.

    Raises:
        Invalid: the filter or the order cannot be read, or a word is none.
        NameTaken: another view of theirs has this name.
        TooMany: they keep two hundred views already.
    """
    kept = _query(user, query)
    if not name.strip():
        raise Invalid(_("Give the view a name."), field="name")
    if visibility not in Visibility.values:
        text = _("%(name)s is one of %(words)s.") % {"name": "visibility", "words": ", ".join(Visibility.values)}
        raise Invalid(text, field="visibility")
    if view is None and View.objects.filter(owner=user).count() >= MOST_VIEWS:
        said = _("You have %(limit)s views. Delete one that you no longer need.") % {"limit": MOST_VIEWS}
        raise TooMany(said)
    row = view or View(owner=user)
    row.name, row.query, row.visibility = name.strip()[:60], kept, visibility
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:
        raise NameTaken(_("You have a view of this name. Choose another one, or change that view.")) from None
    return row


def _query(user: User, query: Mapping[str, Any]) -> dict[str, Any]:
    """A query as it is kept; whatever it asks for is asked once, so that a view is never kept that shows nothing."""
    kept: dict[str, Any] = {
        "filter": str(query.get("filter") or ""),
        "columns": [str(one) for one in query.get("columns") or ()],
        "sort": str(query.get("sort") or ""),
        "group": [str(one) for one in query.get("group") or ()],
        "archived": bool(query.get("archived")),
    }
    table.check(user, text=kept["filter"], columns=[*kept["columns"], *kept["group"]], sort=kept["sort"])
    return kept
