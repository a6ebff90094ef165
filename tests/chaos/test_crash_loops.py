"""Broker, scheduler and agent die again and again; then `up` itself. Jobs keep beginning all the while."""

from __future__ import annotations

import itertools
import os
import signal
import time
from pathlib import Path

import pytest

from tests import running
from tests.chaos.faults import Cast
from tests.chaos.upkeep import Upkeep, processes
from tests.running import apart, ended_well, free_port, wait_for

SECONDS = float(os.environ.get("AIP_CRASH_LOOP_SECONDS", "0"))
pytestmark = [pytest.mark.chaos, pytest.mark.skipif(not SECONDS, reason="takes minutes: AIP_CRASH_LOOP_SECONDS=120")]
LIVES_S = 6.0  # each of the three, long enough to begin its work
LOOP = ("broker", "scheduler", "agent")


def body(root: Path) -> None:
    import django

    django.setup()
    from workers.core.models import Allocation, Device

    port = free_port()
    os.environ["AIP_PORT"] = str(port)
    upkeep = Upkeep(root, port)
    try:
        upkeep.start()
        cast = Cast(root)
        first = cast.lines(3)
        cast.ran_once([first])
        begun, jobs, deaths = time.monotonic(), [], 0
        while time.monotonic() - begun < SECONDS:
            jobs.append(cast.lines(3))
            for found in processes(root):
                if found.kind in LOOP and found.age_s() > LIVES_S:
                    deaths += found.send(signal.SIGKILL)
            time.sleep(1.5)
        during = [job for job in jobs if cast.witnesses(job)]
        cast.ran_once(jobs)
        starts = sorted(job.attempts.get().started_at.timestamp() for job in (first, *jobs))
        longest_s = max(later - earlier for earlier, later in itertools.pairwise(starts))
        print(f"{deaths} deaths in {SECONDS:.0f} s: {len(during)} of {len(jobs)} jobs began meanwhile")
        print(f"longest time without a beginning: {longest_s:.1f} s")

        held, killed = cast.held(), time.monotonic()
        wait_for(lambda: list(cast.outputs(held).glob("began-*")), 60, "not running")
        for found in processes(root):
            if found.kind == "up":
                found.send(signal.SIGKILL)
        wait_for(lambda: upkeep.starts > 1 and upkeep.words().count("ready in") > 1, 120, "up did not come back", 0.2)
        cast.ran_once([cast.lines(3)])
        print(f"up killed: the next job ended {time.monotonic() - killed:.1f} s later")
        (cast.outputs(held) / "end").touch()
        wait_for(lambda: cast.is_in(held, "succeeded"), 60, "it did not end")
        assert held.attempt_number == 1
        assert not Allocation.objects.filter(released_at=None).exists()
        assert not Device.objects.filter(used__gt=0).exists()
        assert not running.processes_of(root)
    finally:
        upkeep.stop()


@pytest.mark.long
def test_jobs_begin_though_everything_dies_again_and_again(tmp_path):
    told = tmp_path / "told.txt"
    call, settings = f"body(Path({str(tmp_path)!r}))", os.environ | running.environment(tmp_path)
    ended_well(apart(__name__, call, told, settings), told, 400 + 4 * SECONDS)
