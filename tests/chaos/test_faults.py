"""Faults one by one: the broker, the database, the order of messages, a scheduler in the middle of its work.

Each test has a platform of its own in a process of its own. `pytest -m chaos tests/chaos/test_faults.py`.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest

from tests import migrated, running
from tests.chaos.faults import Cast
from tests.running import apart, ended_well, printed, wait_for

pytestmark = pytest.mark.chaos

WRITERS, WRITES = 8, 40
COMMIT_KILLS = 30
FAST_S = 1.5  # for an answer while the broker is away; the machine may be busy
DEAF = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.fork()
print("deaf", flush=True)
while True:
    time.sleep(0.1)
"""
SCHEDULER = """
import os, signal, django
django.setup()
from django.db import transaction
from workers.scheduling.loop import Scheduler
from workers.execution import launch
die = lambda *_a, **_k: os.kill(os.getpid(), signal.SIGKILL)
launch.enqueue = launch.enqueue_each = {how}
Scheduler().run(lambda: False)
"""


def _platform_for(root: Path, body) -> None:
    import django

    django.setup()
    with running.platform(root) as platform:
        body(platform)


# --- 12, 13, 14, 16, 17, 42: the broker dies, forgets, hangs; messages are lost, doubled, late


def broker(root: Path) -> None:
    _platform_for(root, lambda platform: _broker(root, platform))


def _broker(root: Path, platform: running.Platform) -> None:
    from celery import current_app

    from workers.core import queues, scheduler_wakeup
    from workers.core.models import Attempt, Job, Node
    from workers.jobs import actions

    cast = Cast(root)
    cast.ran_once([cast.lines(1)])

    # doubled, and of a job that is gone
    gone, doubled = cast.lines(1), cast.lines(20)
    wait_for(lambda: Attempt.objects.filter(job__in=[gone, doubled]).count() == 2, 30, "not placed")
    cast.ran_once([gone])
    old = gone.attempts.get().pk
    Job.objects.filter(pk=gone.pk).delete()
    for attempt_id in [doubled.attempts.get().pk] * 3 + [old]:
        current_app.send_task("workers.start", kwargs={"attempt_id": attempt_id}, queue=queues.cpu(running.NODE))
    cast.ran_once([doubled])

    # forgets everything; then dies and comes back empty, jobs coming in meanwhile
    forgotten = [cast.lines(2) for _ in range(3)]
    scheduler_wakeup._client(0.5).flushall()
    platform.parts["valkey"].stop()
    shutil.rmtree(root / "run" / "broker")
    meanwhile = [cast.lines(2) for _ in range(3)]
    cast.ran_once([*forgotten, *meanwhile])  # all start messages were dropped
    print(f"broker dead: slowest submit {cast.slowest_s:.2f} s")
    assert cast.slowest_s < FAST_S
    platform.parts["valkey"] = running.Part(
        "valkey", platform.parts["valkey"].argv, root / "log" / "valkey.txt", platform.parts["valkey"].env
    )
    (root / "run" / "broker").mkdir()
    platform.parts["valkey"].start()
    wait_for(lambda: _pings(scheduler_wakeup._client(0.5)), 15, "the broker did not come back")
    cast.ran_once([cast.lines(2)])

    # hangs: submits are answered, jobs go on, start and stop, the node is heard
    long, deaf = cast.lines(2000, 0.02), cast.put([sys.executable, "-c", DEAF])
    wait_for(lambda: cast.is_in(long, "running") and cast.is_in(deaf, "running"), 30, "not running")
    log = root / "jobs" / str(deaf.pk) / "1" / "log.txt"
    wait_for(lambda: log.exists() and b"deaf\n" in log.read_bytes(), 15, "it says nothing")
    cast.slowest_s = 0.0
    platform.parts["valkey"].send(signal.SIGSTOP)
    hung = time.monotonic()
    try:
        actions.stop(deaf, by=cast.owner)
        asked = time.monotonic()
        cast.slowest_s = asked - hung  # the first to meet a broker that hangs waits the longest
        late = [cast.lines(2) for _ in range(4)]
        assert cast.slowest_s < FAST_S, f"a submit took {cast.slowest_s:.2f} s"
        wait_for(lambda: not _alive(deaf.pk), 30, "the deaf job lives")
        ended_s = time.monotonic() - asked
        cast.ran_once(late)
        for _beat in range(2):  # a beat that began before may still arrive: the second one tells
            seen = Node.objects.get().heartbeat_at
            wait_for(lambda seen=seen: Node.objects.get().heartbeat_at > seen, 30, "the agent hangs with the broker")
        wait_for(lambda: time.monotonic() - hung > 20, 30, "")
        assert Node.objects.get().state == "live"
        assert cast.is_in(long, "running")
        print(f"broker hung: slowest submit {cast.slowest_s:.2f} s; the deaf job gone after {ended_s:.1f} s")
        assert 9 < ended_s < 16  # 10 s of grace; the agent's way there and a busy machine beside
        wait_for(lambda: cast.is_in(deaf, "stopped"), 15, "its end was not written")
    finally:
        platform.parts["valkey"].send(signal.SIGCONT)
    cast.ran_once([cast.lines(2)])
    actions.stop(long, by=cast.owner)
    wait_for(lambda: cast.is_in(long, "stopped"), 30, "not stopped")
    assert not running.processes_of(root)


