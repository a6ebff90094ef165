"""A machine, and a job placed on it that only has to be launched."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import pytest

from tests.factories import work
from tests.running import printed, wait_for
from workers.core.kinds import Launch
from workers.core.runs import RunDir
from workers.execution import launch as launching
from workers.jobs import submission
from workers.scheduling import placing
from workers.supervisor import records


@pytest.fixture
def node(db, settings):
    settings.NODE = "node1"
    return work.node(gpus=2, simulated=True)


@pytest.fixture
def placed(alice, cluster, node, kind):
    def one(argv, **launch):
        kind.prepare = lambda job, attempt, run: Launch(argv=argv, **launch)
        job = submission.submit(owner=alice, cluster=cluster, kind="command", name="a", gpus_per_node=1)
        card = node.devices.get(kind="gpu", index=1)
        return job, placing.place(job.pk, [(node.pk, [(card.pk, 8)])])

    return one


def ended(job):
    """The exit record, as soon as it is there."""
    path = RunDir.for_attempt(job.pk, 1).path / records.EXIT
    deadline = time.monotonic() + 90
    while records.read(path) is None:
        assert time.monotonic() < deadline, "no exit record"
        time.sleep(0.02)
    return records.read(path)


@pytest.fixture
def reachable(placed, kind, settings):
    """A job that runs, with an exec server beside it."""
    kind.exec_server = True
    with tempfile.TemporaryDirectory(prefix="aip-r-") as folder:
        settings.RUN_DIR = Path(folder)
        job, attempt = placed(["sh", "-c", "echo up; exec sleep 600"])
        launching.start(attempt.pk)
        run = RunDir.for_attempt(job.pk, 1)
        wait_for(lambda: (run.path / records.SUPERVISOR).exists() and "up" in printed(run.log))
        job.refresh_from_db()
        yield job
        records.write_request(run.path, "kill")
        wait_for(lambda: records.read(run.path / records.EXIT))
