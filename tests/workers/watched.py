"""A job as the agent watches it: files of its run as its supervisor would write them, and one look at them."""

from __future__ import annotations

import os

from tests.factories import work
from workers.core.models import Attempt
from workers.execution.agent.attempt_monitor import AttemptMonitor
from workers.supervisor import records


def ended(job, **record):
    records.write(work.run_dir(job).path / records.EXIT, {"code": 1, "signal": None, "requested": "run", **record})


def look(job):
    AttemptMonitor(seen := Attempt.objects.select_related("job").get(job=job, ended_at=None)).check(seen)
    job.refresh_from_db()
    return job


def records_of_this_process():
    pid = os.getpid()
    return {"pid": pid, "start_ticks": records.start_ticks(pid), "boot_id": records.boot_id(), "child": {"pid": pid}}
