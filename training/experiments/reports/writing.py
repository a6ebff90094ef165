"""What people do with reports: write, save, restore an older version, share, delete. Every save is kept."""

from __future__ import annotations

import re
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.errors import DomainError, Invalid, NotFound, Refusals
from training.experiments.models import Visibility
from training.experiments.reports import documents
from training.experiments.reports.models import Report, ReportVersion
from workers.core.clock import now

MAX_REPORTS, LONGEST_TITLE = 500, 150
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")  # what would break a title into lines, or steer a terminal


class ChangedMeanwhile(DomainError, code="changed_meanwhile", field="version"):
    """Another user saved a newer version than the one that was changed."""


class TooMany(DomainError, code="too_many"):
    """No more of them are kept."""


def check(*, user: User, title: str = "-", text: str = "", visibility: str = Visibility.PRIVATE) -> None:
    """Refuse at once what `create` and `save` refuse, and write nothing.

    Raises:
        Invalid: a title or a word that is none, a text that is too long, and whatever is wrong with its panels.
    """
    refusals = Refusals()
    with refusals:
        if not 0 < len(title.strip()) <= LONGEST_TITLE or _CONTROL.search(title):
            message = _("The title of a report must be one line of at most %(most)s characters.") % {
                "most": LONGEST_TITLE
            }
            raise Invalid(message, field="title")
    with refusals:
        if visibility not in Visibility.values:
            facts = {"name": "visibility", "words": ", ".join(Visibility.values)}
            raise Invalid(_("%(name)s must be one of %(words)s.") % facts, field="visibility")
    with refusals:
        documents.check(text, user)
    refusals.end()


@transaction.atomic
def create(*, user: User, title: str, text: str = "", visibility: str = Visibility.PRIVATE) -> Report:
    """Write a new report; it is version 1.

    Raises:
        Invalid: see `check`.
        TooMany: they have five hundred.
    """
    text = _plain(text)
    check(user=user, title=title, text=text, visibility=visibility)
    if Report.objects.filter(owner=user).count() >= MAX_REPORTS:
        raise TooMany(_("You have %(most)s reports. Delete one that you no longer need.") % {"most": MAX_REPORTS})
    report = Report.objects.create(title=title.strip(), owner=user, author=user, text=text, visibility=visibility)
    _create_version(report, user)
    return report


@transaction.atomic
def save(
    report: Report,
    *,
    user: User,
    version: int,
    title: str | None = None,
    text: str | None = None,
    visibility: str | None = None,
) -> Report:
    """Save a title, a text, or who sees it; what is None stays. A title or a text that differs is a new version.

    Compare-and-set on the version instead of a lock: of two people who changed the same one, the first is kept.

    Args:
        version: the one that was read and changed.

    Raises:
        Invalid: see `check`.
        ChangedMeanwhile: there is a newer one; nothing is written.
    """
    title = report.title if title is None else title.strip()
    text = report.text if text is None else _plain(text)
    visibility = report.visibility if visibility is None else visibility
    check(user=user, title=title, text=text, visibility=visibility)
    return _save_version(report, user, version, title=title, text=text, visibility=visibility)


@transaction.atomic
def restore(report: Report, *, user: User, number: int, version: int) -> Report:
    """Make the title and text of an older version the newest again, as a version of its own.

    Raises:
        NotFound: there is no such version.
        ChangedMeanwhile: `version` is not the newest any more.
    """
    old = version_of(report, number)
    return _save_version(
        report, user, version, title=old.title, text=old.text, visibility=report.visibility, restores=number
    )


def version_of(report: Report, number: int) -> ReportVersion:
    """Return a version by its number.

    Raises:
        NotFound: there is none.
    """
    version = report.versions.select_related("made_by").filter(number=number).first()
    if version is None:
        raise NotFound(_("This report has no version %(number)s.") % {"number": number})
    return version


def _save_version(
    report: Report, user: User, version: int, *, title: str, text: str, visibility: str, restores: int | None = None
) -> Report:
    same = restores is None and (title, text) == (report.title, report.text)
    columns: dict[str, Any] = {"title": title, "text": text, "visibility": visibility}
    if not same:
        columns |= {"version": F("version") + 1, "author": user, "updated_at": now()}
    if not Report.objects.filter(pk=report.pk, version=version).update(**columns):
        newest = Report.objects.select_related("author").get(pk=report.pk)
        who = newest.author.get_full_name() if newest.author else _("A user")
        message = _(
            "%(who)s saved version %(newest)s in the meantime; yours is based on version %(version)s. Review "
            "the differences, then save again."
        )
        facts = {"who": who, "newest": newest.version, "version": version}
        raise ChangedMeanwhile(message % facts, newest=newest.version)
    report.refresh_from_db()
    if not same:
        _create_version(report, user, restores)
    return report


def _create_version(report: Report, user: User, restores: int | None = None) -> None:
    ReportVersion.objects.create(
        report=report, number=report.version, title=report.title, text=report.text, made_by=user, restores=restores,
        made_at=report.updated_at,
    )  # fmt: skip


def _plain(text: str) -> str:
    """Lines as they are stored: browsers send them with carriage returns."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
