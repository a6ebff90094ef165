"""The table of runs: columns, order, what is known; tags, notes, stars, archive; saved views."""

from __future__ import annotations

import pytest

from tests.factories import curves
from tests.factories import training as factory
from training.experiments import records, table
from training.experiments.models import Run, Star, Tag, View

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]
API = "/api/v1/runs/"


@pytest.fixture
def three(alice, machine):
    data = factory.version(alice, "digits", task="classification")
    made = []
    for place, rate in enumerate((0.01, 0.1, 0.03)):
        training = factory.training(
            alice, data=data, name=f"rate-{rate}", state="running", preset="classify", params={"lr": rate}
        )
        curves.report(training.job.attempts.get(), "val/accuracy", [(1, 0.5 + place / 10), (2, 0.4)])
        curves.report(training.job.attempts.get(), "train/loss", [(1, 0.5), (2, 0.4 - place / 10)])
        made.append(training.job.run)
    return made


def names(found: table.Table) -> list[str]:
    return [row["name"] for row in found.runs]


def values(found: table.Table, name: str) -> list[object]:
    return list(next(column.values for column in found.columns if column.name == name))


def test_table_shows_what_tells_most_where_nobody_chose(alice, three):
    found = table.table(alice)

    shown = [column.name for column in found.columns]
    assert shown == [
        "state", "dataset", "best(val/accuracy)", "best(train/loss)", "params.lr", "duration", "created",
    ]  # fmt: skip
    assert "params.lr" in shown
    assert "params.batch_size" not in shown  # the same in all of them
    assert "owner" not in shown
    assert (found.total, names(found)) == (3, ["rate-0.03", "rate-0.1", "rate-0.01"])
    assert values(found, "best(val/accuracy)") == [0.7, 0.6, 0.5]
    assert values(found, "best(train/loss)") == pytest.approx([0.2, 0.3, 0.4])
    assert values(found, "params.lr") == [0.03, 0.1, 0.01]
    known = {one.name: one for one in found.known}
    assert (known["best(val/accuracy)"].runs, known["params.lr"].differs) == (3, True)
    assert not known["params.batch_size"].differs


def test_what_nodes_use_is_no_usual_column(alice, machine):
    training = factory.training(alice, name="measured", state="running")
    curves.report(training.job.attempts.get(), "system/cpu", [(1, 80.0)])

    found = table.table(alice)

    assert [column.name for column in found.columns if column.name.startswith("best(")] == []
    assert "best(system/cpu)" in [column.name for column in found.known]


def test_usual_columns_begin_with_the_key_metric_and_leave_out_classes_and_logging(alice, machine, cells):
    for steps in (10, 20):
        training = factory.training(
            alice, data=cells, name=f"run-{steps}", preset="detect", state="running",
            params={"steps": steps, "show_steps": steps == 10},
        )  # fmt: skip
        for key in ("val/ap", "val/ap50", "val/ap50/cell"):
            curves.report(training.job.attempts.get(), key, [(1, 0.5)])

    found = table.table(alice)

    shown = {column.name: column.label for column in found.columns}
    assert list(shown)[1:5] == ["dataset", "best(val/ap50)", "best(val/ap)", "params.steps"]
    assert "params.show_steps" not in shown
    assert (shown["best(val/ap50)"], shown["params.steps"]) == ("AP50 on validation · best", "Optimizer steps")


def test_epochs_are_an_axis_and_no_usual_column(alice, three):
    curves.report(three[0].job.attempts.get(), "epoch", [(1, 1.0)])

    shown = table.table(alice)

    assert "best(epoch)" not in [column.name for column in shown.columns]
    assert "best(epoch)" in [known.name for known in shown.known]  # whoever wants it chooses it


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("params.lr", ["rate-0.01", "rate-0.03", "rate-0.1"]),
        ("-params.lr", ["rate-0.1", "rate-0.03", "rate-0.01"]),
        ("best(val/accuracy)", ["rate-0.01", "rate-0.1", "rate-0.03"]),
        ("-last(train/loss)", ["rate-0.01", "rate-0.1", "rate-0.03"]),
        ("name", ["rate-0.01", "rate-0.03", "rate-0.1"]),
        ("-created", ["rate-0.03", "rate-0.1", "rate-0.01"]),
        ("created", ["rate-0.01", "rate-0.1", "rate-0.03"]),
        ("tags.golden", ["rate-0.1", "rate-0.03", "rate-0.01"]),
    ],
)
def test_table_is_sorted_by_any_column(alice, three, sort, order):
    records.set_tags(three[1], {"golden": "yes"})

    assert names(table.table(alice, sort=sort)) == order


def test_table_gives_every_fact_and_nothing_of_others(alice, bob, three):
    records.set_tags(three[0], {"golden": "", "author": "Ada", "mlflow.user": "x"})

    whole = table.table(alice, columns=[*table.FACTS, "tags.author", "params.lr", "max(val/accuracy)", "min(nothing)"])

    assert [column.name for column in whole.columns][-1] == "min(nothing)"
    assert values(whole, "min(nothing)") == [None, None, None]
    assert values(whole, "tags")[2] == ["author=Ada", "golden"]
    assert values(whole, "tags.author") == [None, None, "Ada"]
    assert values(whole, "preset") == ["classify"] * 3
    assert table.table(bob).total == 0
    Run.objects.filter(pk=three[0].pk).update(visibility="public")
    seen = table.table(bob)
    assert (seen.total, seen.runs[0]["editable"]) == (1, False)


