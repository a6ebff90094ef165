"""Reports by page and API: the same services, and nobody reads or changes another's."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.utils.html import escape

from accounts.access import ownership, sharing
from accounts.services import shares
from tests.factories import reports as factory
from training.experiments.reports import writing
from training.experiments.reports.models import Report

pytestmark = [pytest.mark.django_db]
API = "/api/v1/reports/"
TEXT = "# Found\n\n```runs\ncolumns: [state]\n```\n"


def signed_in(user) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def report(alice):
    factory.run(alice, "kestrel", curves={"acc": [1, 2]})
    return writing.create(user=alice, title="Rates of learning", text=TEXT)


def test_pages_open_for_those_who_may_see_them(alice, bob, anna, report):
    pages = [
        "/reports/new/",
        "/reports/",
        *(f"/reports/{report.pk}/{tail}" for tail in ("", "edit/", "versions/", "export/")),
    ]

    assert [signed_in(alice).get(page).status_code for page in pages] == [200] * 6
    assert [signed_in(bob).get(page).status_code for page in pages] == [200, 200, 404, 404, 404, 404]
    assert [signed_in(anna).get(page).status_code for page in pages] == [403] * 6
    assert {Client().get(page).status_code for page in pages} == {302}


def test_reader_of_a_shared_report_cannot_change_it(alice, bob, report):
    writing.save(report, user=alice, version=1, visibility="public")
    reader = signed_in(bob)

    page = reader.get(f"/reports/{report.pk}/")
    acts = [
        reader.get(f"/reports/{report.pk}/edit/"),
        reader.post(f"/reports/{report.pk}/edit/", {"title": "x", "text": "", "visibility": "public", "version": 1}),
        reader.post(f"/reports/{report.pk}/restore/", {"number": 1, "version": 1}),
        reader.post(f"/reports/{report.pk}/delete/", {"confirm": report.title}),
    ]

    assert b"kestrel" not in page.content
    assert b"1 run is omitted" in page.content
    assert b"delete-report" not in page.content
    assert [answer.status_code for answer in acts] == [404] * 4


def test_page_has_no_script_or_style_of_its_own(alice, report):
    answer = signed_in(alice).get(f"/reports/{report.pk}/")
    html = answer.content.decode()

    assert "script-src 'self'" in answer["Content-Security-Policy"]
    assert "style-src 'self'" in answer["Content-Security-Policy"]
    article = html[html.index("<article") : html.index("</article>")]
    assert re.findall(r"<script|<style|\sstyle=|\son\w+=", article) == []


def test_report_is_written_found_and_deleted_on_pages(alice, report):
    client = signed_in(alice)

    made = client.post("/reports/new/", {"title": "Second", "visibility": "group", "text": "# Two\r\n"})
    second = Report.objects.get(title="Second")
    found = client.get("/reports/", {"q": "learning", "ordering": "title", "mine": "1"})
    searched = client.get("/search/", {"q": "Second"})
    gone = client.post(f"/reports/{second.pk}/delete/", {"confirm": "Second"}, follow=True)

    assert (made.status_code, made["Location"]) == (302, f"/reports/{second.pk}/")
    assert (second.text, second.visibility) == ("# Two\n", "group")
    assert [row.title for row in found.context["page"].rows] == ["Rates of learning"]
    assert b"Second" in searched.content
    assert "The report Second was deleted." in gone.content.decode()
    assert not Report.objects.filter(title="Second").exists()


def test_refused_text_comes_back_with_every_sentence(alice):
    text = "```runs\nlimt: 1\n```\n\n```figure\ntitle: x\n```\n"

    answer = signed_in(alice).post("/reports/new/", {"title": "", "visibility": "private", "text": text})
    html = answer.content.decode()

    assert answer.status_code == 422
    assert "limt: 1" in html
    assert set(answer.context["form"].errors) == {"title", "text"}
    assert answer.context["form"].errors["text"] == [
        ("Line 2: A panel “runs” has no field limt. Available fields: title, filter, sort, runs, columns, limit."),
        "Line 5: A panel “figure” needs the field value.",
    ]


def test_what_was_typed_stays_when_somebody_saved_meanwhile(alice, olga, report):
    client = signed_in(alice)
    writing.save(report, user=olga, version=1, text="theirs")
    typed = {"title": report.title, "visibility": "private", "text": "mine & more", "version": "1"}

    refused = client.post(f"/reports/{report.pk}/edit/", typed)
    html = refused.content.decode()
    report.refresh_from_db()
    before = report.text
    saved = client.post(f"/reports/{report.pk}/edit/", typed | {"version": "2"})

    assert (refused.status_code, before) == (422, "theirs")
    assert "saved version 2 in the meantime" in html
    assert 'name="version" value="2"' in html
    assert escape("mine & more") in html
    assert '<span data-sign="-">- theirs' in html
    assert saved.status_code == 302
    assert [one.text for one in report.versions.order_by("number")] == [TEXT, "theirs", "mine & more"]


def test_versions_are_compared_and_restored_on_their_page(alice, report):
    client = signed_in(alice)
    writing.save(report, user=alice, version=1, title="Other", text="# Found\n\nno panels")

    page = client.get(f"/reports/{report.pk}/versions/")
    other = client.get(f"/reports/{report.pk}/versions/", {"version": 1, "against": 2})
    back = client.post(f"/reports/{report.pk}/restore/", {"number": 1, "version": 2})
    late = client.post(f"/reports/{report.pk}/restore/", {"number": 1, "version": 2}, follow=True)
    missing = client.get(f"/reports/{report.pk}/versions/", {"version": 9})

    assert ("-", "```runs") in page.context["lines"]
    assert ("+", "```runs") in other.context["lines"]
    assert back.status_code == 302
    assert b"in the meantime" in late.content
    assert missing.status_code == 404
    report.refresh_from_db()
    assert (report.version, report.title, report.text) == (3, "Rates of learning", TEXT)


def test_preview_shows_text_and_what_is_wrong(alice, bob, report):
    sent = {"text": f"{TEXT}\n```runs\nx: 1\n```"}
    whole = signed_in(bob).post("/reports/preview/", sent)
    shown = signed_in(bob).post("/reports/preview/", sent, headers={"HX-Request": "true"})

    assert b"<h3>Found</h3>" in shown.content
    assert b"No visible run matches." in shown.content
    assert b"has no field x" in shown.content
    assert (b"<html" in whole.content, b"<html" in shown.content) == (True, False)
    assert shown.content.strip() in whole.content


def test_new_report_begins_with_what_somebody_looked_at(alice):
    client = signed_in(alice)

    runs = (
        client.get("/reports/new/", {"run": ["3", "4", "x"], "key": ["val/accuracy"]}).context["form"]["text"].value()
    )
    table = (
        client.get("/reports/new/", {"filter": "lr < 1", "column": ["state"], "sort": "-lr"})
        .context["form"]["text"]
        .value()
    )

    assert runs == "```runs\nruns:\n- 3\n- 4\n```\n\n```curves\nruns:\n- 3\n- 4\nkeys:\n- val/accuracy\n```\n"
    assert table == "```runs\nfilter: lr < 1\ncolumns:\n- state\nsort: -lr\n```\n"


def test_api_writes_changes_restores_and_deletes(alice, api):
    made = api.post(API, {"title": "Rates", "text": TEXT}, format="json").json()
    one = f"{API}{made['id']}/"
    changed = api.patch(one, {"version": 1, "text": "two", "visibility": "public"}, format="json").json()
    late = api.patch(one, {"version": 1, "text": "three"}, format="json")
    versions = api.get(f"{one}versions/").json()
    first = api.get(f"{one}versions/1/").json()
    restored = api.post(f"{one}versions/1/restore/", {"version": 2}, format="json").json()

    assert (made["version"], made["text"], made["url"]) == (1, TEXT, f"/reports/{made['id']}/")
    assert (changed["version"], changed["text"], changed["visibility"]) == (2, "two", "public")
    assert (late.status_code, late.json()["code"], late.json()["facts"]["newest"]) == (409, "changed_meanwhile", 2)
    assert [(row["number"], row["made_by"]) for row in versions] == [(2, "alice"), (1, "alice")]
    assert "text" not in versions[0]
    assert first["text"] == TEXT
    assert (restored["version"], restored["text"]) == (3, TEXT)
    assert api.get(f"{one}versions/9/").status_code == 404
    assert [row["title"] for row in api.get(API, {"search": "rat", "ordering": "title"}).json()["results"]] == ["Rates"]
    assert api.delete(one).status_code == 204
    assert not Report.objects.exists()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"title": ""}, "title"),
        ({"title": "x", "text": "```curves\n```"}, "text"),
        ({"title": "x", "visibility": "all"}, "visibility"),
        ({"title": "x", "colour": 1}, "colour"),
    ],
)
def test_api_refuses_what_cannot_be_kept(alice, api, body, field):
    answer = api.post(API, body, format="json")

    assert answer.status_code == 400
    assert field in answer.json().get("errors", {}) or answer.json().get("field") == field, answer.json()


def test_api_shows_nobody_the_reports_of_others(alice, as_bob, report):
    assert as_bob.get(API).json()["results"] == []
    for path in ("", "versions/", "versions/1/", "export/"):
        assert as_bob.get(f"{API}{report.pk}/{path}").status_code == 404
    writing.save(report, user=alice, version=1, visibility="public")
    assert as_bob.get(f"{API}{report.pk}/").status_code == 200
    assert as_bob.patch(f"{API}{report.pk}/", {"version": 1, "text": ""}, format="json").status_code == 404


def test_export_is_one_file_that_asks_for_nothing(alice, bob, api, report):
    run = factory.run(
        alice, '<script src="https://elsewhere.example/x.js">', visibility="public", curves={"acc": [1, 2]}
    )
    text = (
        f"{TEXT}\n```curves\nkeys: [acc]\n```\n\n```scatter\nx: acc\ny: acc\n```\n\n"
        "[paper](https://paper.example/a) [run](/experiments/) ![x](https://elsewhere.example/p.png)"
    )
    writing.save(report, user=alice, version=1, text=text, visibility="public")

    answer = api.get(f"{API}{report.pk}/export/")
    html = answer.content.decode()
    other = signed_in(bob).get(f"/reports/{report.pk}/export/").content.decode()

    assert answer["Content-Disposition"].startswith('attachment; filename="Rates_of_learning.html"')
    assert re.findall(r"<(?:script|link|img|iframe|object|embed|base|form|use)\b", html) == []
    assert re.findall(r"\s(?:src|srcset|action|data|poster|xlink:href)\s*=", re.sub(r">[^<]*<", "><", html)) == []
    assert re.findall(r"url\(|@import", html) == []
    assert re.findall(r'\shref="([^"]*)"', html) == [
        "https://paper.example/a",  # followed by a click alone, as the picture is
        "https://elsewhere.example/p.png",
    ]
    assert "default-src &#x27;none&#x27;" in html or "default-src 'none'" in html
    assert ". The values do not change any more." in html
    assert f"#{run.pk}" in html
    assert "kestrel" in html
    assert "kestrel" not in other


def test_report_is_shared_with_single_people(alice, bob, report):
    reader = signed_in(bob)
    sharer = signed_in(alice)

    shares.share(kind="report", pk=report.pk, level=sharing.VIEW, by=alice, person="bob")
    seen = [reader.get(f"/reports/{report.pk}/{tail}").status_code for tail in ("", "edit/")]
    shares.share(kind="report", pk=report.pk, level=sharing.MANAGE, by=alice, person="bob")
    kept = reader.post(
        f"/reports/{report.pk}/edit/", {"title": "Bob's", "visibility": "private", "text": "x", "version": 1}
    )

    assert sharer.get(f"/share/report/{report.pk}/").status_code == 200
    assert seen == [200, 404]
    assert kept.status_code == 302
    report.refresh_from_db()
    assert (report.title, report.owner, report.author) == ("Bob's", alice, bob)
    assert report.pk in [row.pk for row in reader.get("/reports/").context["page"].rows]


def test_reports_are_handed_over_when_somebody_leaves(alice, bob, report):
    kind = ownership.KINDS.get("reports")

    assert kind.count(alice) == 1
    assert kind.transfer(alice, bob) == 1
    assert Report.objects.get().owner == bob


def test_lists_ask_the_database_no_more_for_more_reports(alice, api, django_assert_max_num_queries):
    for number in range(30):
        writing.create(user=alice, title=f"Report {number}", text="x" * 1000)
    client = signed_in(alice)
    client.get("/reports/")

    with django_assert_max_num_queries(12):
        client.get("/reports/")
    with django_assert_max_num_queries(6):
        api.get(API)
