"""The short gate runs on PostgreSQL the tests that send each differing statement."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests import postgres_selection


@pytest.mark.parametrize(
    ("sql", "shape"),
    [
        ('SELECT "a"."id" FROM "a" WHERE "a"."id" = 5', ""),
        ('INSERT INTO "a" ("b") VALUES (7) RETURNING "a"."id"', ""),
        (
            'SELECT "a"."id" FROM "a" WHERE "a"."id" IN (1, 2, 3) FOR UPDATE SKIP LOCKED',
            'SELECT "a"."id" FROM "a" WHERE "a"."id" IN (?) FOR UPDATE SKIP LOCKED',
        ),
    ],
)
def test_shape_of_a_statement_has_no_values_and_is_empty_where_databases_agree(sql, shape):
    assert postgres_selection.shape(sql) == shape


def test_choice_sends_each_shape_twice_and_keeps_tests_that_commit():
    def row(name: str, *shapes: str, commits: bool = False, cpu_s: float = 0.1) -> dict:
        return {"name": name, "shapes": list(shapes), "commits": commits, "cpu_s": cpu_s}

    chosen = postgres_selection.choose(
        [row("quick", "a"), row("slow", "a", cpu_s=9.0), row("other", "a"), row("commits", commits=True), row("none")]
    )

    assert chosen == {"quick", "other", "commits"}


def test_short_form_leaves_out_the_tests_of_the_list(monkeypatch, tmp_path):
    listed = tmp_path / "list.txt"
    listed.write_text("# a comment\ntests/x.py::test_all\ntests/x.py::test_part[1]\n")
    monkeypatch.setattr(postgres_selection, "LIST", listed)
    dropped: list[str] = []
    hook = SimpleNamespace(pytest_deselected=lambda items: dropped.extend(item.nodeid for item in items))
    names = ["test_all[a]", "test_part[1]", "test_part[2]", "test_new"]

    def kept() -> list[str]:
        items = [Item(f"tests/x.py::{name}") for name in names]
        postgres_selection.pytest_collection_modifyitems(SimpleNamespace(hook=hook), items)
        return [item.nodeid.partition("::")[2] for item in items]

    monkeypatch.delenv(postgres_selection.SHORT, raising=False)
    assert kept() == names
    monkeypatch.setenv(postgres_selection.SHORT, "1")
    assert kept() == ["test_part[2]", "test_new"]
    assert dropped == ["tests/x.py::test_all[a]", "tests/x.py::test_part[1]"]


class Item:
    """As much of pytest's item as is read."""

    def __init__(self, nodeid: str) -> None:
        self.nodeid = nodeid
