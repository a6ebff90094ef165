"""The filter of the run table."""

from __future__ import annotations

from datetime import timedelta

import pytest

from aiplatform.lib.errors import Invalid
from tests.cases import case_table
from tests.factories import curves, work
from tests.factories import training as factory
from training.experiments import finding, records
from training.experiments.models import Run, RunCurve, Star
from workers.core.models import Attempt, Job

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


@pytest.fixture
def runs(alice, machine):
    """Two trainings, one of them restored, and what a laptop reported."""
    data = factory.version(alice, "digits", task="classification")
    slow = factory.training(alice, data=data, name="slow", state="running", preset="classify", params={"lr": 0.01})
    fast = factory.training(alice, data=data, name="fast one", state="succeeded", preset="classify", params={"lr": 0.1})
    curves.report(slow.job.attempts.get(), "val/accuracy", [(1, 0.2), (2, 0.95), (3, 0.1)])
    Attempt.objects.filter(job=slow.job).update(ended_at=work.now())
    curves.report(Attempt.objects.create(job=slow.job, number=2), "val/accuracy", [(3, 0.5)])
    curves.report(fast.job.attempts.get(), "val/accuracy", [(1, 0.7)])
    curves.report(fast.job.attempts.get(), "val/loss", [(1, 0.7), (2, 0.9)])
    Job.objects.filter(pk=fast.job_id).update(started_at=work.now() - timedelta(hours=2), ended_at=work.now())
    laptop = Run.objects.create(owner=alice, name="laptop", state="failed", experiment="side", archived=True)
    records.set_params(laptop, {"lr": "0.1", "optimizer": "adam w", "a b": 1})
    records.set_tags(laptop, {"golden": "", "author": "Ada"})
    RunCurve.objects.create(
        run=laptop, key="val/accuracy", count=1, step=1, value=0.8, at=work.now(),
        lowest=0.8, lowest_step=1, highest=0.8, highest_step=1,
    )  # fmt: skip
    Star.objects.create(run=slow.job.run, user=alice)
    return {"slow": slow.job.run, "fast": fast.job.run, "laptop": laptop}


def found(runs, alice, text):
    rows = set(finding.narrowed(Run.objects.all(), text, user=alice))
    return {name for name, run in runs.items() if run in rows}


@case_table(
    ("text", "names"),
    [
        ("", {"slow", "fast", "laptop"}),
        ("val/accuracy > 0.6", {"fast", "laptop"}),
        ("val/accuracy <= 0.5", {"slow"}),
        ("last(val/accuracy) = 0.5", {"slow"}),
        ("max(val/accuracy) > 0.9", {"slow"}),
        ("min(val/accuracy) < 0.15", {"slow"}),
        ("best(val/accuracy) > 0.9", {"slow"}),
        ("best(val/loss) < 0.8", {"fast"}),
        ("val/loss < 0.8", set()),
        ("params.lr >= 0.1", {"fast", "laptop"}),
        ("params.lr = 0.1", {"fast", "laptop"}),
        ("params.lr != 0.1", {"slow"}),
        ('params.lr = "0.1"', {"fast", "laptop"}),
        ("params.lr in (0.01, 0.5)", {"slow"}),
        ('params.optimizer = "adam w"', {"laptop"}),
        ("params.optimizer ~ ADAM", {"laptop"}),
        ("params.`a b` = 1", {"laptop"}),
        ("`val/accuracy` > 0.6", {"fast", "laptop"}),
        ("metrics.`val/accuracy` > 0.6 and params.optimizer like '%adam%'", {"laptop"}),
        ("tag:golden", {"laptop"}),
        ("tags.author = 'Ada'", {"laptop"}),
        ("has tags.author", {"laptop"}),
        ("has params.lr and not has params.optimizer", {"slow", "fast"}),
        ("has val/loss", {"fast"}),
        ("not archived", {"slow", "fast"}),
        ("starred", {"slow"}),
        ("state = running", {"slow"}),
        ("state in (completed, failed)", {"fast", "laptop"}),
        ("state != running", {"fast", "laptop"}),
        ("attributes.status = 'FINISHED'", {"fast"}),
        ("name ~ fast", {"fast"}),
        ("name = 'FAST ONE'", {"fast"}),
        ("name !~ fast", {"slow", "laptop"}),
        ("owner = alice", {"slow", "fast", "laptop"}),
        ("preset = classify", {"slow", "fast"}),
        ("kind = training", {"slow", "fast"}),
        ("experiment = side", {"laptop"}),
        ("duration > 90min", {"fast"}),
        ("duration > 1.5h and duration < 1d", {"fast"}),
        ("created > 2026-01-31", {"slow", "fast", "laptop"}),
        ("created < 2020-01-31T10:00", set()),
        ("cards = 0", {"slow", "fast"}),
        ("params.lr = 0.1 and state = failed or starred", {"slow", "laptop"}),
        ("params.lr = 0.1 and (state = failed or starred)", {"laptop"}),
        ("not (starred or archived)", {"fast"}),
        ("NOT archived AND Params.lr < 1", {"slow", "fast"}),
    ],
)
def test_filter_finds_the_runs_it_describes(runs, alice, text, names):
    assert found(runs, alice, text) == names


@case_table(
    ("text", "said"),
    [
        ("val/accuracy >", "is incomplete"),
        ("val/accuracy 0.5", "where =, <"),
        ("val/accuracy > high", "compared with a number"),
        ("best(val/accuracy > 1", "where \\) is expected"),
        ("params.lr > 0.1 params.lr", "where and, or"),
        ("state = asleep", "Unknown state"),
        ("created > yesterday", "A time must be written"),
        ("created ~ 2026-01-01", "with < and >"),
        ("name < a", "Compare text with"),
        ("val/accuracy ~ 3", "is a number"),
        ("§", "is invalid at"),
        ("('", "is invalid at"),
        ("()", "is expected"),
        ("(" * 30 + "starred" + ")" * 30, "too many nested brackets"),
        (" or ".join(["starred"] * 60), "more than 50"),
        ("x" * 3000, "longer than"),
        ("created > 2026-99-99", "A time must be written"),
    ],
)
def test_filter_says_what_is_wrong_with_it(alice, text, said):
    with pytest.raises(Invalid, match=said):
        finding.narrowed(Run.objects.all(), text, user=alice)


def test_filter_is_no_way_into_the_database(runs, alice):
    assert found(runs, alice, """name = "x' OR 1=1 --" """) == set()
    assert found(runs, alice, """params.`lr' OR '1'='1` > 0""") == set()
    assert found(runs, alice, "has owner__password or owner.password > 0") == set()
