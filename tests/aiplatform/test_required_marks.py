"""What a form refuses when it is left empty carries the mark before it is sent, and nothing else does."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from tests.conftest import signed_in
from tests.factories import training as trainings
from tests.factories import work
from tests.inference import judged
from tests.plain_routes import action_of, plain_routes

pytestmark = pytest.mark.django_db
CONTROLS = ("input", "select", "textarea")
EMPTY_TAGS = ("input", "br", "img", "use", "hr", "meta", "link", "path", "source", "col")


class Rows(HTMLParser):
    """Forms that are sent to the page itself: the names of their rows, the marked ones, what a browser would send."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: dict[str, list[str]] = {}
        self.named: set[str] = set()
        self.marked: set[str] = set()
        self.inside = False
        self._row: tuple[int, set[str]] | None = None  # depth of its tag, the names in it
        self._mark = False
        self._depth = 0
        self._select = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        of = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.inside = of.get("method", "").lower() == "post" and "action" not in of
        if tag not in EMPTY_TAGS:
            self._depth += 1
        if not self.inside:
            return
        if "form-row" in of.get("class", "").split() and self._row is None:
            self._row, self._mark = (self._depth, set()), False
        if "required-mark" in of.get("class", "").split():
            self._mark = True
        if tag in CONTROLS and (name := of.get("name")):
            self._control(tag, name, of)
        if tag == "option" and self._select and ("selected" in of or self._select not in self.sent):
            self.sent[self._select] = [of.get("value", "")]

    def _control(self, tag: str, name: str, of: dict[str, str]) -> None:
        if self._row:
            self._row[1].add(name)
        kind = of.get("type", "text")
        if tag == "select":
            self._select = name
        elif kind in ("hidden", "radio", "checkbox") and (kind == "hidden" or "checked" in of):
            self.sent.setdefault(name, []).append(of.get("value", "" if kind == "hidden" else "on"))

    def handle_endtag(self, tag: str) -> None:
        if tag == "select":
            self._select = ""
        if self._row and self._depth == self._row[0]:
            self.named |= self._row[1]
            self.marked |= self._row[1] if self._mark else set()
            self._row = None
        if tag not in EMPTY_TAGS:
            self._depth -= 1
        if tag == "form":
            self.inside = False


def rows_of(page: str) -> Rows:
    rows = Rows()
    rows.feed(page)
    return rows


def pages(client) -> dict[str, Rows]:
    """Pages with a form of rows that is sent to the page itself."""
    found = {}
    for path, pattern in plain_routes().items():
        if path.startswith("/api/") or path.startswith("/admin/") or action_of(pattern) is None:
            continue
        answer = client.get(path)
        if answer.status_code == 200 and not answer.streaming and (rows := rows_of(answer.content.decode())).named:
            found[path] = rows
    return found


def test_forms_mark_exactly_what_they_refuse_when_it_is_empty(olga, cluster, tmp_path, settings):
    judged.evaluation(olga, tmp_path)
    trainings.version(olga, "more")
    work.node()
    client = signed_in(olga)
    wrong, seen = [], 0
    for path, rows in pages(client).items():
        answer = client.post(path, rows.sent)
        if answer.status_code != 422 or answer.context is None:
            continue
        form = answer.context["form"]
        refused = {form.add_prefix(name) for name in form.errors if name in form.fields}
        later = {form.add_prefix(name) for name in getattr(form, "required_where_shown", ())}
        seen += 1
        empty = {name for name in refused if rows.sent.get(name, [""]) == [""]}  # others are refused for what they say
        if empty - rows.marked or rows.marked - refused - later:
            wrong.append((path, "refused", empty - rows.marked, "marked", rows.marked - refused - later))

    assert not wrong
    assert seen >= 10
