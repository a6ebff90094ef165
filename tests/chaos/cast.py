"""Jobs that write checkpoints until they are told to end, on chosen machines of a cluster."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

from tests.nodes import Cluster
from tests.running import wait_for

SAVES = """
import json, os, pathlib, shutil, time, uuid
out, home = (pathlib.Path(os.environ[name]) for name in ("AIP_OUTPUT_DIR", "AIP_CHECKPOINT_DIR"))
resume = os.environ.get("AIP_RESUME_FROM")
step = json.loads((pathlib.Path(resume) / "meta.json").read_text())["step"] if resume else 0
(out / f"began-{step}-{uuid.uuid4().hex}").touch()
while not (out / "end").exists():
    step += 1
    part = home / f"step-{step:06d}.tmp"
    part.mkdir()
    (part / "meta.json").write_text(json.dumps({"step": step}))
    part.rename(home / f"step-{step:06d}")
    for old in sorted(home.glob("step-*"))[:-3]:
        shutil.rmtree(old)
    print("step", step, flush=True)
    time.sleep(0.2)
"""


class Cast:
    """Jobs on chosen machines, and what became of them."""

    def __init__(self, cluster: Cluster) -> None:
        from accounts.services import tokens
        from tests.factories import people
        from workers.core.models import VirtualCluster

        self.cluster = cluster
        self.vc = VirtualCluster.objects.get(name="default")
        self.owner = people.user("faults", cluster=self.vc)
        self.token = tokens.issue(user=self.owner, name="test")[1]

    def start(self, node: str):
        """A job that runs on `node` until its `end` file is made, writing checkpoints meanwhile."""
        from workers.core.models import Node
        from workers.jobs import submission
        from workers.resources.nodes import lifecycle

        others = Node.objects.exclude(name=node).filter(drain=False).exclude(state=Node.State.REMOVED)
        for other in others:
            lifecycle.drain(other)
        job = submission.submit(
            owner=self.owner, cluster=self.vc, kind="command", name=f"on {node}", cpus=0.5,
            spec={"argv": [sys.executable, "-c", SAVES]},
        )  # fmt: skip
        wait_for(lambda: self.begun(job), 30, f"{job} did not start on {node}")
        wait_for(lambda: self.state(job) == "running", 30, f"{job} is not called running")
        assert self.places(job) == {node}
        for other in Node.objects.filter(drain=True).exclude(name="server"):
            lifecycle.undrain(other)
        self.steps(job, 1)
        return job

    def folder(self, job, attempt: int = 1) -> Path:
        return self.cluster.root / "shared" / "jobs" / str(job.pk) / str(attempt)

    def begun(self, job, attempt: int = 1) -> list[int]:
        """At which step each process of an attempt began."""
        return [int(path.name.split("-")[1]) for path in self.folder(job, attempt).glob("outputs/began-*")]

    def steps(self, job, more: int, attempt: int = 1) -> None:
        """Wait until its log is longer by some lines."""
        log = self.folder(job, attempt) / "log.txt"
        size = log.stat().st_size if log.exists() else 0
        wait_for(lambda: log.exists() and log.stat().st_size > size + 5 * more, 30, f"{job} does not go on")

    def state(self, job) -> str:
        job.refresh_from_db()
        return job.state

    def places(self, job) -> set[str]:
        return set(job.attempts.filter(ended_at=None).values_list("allocations__node__name", flat=True))

    def finish(self, job, attempt: int = 1) -> None:
        """Let it end well, once, by this attempt."""
        (self.folder(job, attempt) / "outputs" / "end").touch()
        wait_for(lambda: self.state(job) == "succeeded", 30, f"{job} did not end: {job.state} {job.message!s}")
        assert job.attempt_number == attempt
        assert len(self.begun(job, attempt)) == 1
        assert not job.attempts.get(number=attempt).allocations.filter(released_at=None).exists()

    def running(self, machine, job, attempt: int = 1) -> list[int]:
        """User processes of an attempt on a machine."""
        mark = f"AIP_OUTPUT_DIR={self.folder(job, attempt)}/outputs".encode()
        found = []
        for pid in machine.pids():
            with contextlib.suppress(OSError):
                if mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                    found.append(pid)
        return found
