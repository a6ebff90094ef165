"""What a run finds in its folder, and what happens when it ends."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.factories import training as factory
from tests.training.preparing import prepared
from training.runs import publishers, trials
from training.runs.kind import CannotRun, TrainingKind
from training.runs.models import TrainingJob
from workers.core.models import Allocation, Attempt, Device, Job
from workers.core.runs import RunDir

kind = TrainingKind()


def test_training_prepare_copies_a_preset_and_starts_it_from_the_run(alice, machine, cells):
    training = factory.training(alice, data=cells, params={"lr": 0.01})

    launch, run = prepared(training)

    assert launch.argv == [sys.executable, "-u", "-m", "presets.detect"]
    assert (run.code / "presets" / "catalog.py").is_file()
    assert not list(run.code.rglob("__pycache__"))
    assert (run.inputs / "train").resolve() == cells.path.resolve()
    assert json.loads(run.params.read_text()) == training.params
    assert launch.env["AIP_DATASET_DIR"] == str(cells.path)
    assert json.loads(launch.env["AIP_DATASETS"]) == [{"name": "cells v1", "role": "train", "dir": str(cells.path)}]
    assert launch.read_write == [RunDir.for_attempt(0, 0).path.parents[2] / "cache" / str(alice.pk) / str(cells.pk)]
    assert cells.path in launch.read_only


def test_training_prepare_twice_is_the_same(alice, machine, cells, code):
    training = factory.training(alice, data=cells, code=code, start_file="train.py", output_path="runs")

    first, _run = prepared(training)
    second, run = prepared(training)

    assert first == second
    assert (run.code / "runs").resolve() == run.outputs.resolve()


def test_training_prepare_starts_more_than_one_card_by_torchrun(alice, db, cells):
    factory.work.node(gpus=4)
    training = factory.training(alice, data=cells, gpus_per_node=2)

    launch, _run = prepared(training)

    assert launch.argv[1:] == [
        "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "presets.detect",
    ]  # fmt: skip


@pytest.mark.parametrize(("asked", "torchrun"), [(0, False), (1, False), (2, True)])
def test_training_prepare_runs_own_code_once_unless_asked_however_many_cards(alice, db, cells, code, asked, torchrun):
    factory.work.node(gpus=4)
    own = {"preset": "", "code": code, "start_file": "train.py", "processes": asked}
    training = factory.training(alice, data=cells, gpus_per_node=2, **own)

    argv = prepared(training)[0].argv

    assert ("--nproc-per-node=2" in argv) == torchrun
    assert torchrun or argv[1:] == ["-u", "train.py"]


def test_training_prepare_starts_several_processes_on_the_processor(alice, machine, cells):
    training = factory.training(alice, data=cells, processes=2, cpus=4.0)

    launch, _run = prepared(training)

    assert "--nproc-per-node=2" in launch.argv
    assert launch.env["OMP_NUM_THREADS"] == "2"


def test_training_prepare_makes_several_machines_meet_at_the_first(alice, db, cells):
    for name in ("node1", "node2"):
        factory.work.node(name, gpus=2)
    training = factory.training(alice, data=cells, gpus_per_node=2, nodes=2)

    lead = Device.objects.filter(node__name="node1").first()
    attempt = Attempt.objects.create(job=training.job, number=1)
    Allocation.objects.create(attempt=attempt, node=lead.node, device=lead, rank=0, port=29_500)

    argv = prepared(training)[0].argv

    assert "--nnodes=2" in argv
    assert "--rdzv-endpoint=127.0.0.1:29500" in argv
    assert f"--rdzv-id={training.job_id}-1" in argv
    assert "--standalone" not in argv


def test_training_prepare_runs_own_code_unchanged_with_its_words_filled(alice, machine, cells, code):
    training = factory.training(
        alice,
        data=cells,
        code=code,
        start_file="train.py",
        params={"lr": 0.1},
        arguments="--data {data} --out '{output}/x y' --note '; touch pwned'",
    )

    launch, run = prepared(training)

    assert launch.argv == [
        sys.executable, "-u", "train.py", "--data", str(cells.path), "--out", f"{run.outputs}/x y",
        "--note", "; touch pwned",
    ]  # fmt: skip
    assert json.loads(run.params.read_text()) == {"dataset": "cells v1", "lr": 0.1}
    assert (run.code / "train.py").read_text() == "print(1)\n"


def test_training_of_own_code_can_report_with_files_only(alice, machine, cells, tmp_path):
    script = "from aip import report, should_stop\nreport(1, {'train/loss': 0.5})\nprint(should_stop())\n"
    code = factory.code(alice, tmp_path / "sdk", train=script)
    training = factory.training(alice, data=cells, code=code, start_file="train.py")
    launch, run = prepared(training)

    ended = subprocess.run(
        launch.argv,
        cwd=run.code,
        env={"AIP_METRICS_FILE": str(run.metrics)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert ended.stdout == "False\n"
    assert json.loads(run.metrics.read_text())["train/loss"] == 0.5


def test_training_prints_its_hint_before_the_run(alice, machine, cells, code):
    training = factory.training(alice, data=cells, code=code, start_file="train.py", extra="-hint:hello -CloseDelay:0")
    launch, run = prepared(training)

    env = launch.env | {"AIP_HINT_S": "0.1"}  # how long it is shown: tests/training/test_switches.py
    ended = subprocess.run(launch.argv, cwd=run.code, env=env, capture_output=True, text=True, check=True)

    assert launch.argv[2:] == ["aip_start.py", "train.py"]
    assert ended.stdout == "hello\n1\n"


def test_training_capabilities_come_from_preset_or_declaration(alice, machine, cells, code):
    preset = factory.training(alice, data=cells, name="a")
    plain = factory.training(alice, data=cells, name="b", code=code, start_file="train.py")
    saving = factory.training(alice, data=cells, name="c", code=code, start_file="train.py", writes_checkpoints=True)

    found = [kind.capabilities(one.job) for one in (preset, plain, saving)]

    assert [(can.pause, can.suspend, can.finish, can.restore) for can in found] == [
        (True, True, True, True),
        (True, False, True, False),
        (True, False, True, True),
    ]


def test_L04_training_prepare_refuses_what_is_no_longer_allowed_at_the_start(alice, machine, cells):
    training = factory.training(alice, data=cells)
    alice.memberships.all().delete()

    with pytest.raises(Exception, match="You are not a member of default"):
        prepared(training)
    alice.is_active = False
    alice.save()
    with pytest.raises(CannotRun, match="not allowed to run trainings"):
        prepared(training)
    cells.delete()
    with pytest.raises(CannotRun, match=r"cells v1 does not exist any more."):
        prepared(training)


def test_B08_training_that_runs_keeps_its_data(alice, bob, machine, cells):
    cells.dataset.visibility = "public"
    cells.dataset.save()
    training = factory.training(bob, data=cells)
    cells.dataset.visibility = "private"
    cells.dataset.save()

    with pytest.raises(Exception, match="can no longer access"):
        prepared(training, 1)
    assert prepared(training, 2)[0].argv


@pytest.fixture
def published():
    told: list[tuple[int, int]] = []

    def keep(one):
        told.append((one.pk, one.published_attempt))

    with publishers.PUBLISHERS.temporarily(keep, alone=True):
        yield told


def end(training, state, attempt=1, figures=None):
    run = factory.move(training, state, attempt=attempt)
    if figures is not None:
        (run.outputs / "metrics.json").write_text(figures)
    job = Job.objects.get(pk=training.job_id)
    kind.ended(job, Attempt.objects.get(job=job, number=attempt))
    return TrainingJob.objects.get(pk=training.pk)


def test_training_that_ends_well_is_published_once(alice, machine, cells, published):
    training = factory.training(alice, data=cells)

    first = end(training, "succeeded", figures='{"val/ap50": 0.9, "images": 3, "note": "x", "bad": NaN}')
    end(training, "succeeded")

    assert first.metrics == {"val/ap50": 0.9, "images": 3}
    assert published == [(training.pk, 1)]


def test_training_that_ends_badly_publishes_nothing(alice, machine, cells, published):
    training = factory.training(alice, data=cells)

    for state in ("failed", "stopped", "lost"):
        end(training, state, figures='{"val/ap50": 0.9}')

    assert published == []


def test_trial_that_was_pruned_publishes_nothing_until_it_was_restored(alice, machine, cells, published):
    training = factory.training(alice, data=cells)
    trials.mark(training.job, study=7, number=0)
    factory.move(training, "running")
    job = Job.objects.get(pk=training.job_id)
    trials.mark_pruned(job)

    pruned = end(training, "finished_early", figures='{"steps": 3}')
    restored = end(training, "succeeded", attempt=2, figures='{"val/ap50": 0.9}')

    assert (pruned.metrics, pruned.published_attempt) == ({"steps": 3}, 1)
    assert restored.metrics == {"val/ap50": 0.9}
    assert published == [(training.pk, 2)]


def test_trial_tells_its_study_of_points_and_of_its_end_and_no_person(
    alice, machine, cells, sent, django_capture_on_commit_callbacks
):
    training, other = factory.training(alice, data=cells), factory.training(alice, data=cells, name="other")
    trials.mark(training.job, study=7, number=0)

    with django_capture_on_commit_callbacks(execute=True):
        for one in (training, other):
            end(one, "failed")
            kind.reported(Job.objects.get(pk=one.job_id))

    told = [facts for name, facts in sent if name == "studies.advance"]
    assert told == [{"study_id": 7}, {"study_id": 7}]
    assert [kind.is_quiet(Job.objects.get(pk=one.job_id)) for one in (training, other)] == [True, False]


def test_training_publisher_that_fails_is_called_again(alice, machine, cells, monkeypatch):
    training = factory.training(alice, data=cells)
    calls = []

    def fails_once(one):
        calls.append(one.pk)
        if len(calls) == 1:
            raise RuntimeError("disk full")

    with publishers.PUBLISHERS.temporarily(fails_once, alone=True):
        with pytest.raises(RuntimeError):
            end(training, "succeeded")
        end(training, "succeeded")
        end(training, "succeeded")

    assert len(calls) == 2


@pytest.mark.parametrize(
    "hostile", ["[" * 100_000, '{"a": 1e999}', "null", "\ud800".encode("utf-8", "replace").decode()]
)
def test_J05_training_end_passes_over_hostile_figures(alice, machine, cells, published, hostile):
    training = factory.training(alice, data=cells)

    assert end(training, "succeeded", figures=hostile).metrics == {}


def test_training_publishes_a_second_good_attempt_too(alice, machine, cells, published):
    training = factory.training(alice, data=cells)

    end(training, "succeeded")
    end(training, "succeeded", attempt=2)

    assert published == [(training.pk, 1), (training.pk, 2)]
