"""What mattered among runs of the table."""

from __future__ import annotations

import pytest

from tests.factories import curves, work
from tests.factories import training as factory
from training.experiments.models import Run

pytestmark = pytest.mark.django_db
ROUTE = "/api/v1/run-importance/"


@pytest.fixture
def runs(alice):
    """Accuracy hangs on the rate alone; the seed and the optimizer's name vary beside it."""
    work.node(cores=4)
    data = factory.version(alice, "digits", task="classification")
    made = []
    for number in range(24):
        rate = 10 ** -(1 + number % 6)
        job = factory.training(
            alice, data=data, name=f"run{number}", state="succeeded", preset="classify",
            params={"lr": rate, "seed": number * 7 % 11},
        )  # fmt: skip
        curves.report(job.job.attempts.get(), "val/accuracy", [(1, 0.1), (2, 0.9 - 0.1 * (number % 6))])
        curves.report(job.job.attempts.get(), "train/loss", [(2, 0.1 + 0.1 * (number % 6))])
        made.append(job.job.run)
    Run.objects.bulk_create(Run(owner=alice, name=f"elsewhere{n}", state="succeeded") for n in range(90))  # no figure
    return made


def test_parameter_that_decides_matters_most(api, runs):
    found = api.get(f"{ROUTE}?figure=best(val/accuracy)").json()
    cost = api.get(f"{ROUTE}?figure=last(train/loss)").json()

    assert (found["direction"], found["runs"], set(found["params"])) == ("maximize", 24, {"params.lr", "params.seed"})
    assert next(iter(found["importance"])) == "params.lr"
    assert found["importance"]["params.lr"] > 0.7
    assert sum(found["importance"].values()) == pytest.approx(1)
    assert (cost["direction"], next(iter(cost["importance"]))) == ("minimize", "params.lr")


def test_too_few_runs_say_nothing_and_words_are_refused(api, runs):
    few = api.get(f"{ROUTE}?figure=best(val/accuracy)&filter=name in (run1, run2)").json()
    none = api.get(f"{ROUTE}?figure=best(val/accuracy)&filter=name = nobody").json()

    assert (few["runs"], few["importance"]) == (2, {})
    assert (none["runs"], none["params"], none["importance"]) == (0, [], {})
    assert api.get(f"{ROUTE}?figure=params.lr").json()["errors"].keys() == {"figure"}
    assert api.get(ROUTE).status_code == 400
    assert api.get(f"{ROUTE}?figure=best(a)&filter=lr >").status_code == 400


def test_runs_of_others_do_not_count(api, bob, runs):
    api.force_authenticate(bob)

    assert api.get(f"{ROUTE}?figure=best(val/accuracy)").json()["runs"] == 0