def test_table_asks_the_database_no_more_for_more_runs(alice, three, django_assert_max_num_queries):
    with django_assert_max_num_queries(14):
        table.table(alice)


def test_table_is_given_as_columns_by_the_api(api, three):
    found = api.get(
        f"{API}table/", {"filter": "params.lr > 0.02", "column": ["state", "params.lr"], "sort": "params.lr"}
    )
    refused = [
        api.get(f"{API}table/", asked)
        for asked in ({"filter": "lr >"}, {"column": "colour"}, {"sort": "colour"}, {"archived": "perhaps"})
    ]

    assert found.json()["total"] == 2
    assert [column["values"] for column in found.json()["columns"]] == [["running", "running"], [0.03, 0.1]]
    assert [answer.status_code for answer in refused] == [400] * 4


def test_runs_are_listed_and_shown_by_the_api(api, three, as_bob):
    listed = api.get(API, {"filter": "params.lr < 0.05"}).json()["results"]
    one = api.get(f"{API}{three[0].pk}/").json()

    assert [row["name"] for row in listed] == ["rate-0.03", "rate-0.01"]
    assert (one["params"]["lr"], one["figures"]["val/accuracy"]["highest"]) == (0.01, 0.5)
    assert as_bob.get(f"{API}{three[0].pk}/").status_code == 404


def test_runs_are_tagged_starred_and_archived_together(api, alice, bob, three):
    numbers = [run.pk for run in three[:2]]

    said = {"runs": numbers, "add_tags": ["golden", "author=Ada"], "star": True, "archived": True}
    assert api.post(f"{API}bulk/", said, format="json").json() == {"changed": 2}
    assert set(Tag.objects.values_list("run", "key", "value")) == {
        (number, *tag) for number in numbers for tag in (("golden", ""), ("author", "Ada"))
    }
    assert Star.objects.filter(user=alice).count() == 2
    assert names(table.table(alice)) == ["rate-0.03"]
    assert table.table(alice, archived=True).total == 3
    assert table.table(alice, text="archived").total == 2

    back = {"runs": numbers, "drop_tags": ["author=Ada"], "star": False, "archived": False}
    api.post(f"{API}bulk/", back, format="json")
    assert set(Tag.objects.values_list("key", flat=True)) == {"golden"}
    assert not Star.objects.exists()
    assert table.table(alice).total == 3


def test_change_of_many_runs_is_of_all_or_none(api, bob, three):
    others = Run.objects.create(owner=bob, name="theirs", state="running", visibility="public")
    numbers = [three[0].pk, others.pk]

    refused = api.post(f"{API}bulk/", {"runs": numbers, "add_tags": ["mine"]}, format="json")
    starred = api.post(f"{API}bulk/", {"runs": numbers, "star": True}, format="json")
    wrong = api.post(f"{API}bulk/", {"runs": numbers[:1], "add_tags": ["<b>", "a" * 200]}, format="json")

    assert (refused.status_code, Tag.objects.count()) == (404, 0)
    assert (starred.status_code, Star.objects.count()) == (200, 2)
    assert wrong.status_code == 400
    assert "<b>" in wrong.content.decode() or "\\u003c" in wrong.content.decode()


def test_one_run_is_noted_and_shown_to_others(api, bob, as_bob, three):
    answer = api.patch(f"{API}{three[0].pk}/", {"notes": "# Good", "visibility": "public"}, format="json")

    assert (answer.status_code, answer.json()["notes"]) == (200, "# Good")
    assert as_bob.get(f"{API}{three[0].pk}/").json()["notes"] == "# Good"
    changed = as_bob.patch(f"{API}{three[0].pk}/", '{"notes": "x"}', content_type="application/json")
    assert changed.status_code == 404


def test_view_is_saved_shown_to_others_changed_and_deleted(api, as_bob, alice, three):
    query = {"filter": "params.lr > 0.02", "columns": ["params.lr"], "sort": "-params.lr", "group": ["preset"]}
    made = api.post("/api/v1/run-views/", {"name": "fast", "query": query, "visibility": "public"}, format="json")
    again = api.post("/api/v1/run-views/", {"name": "fast", "query": query}, format="json")
    wrong = {"filter": "lr >", "columns": ["colour"], "sort": "shape"}
    refused = api.post("/api/v1/run-views/", {"name": "bad", "query": wrong}, format="json")
    number = made.json()["id"]

    assert made.status_code == 201
    assert made.json()["query"] == query | {"archived": False}
    assert (again.status_code, refused.status_code) == (409, 400)
    assert set(refused.json()["errors"]) == {"filter", "column", "sort"}
    assert [row["name"] for row in as_bob.get("/api/v1/run-views/").json()["results"]] == ["fast"]
    assert as_bob.delete(f"/api/v1/run-views/{number}/").status_code == 404
    renamed = api.put(f"/api/v1/run-views/{number}/", {"name": "faster", "query": query}, format="json")
    assert (renamed.json()["name"], renamed.json()["visibility"]) == ("faster", "private")
    assert api.delete(f"/api/v1/run-views/{number}/").status_code == 204
    assert not View.objects.exists()
    assert Run.objects.count() == 3