def _alive(job: int) -> list[int]:
    root = os.environ["AIP_DATA_ROOT"]
    return list(running.processes_of(Path(root) / "jobs" / str(job) / "1"))


def _pings(client) -> bool:
    with contextlib.suppress(Exception):
        return bool(client.ping())
    return False


# --- 39, 46, 49: workers at full output, a scheduler in the middle, everything at once; a locked database


def processes(root: Path) -> None:
    _platform_for(root, lambda platform: _processes(root, platform))


def _processes(root: Path, platform: running.Platform) -> None:
    from django.db import connection
    from django.utils.timezone import now

    from workers.core.models import Allocation, Device, Lease

    cast = Cast(root)
    # 1,000 lines a second while who watches is killed; then nobody else may write for six seconds
    loud = cast.lines(4000, 0.0005)
    wait_for(lambda: cast.is_in(loud, "running"), 60, "not running")
    for _kill in range(3):
        platform.parts["agent"].send(signal.SIGKILL)
        platform.parts["cpu"].send(signal.SIGKILL)
        wait_for(lambda: platform.parts["agent"].pid and platform.parts["cpu"].pid, 15, "not started again")
    cast.ran_once([loud])
    log = printed(root / "jobs" / str(loud.pk) / "1" / "log.txt").splitlines()
    assert [line.split()[1] for line in log] == [f"{n:06d}" for n in range(1, 4001)]
    starts = {name: platform.parts[name].starts for name in ("agent", "scheduler")}
    began = time.monotonic()
    with contextlib.closing(_raw(root)) as raw:
        raw.execute("BEGIN EXCLUSIVE")
        wait_for(lambda: time.monotonic() - began > 6, 10, "")
        raw.execute("ROLLBACK")
    cast.ran_once([cast.lines(2)])
    assert {name: platform.parts[name].starts for name in starts} == starts

    # a scheduler dies inside the reservation, and right after it
    for how in ("die", "lambda *_a, **_k: transaction.on_commit(die)"):
        platform.parts["scheduler"].stop()
        Lease.objects.update(holder="", renewed_at=now() - timedelta(hours=1))  # only the next death waits it out
        job = cast.lines(2)
        done = subprocess.run(
            [sys.executable, "-c", SCHEDULER.format(how=how)], cwd=running.HERE, timeout=60, check=False
        )
        assert done.returncode == -signal.SIGKILL
        platform.parts["scheduler"] = part = running.Part(
            "scheduler", [sys.executable, running.MANAGE, "scheduler"], root / "log" / "scheduler.txt"
        )
        part.start()
        cast.ran_once([job], 40)
    assert not Allocation.objects.filter(released_at=None).exists()

    # everything at once, the supervisor of one job with it
    kept, orphaned = cast.held(), cast.held()
    for job in (kept, orphaned):
        wait_for(lambda job=job: list(cast.outputs(job).glob("began-*")), 60, "not running")
        wait_for(lambda job=job: cast.is_in(job, "running"), 30, "not running")
    queue = [cast.lines(5) for _ in range(6)]
    supervisor = json.loads((root / "jobs" / str(orphaned.pk) / "1" / "supervisor.json").read_text())
    os.kill(int(supervisor["pid"]), signal.SIGKILL)
    connection.close()
    for part in platform.parts.values():
        part.send(signal.SIGKILL)
    killed = time.monotonic()
    wait_for(lambda: list(cast.outputs(orphaned, 2).glob("began-*")), 60, "the orphaned job was not run again")
    for job, attempt in ((kept, 1), (orphaned, 2)):
        (cast.outputs(job, attempt) / "end").touch()
        wait_for(lambda job=job: cast.is_in(job, "succeeded"), 60, "it did not end")
        assert job.attempt_number == attempt
        assert len(list((root / "jobs" / str(job.pk)).glob("*/outputs/began-*"))) == attempt
    cast.ran_once(queue)
    normal_s = time.monotonic() - killed
    print(f"everything killed: normal after {normal_s:.1f} s")
    assert normal_s < 60
    assert not Allocation.objects.filter(released_at=None).exists()
    assert not Device.objects.filter(used__gt=0).exists()
    assert not running.processes_of(root)


