"""Eight jobs on four simulated cards: one paused, an urgent one first, the agent killed in between."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import running
from tests.running import printed, wait_for

pytestmark = pytest.mark.journey

SCRIPT = """
import os, pathlib, time
stop = pathlib.Path(os.environ["AIP_OUTPUT_DIR"], "end")
print(os.environ["AIP_JOB_ID"], os.environ["AIP_GPUS"], flush=True)
while not stop.exists():
    time.sleep(0.05)
"""


def run_here(root: Path) -> None:
    """The test's body, in a process of its own: settings are read once and must mean this folder."""
    import django

    django.setup()
    from accounts.access.permissions import SYSTEM_ADMIN, USER
    from accounts.models import Role, User
    from workers.core.models import Allocation, Device, Job, Membership, VirtualCluster
    from workers.jobs import actions, submission

    with running.platform(root, gpus=4) as platform:
        cluster = VirtualCluster.objects.get(name="default")
        alice = User.objects.create_user("alice")
        alice.roles.add(Role.objects.get(name=USER))
        olga = User.objects.create_user("olga")
        olga.roles.add(Role.objects.get(name=SYSTEM_ADMIN))
        for person in (alice, olga):
            Membership.objects.create(user=person, cluster=cluster)

        def put(name: str, owner: User, **more: object) -> Job:
            # A job ends when its own output folder holds a file named "end"; the test writes it from outside.
            spec = {"argv": ["python", "-c", SCRIPT]}
            return submission.submit(
                owner=owner, cluster=cluster, kind="command", name=name, spec=spec, gpus_per_node=1, **more
            )

        def end(job: Job) -> None:
            folder = root / "jobs" / str(job.pk) / str(job.attempt_number) / "outputs"
            (folder / "end").touch()

        def is_in(job: Job, *states: str) -> bool:
            job.refresh_from_db()
            return job.state in states

        first = [put(f"first{n}", alice) for n in range(4)]
        for job in first:
            wait_for(lambda job=job: is_in(job, "running"), 60, f"{job} did not start")
        second = [put(f"second{n}", alice) for n in range(4)]
        wait_for(lambda: all(is_in(job, "queued") and job.position for job in second), 30, "no place in the queue")
        assert all(job.wait_sentence for job in second)
        assert [job.position for job in second] == [1, 2, 3, 4]
        assert Device.objects.filter(kind="gpu", used=8, simulated=True).count() == 4

        # paused: the card stays held, nobody takes it
        actions.pause(first[0], by=alice)
        wait_for(lambda: is_in(first[0], "paused"), 30, "it was not paused")
        assert Allocation.objects.filter(attempt__job=first[0], released_at=None).exists()

        # an urgent job passes the four that wait, while the agent dies
        urgent = put("urgent", olga, priority=Job.URGENT)
        platform.parts["agent"].send(9)
        end(first[1])
        wait_for(lambda: is_in(urgent, "running"), 60, "the urgent job did not pass")
        assert all(is_in(job, "queued") for job in second)
        actions.resume(first[0], by=alice)
        wait_for(lambda: is_in(first[0], "running"), 30, "it did not go on")

        # everybody gets a turn, once, and all is given back
        everything = [*first, urgent, *second]
        for job in everything:
            wait_for(lambda job=job: is_in(job, "running", "succeeded"), 60, f"{job} did not start")
            end(job)
        wait_for(lambda: all(is_in(job, "succeeded") for job in everything), 60, "not all of them ended well")
        assert [job.attempt_number for job in everything] == [1] * 9
        assert not Allocation.objects.filter(released_at=None).exists()
        assert not Device.objects.filter(used__gt=0).exists()
        for job in everything:
            text = printed(root / "jobs" / str(job.pk) / "1" / "log.txt").split()
            assert text[0] == str(job.pk)
            assert text[1] == "1"


@pytest.mark.long
def test_scheduler_shares_four_cards_among_eight_jobs(tmp_path):
    import subprocess
    import sys

    code = f"from pathlib import Path; from {__name__} import run_here; run_here(Path({str(tmp_path)!r}))"
    environment = os.environ | running.environment(tmp_path, gpus=4)

    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=running.HERE, env=environment, capture_output=True, text=True, timeout=400, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
