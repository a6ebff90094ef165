"""Runs: made with every training and command, with what those were given."""

from __future__ import annotations

import pytest

from tests.factories import training as factory
from training.experiments import records
from training.experiments.models import Param, Run
from training.runs import jobs

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


@pytest.fixture
def trained(alice, machine):
    data = factory.version(alice, "digits", task="classification")
    return factory.training(alice, data=data, name="first", preset="classify", params={"lr": 0.1})


def params(run: Run) -> dict[str, tuple[str, float | None]]:
    return {row.key: (row.text, row.number) for row in run.params.all()}


def test_training_is_recorded_with_all_its_parameters(trained, alice):
    run = Run.objects.get(job=trained.job)

    assert (run.owner, str(run), run.visibility) == (alice, "first", "private")
    assert params(run)["lr"] == ("0.1", 0.1)
    assert set(params(run)) == set(trained.params)


def test_restored_training_is_recorded_with_its_new_parameters(trained, alice):
    factory.checkpoint(factory.move(trained, "stopped"), 3)

    jobs.restore(trained, by=alice, params={"lr": 0.25})

    assert params(Run.objects.get(job=trained.job))["lr"] == ("0.25", 0.25)


def test_parameters_are_stored_flat_as_numbers_where_they_are_and_without_secrets(trained):
    run = Run.objects.get(job=trained.job)

    records.set_params(
        run,
        {"a": {"b": 2, "c": [1, 2]}, "on": True, "text": "1e-3", "word": "adam", "nan": "nan", "api_key": "verysecret"},
    )

    kept = params(run)
    assert (kept["a.b"], kept["a.c"], kept["on"]) == (("2", 2.0), ("[1, 2]", None), ("true", 1.0))
    assert (kept["text"], kept["word"], kept["nan"]) == (("1e-3", 0.001), ("adam", None), ("nan", None))
    assert not Param.objects.filter(text__contains="verysecret").exists()


def test_run_goes_with_its_job(trained):
    trained.job.delete()

    assert not Run.objects.exists()
    assert not Param.objects.exists()


def test_nobody_else_sees_a_run(trained, bob, olga):
    assert not Run.objects.visible_to(bob).exists()
    assert Run.objects.visible_to(olga).exists()

    Run.objects.update(visibility="public")

    assert Run.objects.visible_to(bob).exists()
    assert not Run.objects.editable_by(bob).exists()
