"""An attempt begins from a checkpoint that nobody else can take away."""

import json
import shutil
from pathlib import Path

import pytest
from django.utils.timezone import now

from tests.factories import work
from workers.core.runs import RunDir
from workers.execution import resuming

pytestmark = pytest.mark.django_db


def saved(job, number: int, step: int, **files: bytes):
    folder = RunDir.for_attempt(job.pk, number).checkpoints / f"step-{step:06d}"
    (folder / "parts").mkdir(parents=True)
    (folder / "parts" / "weights").write_bytes(b"w%d" % step)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    (folder / "meta.json").write_text(json.dumps({"step": step, "files": {name: {} for name in files}}))
    return folder


@pytest.fixture
def again(alice, cluster):
    """A second attempt that is to go on from step 20 of the first."""
    job = work.job(alice, cluster, state="starting", attempt_number=2)
    attempt = job.attempts.get(number=2)
    saved(job, 1, 10, model=b"old")
    attempt.checkpoint_in = str(saved(job, 1, 20, model=b"new"))
    return job, attempt, RunDir.for_attempt(job.pk, 2)


def test_f34_resuming_hold_keeps_what_the_old_attempt_removes(again):
    job, attempt, run = again

    resuming.hold(attempt, run)
    shutil.rmtree(RunDir.for_attempt(job.pk, 1).checkpoints)  # it runs on behind a cut cable, and rotates

    attempt.refresh_from_db()
    kept = run.path / "resume" / "step-000020"
    assert attempt.checkpoint_in == str(kept)
    assert (kept / "model").read_bytes() == b"new"
    assert (kept / "parts" / "weights").read_bytes() == b"w20"
    assert (kept.parent / "step-000010" / "model").read_bytes() == b"old"  # for who finds the newer one damaged


def test_f34_resuming_hold_replaces_a_missing_checkpoint_by_the_newest(again):
    job, attempt, run = again
    saved(job, 1, 30)
    shutil.rmtree(attempt.checkpoint_in)

    resuming.hold(attempt, run)

    assert attempt.checkpoint_in == str(run.path / "resume" / "step-000030")


def test_resuming_hold_takes_no_checkpoint_half_removed(again):
    job, attempt, run = again
    (RunDir.for_attempt(job.pk, 1).checkpoints / "step-000020" / "model").unlink()
    (RunDir.for_attempt(job.pk, 1).checkpoints / "step-000020" / "meta.json").rename(run.path.parent / "away")

    resuming.hold(attempt, run)

    assert attempt.checkpoint_in.endswith("/2/resume/step-000010")


def test_resuming_hold_begins_anew_without_a_checkpoint(again):
    job, attempt, run = again
    shutil.rmtree(RunDir.for_attempt(job.pk, 1).checkpoints)

    resuming.hold(attempt, run)

    attempt.refresh_from_db()
    assert attempt.checkpoint_in == ""


def test_resuming_hold_follows_no_links_in_a_checkpoint(again, tmp_path):
    job, attempt, run = again
    secret = tmp_path / "secret"
    secret.write_text("canary")
    folder = RunDir.for_attempt(job.pk, 1).checkpoints / "step-000020"
    (folder / "stolen").symlink_to(secret)
    (folder / "parts" / "weights").unlink()
    (folder / "parts").rmdir()
    (folder / "parts").symlink_to(tmp_path)

    resuming.hold(attempt, run)

    assert sorted(path.name for path in (run.path / "resume" / "step-000020").iterdir()) == ["meta.json", "model"]


def test_resuming_hold_twice_changes_nothing(again):
    _job, attempt, run = again
    resuming.hold(attempt, run)
    first = attempt.checkpoint_in

    resuming.hold(attempt, run)

    assert attempt.checkpoint_in == first
    assert (run.path / "resume" / "step-000020" / "model").read_bytes() == b"new"


def test_resuming_hold_keeps_the_best_checkpoint_over_several_attempts(again):
    job, attempt, run = again
    saved(job, 1, 5, model=b"best")
    (RunDir.for_attempt(job.pk, 1).checkpoints / "best").symlink_to("step-000005")

    resuming.hold(attempt, run)
    shutil.rmtree(RunDir.for_attempt(job.pk, 1).checkpoints)
    job.attempts.filter(number=2).update(ended_at=now())
    third = job.attempts.create(number=3, state="starting", checkpoint_in=str(run.path / "resume" / "step-000020"))
    later = RunDir.for_attempt(job.pk, 3)
    resuming.hold(third, later)  # the second attempt made no checkpoint of its own

    assert (run.path / "resume" / "best" / "model").read_bytes() == b"best"
    assert (later.path / "resume" / "best" / "model").read_bytes() == b"best"


def test_resuming_hold_follows_no_best_out_of_the_checkpoints(again, tmp_path):
    _job, attempt, run = again
    (tmp_path / "step-000099").mkdir()
    (tmp_path / "step-000099" / "meta.json").write_text('{"step": 99, "files": {}}')
    Path(attempt.checkpoint_in).with_name("best").symlink_to(tmp_path / "step-000099")

    resuming.hold(attempt, run)

    assert (run.path / "resume" / "step-000020").is_dir()
    assert not (run.path / "resume" / "best").exists()
