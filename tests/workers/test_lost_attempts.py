"""What becomes of a job whose supervisor, machine or partner is gone."""

from __future__ import annotations

import pytest

from aiplatform.lib import wording
from tests.factories import work
from tests.workers.watched import look
from workers.core.models import Job
from workers.core.states import Event
from workers.execution import lost_attempts
from workers.jobs import actions, transitions
from workers.supervisor import records

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("kind")]


@pytest.fixture
def orphan(alice, cluster):
    """A running job whose supervisor is gone without a word."""
    job = work.job(alice, cluster, state="running")
    work.hold(job, work.node().devices.get(kind="cpu"), share=1)
    run = work.run_dir(job)
    run.checkpoints.mkdir(parents=True)
    run.outputs.mkdir(parents=True)
    records.write(run.path / records.SUPERVISOR, {"pid": 1, "start_ticks": 0, "boot_id": records.boot_id()})
    return job


def save(job: Job, what: str) -> None:
    if what == "a checkpoint":
        folder = work.run_dir(job).checkpoints / "step-000001"
        folder.mkdir()
        (folder / "meta.json").write_text("{}")
    elif what == "an output":
        (work.run_dir(job).outputs / "model.onnx").write_text("model")


@pytest.mark.parametrize(
    ("saved", "state"), [("a checkpoint", "finished_early"), ("an output", "finished_early"), ("nothing", "stopped")]
)
def test_lost_attempt_of_a_job_that_was_to_finish_ends_as_that(orphan, saved, state):
    save(orphan, saved)
    actions.finish(orphan)

    look(orphan)

    assert (orphan.state, orphan.attempts.get().reason) == (state, "supervisor_lost")
    assert ("Finished early; the last saved state is the result." in str(orphan.message)) == (state == "finished_early")


def test_lost_attempt_of_a_silent_machine_finishes_nothing_since_it_may_run_on(orphan):
    save(orphan, "a checkpoint")
    actions.finish(orphan)

    lose(orphan)

    assert (orphan.state, orphan.attempts.get().state) == ("stopped", "lost")


def test_lost_attempt_of_a_job_that_was_to_stop_is_stopped(orphan):
    actions.stop(orphan)

    look(orphan)

    assert orphan.state == "stopped"


@pytest.mark.parametrize(("at_most", "state"), [(0, "succeeded"), (1, "queued")])
def test_lost_attempt_of_a_restored_job_leaves_it_its_earlier_result_when_it_is_the_last(orphan, at_most, state):
    first = orphan.attempts.get()
    transitions.move(orphan.pk, Event.EXITED_OK, attempt=first.number)
    transitions.move(orphan.pk, Event.RESTORED)
    transitions.move(orphan.pk, Event.PLACED)

    lose(orphan, at_most=at_most)

    assert (orphan.state, orphan.attempts.get(number=2).state) == (state, "lost")
    assert ("The earlier result is kept; attempt" in str(orphan.message)) == (state == "succeeded")


def lose(job: Job, **more: int) -> None:
    silent, again = wording.message("job.machine_silent", node="node1"), wording.message("job.requeued_elsewhere")
    attempt = job.attempts.order_by("-number")[0]
    lost_attempts.lose(attempt, reason="node_lost", message=silent, again=again, **more)
    job.refresh_from_db()
