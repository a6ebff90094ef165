"""A cast on a platform of its own processes, for faults."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tests.chaos import witness
from tests.running import wait_for

HELD = """
import os, pathlib, time
stop = pathlib.Path(os.environ["AIP_OUTPUT_DIR"], "end")
(stop.parent / f"began-{os.getpid()}").touch()
while not stop.exists():
    time.sleep(0.05)
"""


class Cast:
    """Putting jobs and looking at what became of them."""

    def __init__(self, root: Path) -> None:
        from tests.factories import people
        from workers.core.models import VirtualCluster

        self.root = root
        self.cluster = VirtualCluster.objects.get(name="default")
        self.owner = people.user("faults", cluster=self.cluster)
        self.slowest_s = 0.0

    def put(self, argv: list[str], cpus: float = 0.2):
        from workers.jobs import submission

        begun = time.monotonic()
        job = submission.submit(
            owner=self.owner, cluster=self.cluster, kind="command", name="fault", spec={"argv": argv}, cpus=cpus
        )
        self.slowest_s = max(self.slowest_s, time.monotonic() - begun)
        return job

    def lines(self, count: int, pause_s: float = 0.01):
        return self.put([sys.executable, "-c", Path(witness.__file__).read_text(), str(count), str(pause_s), "0"])

    def held(self):
        return self.put([sys.executable, "-c", HELD])

    def outputs(self, job, attempt: int = 1) -> Path:
        return self.root / "jobs" / str(job.pk) / str(attempt) / "outputs"

    def witnesses(self, job) -> list[Path]:
        return sorted((self.root / "jobs" / str(job.pk)).glob("*/outputs/witness-*.jsonl"))

    def is_in(self, job, *states: str) -> bool:
        job.refresh_from_db()
        return job.state in states

    def ran_once(self, jobs, seconds: float = 60) -> None:
        for job in jobs:
            wait_for(lambda job=job: self.is_in(job, "succeeded", "failed"), seconds, f"{job} did not end")
            ends = [f"{one.state} {one.reason} {one.message}" for one in job.attempts.order_by("number")]
            assert (job.state, job.attempt_number) == ("succeeded", 1), (str(job), ends)
            assert len(self.witnesses(job)) == 1
