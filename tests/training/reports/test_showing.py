"""What a report shows: live, with the rights of its reader, within its limits, and nothing that names can break."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.cases import case_table
from tests.factories import curves
from tests.factories import reports as factory
from tests.factories import training as jobs
from training.experiments import records
from training.experiments.models import Run
from training.experiments.reports import panel_data, presentation
from training.experiments.reports.documents import parts

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]

TEXT = """# Found

```runs
filter: experiment = rates
columns: [state, best(val/accuracy), params.lr, tags]
sort: -best(val/accuracy)
```

```curves
filter: experiment = rates
keys: [val/accuracy]
```

```scatter
filter: experiment = rates
x: params.lr
y: best(val/accuracy)
colour: owner
log_x: true
```

```figure
title: Best of all
filter: experiment = rates
value: best(val/accuracy)
```
"""


@pytest.fixture
def rates(alice):
    return [
        factory.run(
            alice, f"rate-{lr}", params={"lr": lr}, experiment="rates", visibility=seen,
            curves={"val/accuracy": [0.1, 0.5 + place / 10]},
        )
        for place, (lr, seen) in enumerate([(0.01, "public"), (0.1, "private"), (0.03, "public")])
    ]  # fmt: skip


def shown(text, reader, author=None, **how):
    return presentation.show(text, reader, author or reader, **how)


def plain(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def test_panels_are_drawn_of_live_runs(alice, rates):
    found = shown(TEXT, alice)
    records.set_tags(rates[0], {"golden": ""})
    factory.run(alice, "new", experiment="rates", params={"lr": 1}, curves={"val/accuracy": [0.99]})
    later = shown(TEXT, alice)

    assert found.html.count('role="img"') == 2
    assert (
        plain(found.html).index("rate-0.03")
        < plain(found.html).index("rate-0.1")
        < plain(found.html).index("rate-0.01")
    )
    assert "Best of all 0.7 rate-0.03" in plain(found.html)
    assert set(found.runs) == {run.pk for run in rates}
    assert "Best of all 0.99 new" in plain(later.html)
    assert "golden" in plain(later.html)


def test_reader_sees_their_own_rights_and_how_many_are_left_out(alice, bob, rates):
    named = f"```runs\nruns: [{rates[1].pk}, {rates[0].pk}, 999999]\n```"

    found, whole = shown(TEXT, bob, alice), shown(TEXT, alice, alice)
    by_number = shown(named, bob, alice)

    assert "rate-0.1 " not in plain(found.html) + " "
    assert (found.hidden, whole.hidden) == (4, 0)
    assert plain(found.html).count("1 run is omitted: it was deleted or is not visible to you.") == 4
    assert by_number.hidden == 2
    assert "Run State Accuracy on validation · best Duration Created" in plain(by_number.html)
    assert "rate-0.1 " not in plain(by_number.html)


def test_count_of_what_is_left_out_has_the_rights_of_the_author(alice, bob, anna, olga, rates):
    probing = "```runs\nfilter: experiment = rates\n```"

    assert shown(probing, anna, alice).hidden == 1
    assert shown(probing, anna, bob).hidden == 0  # nobody learns of runs by a filter that they wrote themselves
    assert shown(probing, bob, olga).hidden == 0  # an operator's are their own alone
    assert presentation.show(probing, bob, None).hidden == 0


def test_runs_by_number_keep_their_order_and_archived_ones(alice, rates):
    Run.objects.filter(pk=rates[0].pk).update(archived=True)
    numbers = [rates[2].pk, rates[0].pk, rates[1].pk]
    (panel,) = parts(f"```runs\nruns: {numbers}\ncolumns: [params.lr]\n```")

    found = panel_data.chosen(panel, alice, alice)

    assert found.numbers == numbers
    assert found.column("params.lr").values == [0.03, 0.01, 0.1]


def test_figure_is_of_the_best_run(alice):
    factory.run(alice, "good", curves={"loss": [1, 0.1, 0.3]})
    factory.run(alice, "bad", curves={"loss": [2, 0.2, 0.25]})

    def said(value: str) -> str:
        return plain(shown(f"```figure\nvalue: {value}\n```", alice).html)

    assert "0.1 good" in said("best(loss)")
    assert "0.25 bad" in said("loss")
    assert "2 bad" in said("max(loss)")
    assert "No visible run has this value." in said("best(nothing)")


def test_groups_have_mean_deviation_and_count(alice):
    for seed, end in enumerate((1.0, 2.0, 3.0)):
        factory.run(alice, f"seed-{seed}", params={"lr": 0.1}, curves={"acc": [end - 1, end]})
    factory.run(alice, "other", params={"lr": 0.2}, curves={"acc": [5]})
    (panel,) = parts("```curves\nkeys: [acc]\ngroup_by: params.lr\nsort: name\n```")
    found = panel_data.chosen(panel, alice, alice)

    (drawn,) = panel_data.curves(panel, alice, found)

    by_name = {curve.line.name: curve for curve in drawn.curves}
    assert by_name["0.1"].line.mean.tolist() == [1.0, 2.0]
    assert (by_name["0.1"].line.high - by_name["0.1"].line.mean).tolist() == [1.0, 1.0]
    assert (by_name["0.1"].members, by_name["0.2"].members, by_name["0.2"].last) == (3, 1, 5.0)


def test_what_stands_beside_a_curve_is_what_the_run_reached(alice):
    factory.run(alice, "long", curves={"acc": [*range(1000), -5.0, 7.0]})
    (panel,) = parts("```curves\nkeys: [acc]\n```")

    (drawn,) = panel_data.curves(panel, alice, panel_data.chosen(panel, alice, alice))

    (curve,) = drawn.curves
    assert (curve.last, curve.lowest, curve.highest, curve.points) == (7.0, -5.0, 999.0, 1002)


def test_groups_beyond_all_numbers_are_drawn(alice):
    for value in (1.7e308, 1.7e308, -1.7e308):
        factory.run(alice, "big", curves={"acc": [value, 1.0]})

    html = shown("```curves\nkeys: [acc]\ngroup_by: owner\nsmoothing: 0.5\n```", alice).html

    assert "n = 3" in html


def test_smoothing_is_that_of_the_comparison(alice):
    factory.run(alice, "one", curves={"acc": [1.0, 0.0, 0.0]})
    (panel,) = parts("```curves\nkeys: [acc]\nsmoothing: 0.5\n```")

    (drawn,) = panel_data.curves(panel, alice, panel_data.chosen(panel, alice, alice))

    assert drawn.curves[0].line.mean.tolist() == pytest.approx([1.0, 1 / 3, 1 / 7])
    assert (drawn.curves[0].line.low, drawn.curves[0].last) == (None, 0.0)


@case_table("values", [[], [1.0], [float("nan")], [float("inf"), 1.0], [-1.0, 0.0], [1e308, -1e308]], rollback=True)
@case_table("more", ["", "log: true", "group_by: name", "axis: time", "smoothing: 0.9"], rollback=True)
def test_odd_points_are_drawn(alice, values, more):
    more = more.replace("group_by: name", "group_by: owner")
    factory.run(alice, "odd", curves={"acc": values})

    html = shown(f"```curves\nkeys: [acc, nothing]\n{more}\n```\n```scatter\nx: acc\ny: acc\n```", alice).html

    assert "This panel cannot be shown" not in html
    assert "nan" not in re.sub(r"<[^>]*>", "", html).lower()


def test_scatter_colours_by_words_and_by_steps(alice):
    for place in range(12):
        factory.run(
            alice, f"run-{place}", params={"lr": 10.0**-place, "kind": f"kind {place}", "few": place % 2},
            curves={"acc": [place]},
        )  # fmt: skip
    factory.run(alice, "without")

    def of(colour: str) -> panel_data.Dots:
        (panel,) = parts(f"```scatter\nx: params.lr\ny: acc\ncolour: {colour}\n```")
        return panel_data.dots(panel, panel_data.chosen(panel, alice, alice))

    words, steps, few = of("params.kind"), of("params.lr"), of("params.few")

    assert (len(words.points), words.missing, len(words.groups), words.groups[-1]) == (12, 1, 8, ("others", 8))
    assert (steps.ramp, len(steps.groups)) == (True, 5)
    assert few.groups == [("0", 1), ("1", 2)]


def test_names_cannot_put_scripts_into_a_report(alice):
    evil = "<img src=x onerror=alert(1)><script>alert(1)</script>\"'>"
    run = factory.run(alice, evil, params={"lr": evil, "n": 1}, curves={"acc": [1, 2]}, experiment=evil)
    records.set_tags(run, {"evil": evil})
    text = (
        f"# {evil}\n\n[x](javascript:alert(1)) ![x](https://elsewhere.example/x.png)\n\n"
        "```runs\ntitle: '<script>a</script>'\ncolumns: [tags, params.lr, experiment, tags.evil]\n```\n"
        "```curves\nkeys: [acc, '<script>b</script>']\ngroup_by: params.lr\n```\n"
        "```scatter\nx: params.n\ny: acc\ncolour: params.lr\n```\n```figure\nvalue: acc\n```\n"
        "```runs\n'<script>c</script>': 1\n```\n"
    )

    for apart in (False, True):
        html = shown(text, alice, apart=apart).html
        assert re.findall(r"<(?:script|img|iframe|object|link|style)\b", html) == []
        tags = re.sub(r'"[^"]*"', '""', html.replace("&lt;", ""))  # values of attributes are quoted and escaped
        assert re.findall(r"<[^>]+\son\w+=", tags) == []
        assert "javascript:" not in re.findall(r'href="([^"]*)"', html)


def test_panel_that_cannot_be_read_says_so_in_its_place(alice):
    html = shown("before\n\n```runs\nlimt: 3\n```\n\n```curves\nkeys: [a]\nfilter: lr >\n```\n\nafter", alice).html

    assert html.count("This panel cannot be shown.") == 2
    assert "has no field limt" in html
    assert plain(html).startswith("before")
    assert plain(html).endswith("after")


@pytest.mark.parametrize("budget", [("BUDGET_S", -1.0), ("BUDGET_CHARS", 100)])
def test_panels_over_time_or_size_are_left_out_and_can_be_asked_for(alice, monkeypatch, budget):
    text = "```figure\nvalue: cards\n```\n\n" * 3
    monkeypatch.setattr(presentation, *budget)

    first, second = shown(text, alice), shown(text, alice, first=2)

    assert (first.late, first.html.count("report-number")) == (2, 1)
    assert 'href="?panel=2#panel-2"' in first.html
    assert (second.late, second.html.count("report-number")) == (2, 1)
    assert 'href="?panel=3#panel-3"' in second.html
    assert "Panel 2 took too long." in shown(text, alice, apart=True).html


def test_no_more_runs_than_a_panel_has_room_for(alice):
    for number in range(23):
        factory.run(alice, f"run-{number}", curves={"acc": [number]})

    found = shown("```curves\nkeys: [acc]\n```", alice)

    assert found.html.count("rc-line") + found.html.count("<circle") >= 20
    assert len(found.runs) == 20
    assert "3 more runs match and are not shown." in plain(found.html)


def test_twenty_long_curves_are_drawn_in_time(alice):
    rng = np.random.default_rng(1)
    for number in range(20):
        factory.run(alice, f"run-{number}", curves={"acc": rng.standard_normal(100_000).cumsum()})
    begun = time.process_time()

    found = shown("```curves\nkeys: [acc]\n```", alice)

    taken = time.process_time() - begun
    assert found.html.count("rc-line") >= 20
    assert taken < 5, f"{taken:.2f} s of the processor"
    assert len(found.html) < 600_000


def test_queries_do_not_grow_with_runs(alice, rates, django_assert_max_num_queries):
    with CaptureQueriesContext(connection) as few:
        shown(TEXT, alice)
    for number in range(7):
        factory.run(alice, f"run-{number}", params={"lr": number}, experiment="rates", curves={"val/accuracy": [0.5]})

    with django_assert_max_num_queries(len(few)):
        shown(TEXT, alice)


def test_trainings_are_shown_with_all_their_attempts(alice, bob, machine):
    training = jobs.training(
        alice, data=jobs.version(alice, "digits", task="classification"), name="restored", state="running",
        preset="classify", params={"lr": 0.1},
    )  # fmt: skip
    curves.report(training.job.attempts.get(), "val/accuracy", [(1, 0.1), (2, 0.2), (3, 0.9)])
    jobs.move(training, "running", attempt=2)
    curves.report(training.job.attempts.get(number=2), "val/accuracy", [(3, 0.3), (4, 0.4)])
    text = (
        "```curves\nkeys: [val/accuracy]\n```\n\n```runs\ncolumns: [state, preset, max(val/accuracy), params.lr]\n```"
    )
    (panel, _table) = parts(text)

    (drawn,) = panel_data.curves(panel, alice, panel_data.chosen(panel, alice, alice))
    html = shown(text, alice).html

    assert (drawn.x.tolist(), drawn.curves[0].line.mean.tolist()) == ([1, 2, 3, 4], [0.1, 0.2, 0.3, 0.4])
    assert "restored Running classify 0.9 0.1" in plain(html)
    assert "restored" not in shown(text, bob, alice).html


@pytest.mark.parametrize(
    ("axis", "word"), [("step", ">step<"), ("time", ">seconds since the first point<"), ("epoch", ">epoch<")]
)
def test_a_drawing_names_its_axis(alice, axis, word):
    factory.run(alice, "one", curves={"acc": [0.1, 0.2, 0.3], "epoch": [0.5, 1.0, 1.5]})

    found = shown(f"```curves\nkeys: [acc]\naxis: {axis}\n```", alice)

    assert word in found.html
