"""The list of trainings shows the key metric with its curve, by a fixed number of queries."""

from __future__ import annotations

import pytest

from tests.factories import curves, work
from tests.factories import training as factory
from training.runs import results

pytestmark = pytest.mark.django_db


@pytest.fixture
def trainings(alice, cluster):
    work.node(cores=4)
    data = factory.version(alice, "digits", task="classification")
    return [
        factory.training(alice, data=data, name=f"run{number}", state="running", preset="classify")
        for number in range(3)
    ]


def test_list_shows_the_newest_key_metric_and_its_curve_while_a_training_runs(trainings):
    curves.report(trainings[0].job.attempts.get(), "val/accuracy", [(1, 0.2), (2, 0.7), (3, 0.6)])
    curves.report(trainings[1].job.attempts.get(), "train/loss", [(1, 2.0), (2, 1.0)])

    results.add_list_metrics(trainings)

    first, second, third = trainings
    assert (first.figure.text, first.figure.split, first.figure.best) == ("0.600", "val", 0.7)
    assert first.line == "2,22.0 48,2.0 94,6.0"
    assert (second.figure, second.line, second.loss) == (None, "2,2.0 94,22.0", 1.0)
    assert (third.figure, third.line) == (None, "")


def test_metric_of_a_completed_training_is_that_of_its_weights_and_the_best_of_the_run_is_named(trainings, as_alice):
    run = trainings[0]
    curves.report(run.job.attempts.get(), "val/accuracy", [(1, 0.5), (2, 0.9), (3, 0.8)])
    run.metrics = {"val/accuracy": 0.8, "steps": 3}  # the model is that of the last step
    run.save()

    results.add_list_metrics([run])
    html = as_alice.get("/training/").content.decode()

    assert (str(run.figure), run.figure.best) == ("Accuracy · val 0.800", 0.9)
    assert results.key_metric(run).value == 0.8
    assert "Accuracy · val · best 0.900" in html


def test_best_is_not_named_where_the_weights_are_those_of_the_best_point(trainings):
    run = trainings[0]
    curves.report(run.job.attempts.get(), "val/accuracy", [(1, 0.5), (2, 0.9), (3, 0.8), (4, 0.9)])
    run.metrics = {"val/accuracy": 0.9}

    results.add_list_metrics([run])

    assert (run.figure.text, run.figure.best) == ("0.900", None)


def test_list_metrics_take_one_query(trainings, django_assert_num_queries):
    for training in trainings:
        curves.report(training.job.attempts.get(), "val/accuracy", [(1, 0.2), (2, 0.7)])

    with django_assert_num_queries(1):
        results.add_list_metrics(trainings)


def test_list_page_draws_the_curve_beside_the_metric(trainings, as_alice):
    curves.report(trainings[0].job.attempts.get(), "val/accuracy", [(1, 0.2), (2, 0.7), (3, 0.6)])

    html = as_alice.get("/training/").content.decode()

    assert html.count('<svg class="spark"') == 1
    assert 'points="2,22.0 48,2.0 94,6.0"' in html
