"""A job of the queue in a container: what it is told, and what people see of it."""

import os
import signal
import sys

import pytest
from django.urls import reverse

from aiplatform import env
from aiplatform.cli import doctor
from tests.running import printed
from tests.running import wait_for as until
from tests.workers.engines import FakeEngine
from tests.workers.launched import ended, node, placed
from workers.core.models import Attempt
from workers.core.runs import RunDir
from workers.execution import launch, tickets
from workers.execution.agent import attempt_monitor, containers, registration
from workers.supervisor import engines, processes, records
from workers.supervisor.sandbox import CONTAINER

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]
__all__ = ["node", "placed"]  # fixtures


@pytest.fixture
def contained(tmp_path, monkeypatch):
    """This node offers containers, and nothing else is asked for."""
    engine = FakeEngine(tmp_path / "engine")
    offer = engines.Offer(container=engine.about | {"user": f"{os.geteuid()}:{os.getegid()}"}, engine="docker 1.0")
    monkeypatch.setattr(tickets, "tier", lambda: (CONTAINER, ""))
    monkeypatch.setattr(tickets, "containers", lambda: offer)
    yield engine
    engine.kill()


def ticket(job):
    return records.read(RunDir.for_attempt(job.pk, 1).path / records.LAUNCH)


def test_contained_job_runs_in_the_operators_image_and_its_page_says_so(placed, contained, alice, client, monkeypatch):
    monkeypatch.setattr(env, "CONTAINER_PYTHON", sys.executable)  # the small engine has no image of its own
    job, attempt = placed([sys.executable, "-c", "print('inside')"])

    launch.start(attempt.pk)
    record = ended(job)
    attempt.refresh_from_db()
    client.force_login(alice)
    page = client.get(reverse("workers:job", args=[job.pk])).content.decode()
    told = client.get(f"/api/v1/jobs/{job.pk}/").json()

    assert (record["code"], printed(RunDir.for_attempt(job.pk, 1).log)) == (0, "inside\n")
    assert (attempt.sandbox_tier, attempt.image) == (4, "image")
    assert "tier 4" in page
    assert told["isolation"] == {"tier": 4, "words": "container", "image": "image"}


def test_contained_job_has_its_own_python_and_user_and_no_network(placed, contained, alice, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    job, attempt = placed([sys.executable, "-c", "pass"])
    made = tickets.make(attempt, 0, list(attempt.allocations.all()), job_launch(job, attempt))

    assert made.argv == ["python3", "-c", "pass"]
    assert "PATH" not in made.env
    assert made.container["network"] == "none"
    assert made.container["user"] == f"{env.JOB_UIDS + alice.pk}:{env.JOB_UIDS + alice.pk}"
    assert (made.uid, made.processes) == (env.JOB_UIDS + alice.pk, env.JOB_PROCESSES)
    assert not [path for path in made.read_only if path.startswith(sys.prefix)]


def test_contained_job_that_others_must_reach_shares_the_network(placed, contained):
    job, attempt = placed([sys.executable, "-c", "pass"], ports=1)
    made = tickets.make(attempt, 0, list(attempt.allocations.all()), job_launch(job, attempt))

    assert made.container["network"] == "host"


def job_launch(job, attempt):
    from workers.core import kinds

    return kinds.get(job.kind).prepare(job, attempt, RunDir.for_attempt(job.pk, 1))


def test_contained_job_that_is_lost_waits_until_its_container_is_gone(placed, contained, monkeypatch):
    monkeypatch.setattr(env, "CONTAINER_PYTHON", sys.executable)
    monkeypatch.setattr(attempt_monitor, "sweep", lambda _run: [])  # the processes of a container may be another user's
    monkeypatch.setattr(containers, "ASK_AGAIN_S", 0.0)
    job, attempt = placed([sys.executable, "-c", "import time; time.sleep(1000)"])
    launch.start(attempt.pk)
    kept = records.read(RunDir.for_attempt(job.pk, 1).path / records.SUPERVISOR)
    supervisor_pid, first = kept["pid"], kept["child"]["pid"]
    contained.kill()
    end_tree(supervisor_pid)
    until(lambda: not records.is_alive(kept))
    watched = attempt_monitor.AttemptMonitor(attempt)

    states = [look(watched, attempt) for _ in range(2)]
    end_tree(first)
    until(lambda: processes.state(first) in "ZX")
    states.append(look(watched, attempt))

    assert states == ["running", "running", "queued"]


def end_tree(pid):
    tree = [*processes.descendants(pid), pid]
    processes.send(tree, signal.SIGSTOP)  # nobody of it may answer the end of another
    processes.send(tree, signal.SIGKILL)


def look(watched, attempt):
    """State of the job after the agent looked."""
    watched.check(Attempt.objects.select_related("job").get(pk=attempt.pk))
    attempt.job.refresh_from_db()
    return attempt.job.state


def test_node_registration_says_which_image_its_jobs_run_in(node, contained):
    seen = registration.register("node1", [])

    assert (seen.sandbox_tier, seen.sandbox_words) == (4, "container")
    assert (seen.facts["container_engine"], seen.facts["container_image"]) == ("docker 1.0", "image")


@pytest.mark.parametrize(
    ("offer", "asked", "expected"),
    [
        (engines.Offer(why="no docker or podman answers here"), 2, ("ok", "no docker or podman answers here")),
        (engines.Offer(why="no docker or podman answers here"), 4, ("warning", "no docker or podman answers here")),
        (engines.Offer({"image": "lab/x"}, "podman 4.3.1"), 4, ("ok", "podman 4.3.1 runs jobs in lab/x")),
    ],
)
def test_doctor_misses_containers_only_where_they_are_configured(offer, asked, expected, monkeypatch):
    monkeypatch.setattr(tickets, "containers", lambda: offer)
    monkeypatch.setattr(env, "SANDBOX_TIER", asked)

    found = list(doctor._containers())

    assert [(finding.level.lower(), finding.text) for finding in found] == [expected]
