"""Two trainings make room for urgent work, each in the middle of a checkpoint, and go on afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import running
from tests.running import printed, wait_for

pytestmark = pytest.mark.journey

# Counts steps and keeps a checkpoint after every fifth, slowly: two seconds lie between its first file and its name.
TRAINING = """
import json, os, pathlib, sys, time
home = pathlib.Path(os.environ["AIP_CHECKPOINT_DIR"])
control = pathlib.Path(os.environ["AIP_CONTROL_FILE"])
resume = os.environ["AIP_RESUME_FROM"]
step = json.loads(pathlib.Path(resume, "meta.json").read_text())["step"] if resume else 0
print("from", step, flush=True)

def keep():
    part = home / f".step-{step:06d}"
    part.mkdir()
    (part / "state").write_text(str(step))
    print("writing", step, flush=True)
    time.sleep(2)
    (part / "meta.json").write_text(json.dumps({"step": step}))
    part.rename(home / f"step-{step:06d}")

while not pathlib.Path(os.environ["AIP_OUTPUT_DIR"], "end").exists():
    step += 1
    time.sleep(0.05)
    if step % 5 == 0:
        keep()
    if control.exists() and control.read_text() == "suspend":
        keep()
        sys.exit(75)
"""
# One whole checkpoint, then it hangs for ever in the middle of the second, deaf to everything.
DEAF = """
import json, os, pathlib, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
home = pathlib.Path(os.environ["AIP_CHECKPOINT_DIR"])
resume = os.environ["AIP_RESUME_FROM"]
print("from", json.loads(pathlib.Path(resume, "meta.json").read_text())["step"] if resume else 0, flush=True)
for step in (1, 2):
    folder = home / f"step-{step:06d}"
    folder.mkdir()
    if step == 1:
        (folder / "meta.json").write_text(json.dumps({"step": step}))
print("writing 2", flush=True)
while not pathlib.Path(os.environ["AIP_OUTPUT_DIR"], "end").exists():
    time.sleep(0.05)
"""
HELD = """
import os, pathlib, time
while not pathlib.Path(os.environ["AIP_OUTPUT_DIR"], "end").exists():
    time.sleep(0.05)
"""


def run_here(root: Path) -> None:
    """The test's body, in a process of its own: settings are read once and must mean this folder."""
    import django

    django.setup()
    from accounts.access.permissions import SYSTEM_ADMIN
    from tests.factories import people
    from workers.core.models import Allocation, Device, Job, VirtualCluster
    from workers.jobs import submission

    with running.platform(root, gpus=2):
        cluster = VirtualCluster.objects.get(name="default")
        alice, olga = people.user("alice", cluster=cluster), people.user("olga", role=SYSTEM_ADMIN, cluster=cluster)

        def put(name: str, owner, script: str, *, listens: bool = False, **more) -> Job:
            spec = {"argv": ["python", "-c", script], "checkpoints": listens}
            return submission.submit(
                owner=owner, cluster=cluster, kind="command", name=name, spec=spec, gpus_per_node=1, **more
            )

        def folder(job: Job) -> Path:
            return root / "jobs" / str(job.pk) / str(job.attempt_number)

        def says(job: Job, words: str) -> bool:
            log = folder(job) / "log.txt"
            return log.exists() and words in printed(log)

        def is_in(job: Job, *states: str) -> bool:
            job.refresh_from_db()
            return job.state in states

        victim = put("victim", alice, TRAINING, listens=True, preemptible=True)
        deaf = put("deaf", alice, DEAF, preemptible=True)
        for job in (victim, deaf):
            wait_for(lambda job=job: is_in(job, "running"), 60, f"{job} did not start")
        places = {job.pk: job.queued_at for job in (victim, deaf)}
        later = put("later", alice, HELD)
        wait_for(lambda: says(victim, "writing 5\n") and says(deaf, "writing 2\n"), 60, "no checkpoint begun")

        urgent = [put(f"urgent{n}", olga, HELD, priority=Job.URGENT) for n in range(2)]
        wait_for(lambda: is_in(victim, "queued", "preempting"), 30, "it was not asked")
        said = [str(event.message) for event in victim.events.filter(event="room_requested")]
        assert any(f"job {victim.makes_room_for}" in text for text in said)
        for job in urgent:
            wait_for(lambda job=job: is_in(job, "running"), 60, f"{job} got no card")
        for job in (victim, deaf, later):
            assert is_in(job, "queued"), job.state
        assert not str(victim.attempts.get(number=1).message).startswith("Did not"), str(victim.message)
        assert str(deaf.attempts.get(number=1).message).startswith("Did not exit in time")
        assert {job.pk: job.queued_at for job in (victim, deaf)} == places
        kept = max((folder(victim) / "checkpoints").glob("step-*")).name
        assert victim.resume_from.endswith(kept)
        assert deaf.resume_from.endswith("step-000001")  # the second was never whole

        for job in urgent:
            (folder(job) / "outputs" / "end").touch()
        for job in (victim, deaf):
            wait_for(lambda job=job: is_in(job, "running"), 60, f"{job} did not go on")
            assert job.attempt_number == 2
        assert is_in(later, "queued")  # it came after them, and still does
        step = int(kept.removeprefix("step-"))
        wait_for(lambda: says(victim, f"from {step}\n") and says(deaf, "from 1\n"), 30, "not from its checkpoint")
        for job in (victim, deaf, later):
            wait_for(lambda job=job: is_in(job, "running"), 60, f"{job} did not run")
            (folder(job) / "outputs" / "end").touch()
            wait_for(lambda job=job: is_in(job, "succeeded"), 60, f"{job} did not end well")
        assert not Allocation.objects.filter(released_at=None).exists()
        assert not Device.objects.filter(used__gt=0).exists()


@pytest.mark.long
def test_f45_preemption_gives_urgent_work_room_and_loses_nothing(tmp_path):
    code = f"from pathlib import Path; from {__name__} import run_here; run_here(Path({str(tmp_path)!r}))"
    environment = os.environ | running.environment(tmp_path, gpus=2) | {"AIP_MIN_RUN_S": "1"}

    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=running.HERE, env=environment, capture_output=True, text=True, timeout=400, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
