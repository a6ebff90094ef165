"""Reports are saved, kept in versions, restored, and never lose what somebody typed."""

from __future__ import annotations

import pytest

from aiplatform.lib.errors import Invalid, NotFound
from training.experiments.reports import documents, writing
from training.experiments.reports.models import Report, ReportVersion

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


def test_every_save_is_a_version(alice, bob):
    report = writing.create(user=alice, title="Rates", text="# One\r\n\r\ntext")

    writing.save(report, user=bob, version=1, text="# Two")
    writing.save(report, user=alice, version=2, title="Rates of learning")
    writing.save(report, user=alice, version=3, visibility="public")

    kept = [(one.number, one.title, one.text, one.made_by) for one in report.versions.order_by("number")]
    assert kept == [
        (1, "Rates", "# One\n\ntext", alice),
        (2, "Rates", "# Two", bob),
        (3, "Rates of learning", "# Two", alice),
    ]
    assert (report.version, report.visibility, report.author) == (3, "public", alice)


def test_save_of_an_older_version_is_refused_and_writes_nothing(alice, bob):
    report = writing.create(user=alice, title="Rates", text="one")
    mine, theirs = Report.objects.get(), Report.objects.get()
    writing.save(theirs, user=bob, version=1, text="theirs")

    with pytest.raises(writing.ChangedMeanwhile) as refused:
        writing.save(mine, user=alice, version=1, text="mine", visibility="public")

    assert refused.value.message.startswith("Bob saved version 2 in the meantime; yours is based on version 1.")
    assert (refused.value.code, refused.value.facts) == ("changed_meanwhile", {"newest": 2})
    report.refresh_from_db()
    assert (report.text, report.visibility, report.versions.count()) == ("theirs", "private", 2)


def test_older_version_is_restored_as_a_new_one(alice):
    report = writing.create(user=alice, title="Rates", text="one")
    writing.save(report, user=alice, version=1, title="Other", text="two")

    writing.restore(report, user=alice, number=1, version=2)

    assert (report.title, report.text, report.version) == ("Rates", "one", 3)
    assert ReportVersion.objects.get(number=3).restores == 1
    with pytest.raises(writing.ChangedMeanwhile):
        writing.restore(report, user=alice, number=2, version=2)
    with pytest.raises(NotFound):
        writing.restore(report, user=alice, number=9, version=3)


@pytest.mark.parametrize(
    ("fields", "blamed"),
    [
        ({"title": " "}, "title"),
        ({"title": "a\nb"}, "title"),
        ({"title": "x" * 151}, "title"),
        ({"visibility": "all"}, "visibility"),
        ({"text": "ä" * (documents.LONGEST_BYTES // 2 + 1)}, "text"),
        ({"text": "\n" * documents.MAX_LINES}, "text"),
        ({"text": "```figure\nvalue: cards\n```\n" * 21}, "text"),
    ],
)
def test_report_is_refused(alice, fields, blamed):
    with pytest.raises(Invalid) as refused:
        writing.create(user=alice, **{"title": "Rates", "text": "", **fields})

    assert refused.value.blamed == blamed
    assert not Report.objects.exists()


def test_people_keep_at_most_five_hundred_reports(alice, monkeypatch):
    monkeypatch.setattr(writing, "MAX_REPORTS", 1)
    writing.create(user=alice, title="one")

    with pytest.raises(writing.TooMany):
        writing.create(user=alice, title="two")