def _raw(root: Path):
    import sqlite3

    return sqlite3.connect(root / "aiplatform.sqlite3", isolation_level=None, timeout=30)


# --- 22, 23: many writers, and a SIGKILL inside a commit


def database(root: Path) -> None:
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connection

    from workers.core.models import Lease, Node

    migrated.begin(root)
    call_command("migrate", interactive=False, verbosity=0)
    Lease.objects.create(name="sum", holder="", epoch=0)
    connection.close()
    fork = multiprocessing.get_context("fork")
    writers = [fork.Process(target=_write, args=(n,)) for n in range(WRITERS)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
    assert [writer.exitcode for writer in writers] == [0] * WRITERS  # "database is locked" would end one with 1
    assert Lease.objects.get(name="sum").epoch == WRITERS * WRITES
    assert Node.objects.count() == WRITERS * WRITES
    connection.close()

    rng = random.Random(23)
    acknowledged = 0
    for kill in range(COMMIT_KILLS):
        ours, theirs = os.pipe()
        victim = fork.Process(target=_acknowledge, args=(kill, theirs))
        victim.start()
        os.close(theirs)
        told = os.read(ours, 4)
        time.sleep(rng.uniform(0, 0.03))  # where in a commit it dies is chance; nothing is decided by it
        victim.kill()
        victim.join()
        while part := os.read(ours, 65536):
            told += part
        os.close(ours)
        whole = len(told) // 4
        acknowledged += whole
        kept = set(Node.objects.filter(name__startswith=f"kill{kill}-").values_list("name", flat=True))
        assert {f"kill{kill}-{n}" for n in range(whole)} <= kept
        connection.close()
    with contextlib.closing(_raw(root)) as raw:
        assert raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert raw.execute("PRAGMA foreign_key_check").fetchall() == []
    print(f"{COMMIT_KILLS} kills in commits, {acknowledged} acknowledged rows all there")


def _write(writer: int) -> None:
    from django.db import transaction

    from workers.core.models import Lease, Node

    for number in range(WRITES):
        with transaction.atomic():
            lease = Lease.objects.get(name="sum")
            Node.objects.create(name=f"writer{writer}-{number}")
            lease.epoch += 1
            lease.save()


def _acknowledge(kill: int, pipe: int) -> None:
    from workers.core.models import Node

    number = 0
    while True:
        Node.objects.create(name=f"kill{kill}-{number}")
        os.write(pipe, number.to_bytes(4, "big"))
        number += 1


@pytest.fixture(scope="module")
def under_way(request, tmp_path_factory):
    """The chosen tests' processes, all at once: most of their time is waiting for time-outs."""
    chosen = [item.callspec.params["body"] for item in request.session.items if item.module is request.module]
    started = {}
    for body in chosen:
        root = tmp_path_factory.mktemp(body.__name__)
        call, told = f"{body.__name__}(Path({str(root)!r}))", root / "told.txt"
        started[body] = apart(__name__, call, told, os.environ | running.environment(root)), told
    yield started
    for process, _told in started.values():
        process.kill()
        process.wait()


@pytest.mark.parametrize("body", [broker, processes, database], ids=lambda body: body.__name__)
def test_platform_survives_fault(body, under_way):
    ended_well(*under_way[body], 300)
