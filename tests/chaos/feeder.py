"""Jobs put from beside the platform, their buttons, and what became of them."""

from __future__ import annotations

import contextlib
import json
import random
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from django.db import InterfaceError, OperationalError, connection

from aiplatform.lib.errors import DomainError
from tests.chaos import witness
from tests.chaos.checker import AttemptSeen, JobSeen
from tests.factories import people
from workers.core.models import Job, VirtualCluster
from workers.core.runs import RunDir
from workers.core.states import FINAL
from workers.jobs import actions, submission

IN_FLIGHT = 8


@dataclass
class Record:
    """What the run itself did to jobs, to be compared with what became of them."""

    accepted: dict[int, tuple[int, int]] = field(default_factory=dict)  # job → (lines, exit code)
    killed_programs: set[tuple[int, int]] = field(default_factory=set)  # (job, attempt)
    stopped: set[int] = field(default_factory=set)
    paused: set[int] = field(default_factory=set)


def owner_and_cluster():
    cluster = VirtualCluster.objects.get_or_create(name="default")[0]
    return people.user("chaos", cluster=cluster), cluster


@contextlib.contextmanager
def _tolerant():
    """A database that is away, or a refusal, is part of the run: the next try comes on a new connection."""
    try:
        yield
    except DomainError:
        pass
    except (OperationalError, InterfaceError):
        connection.close()


def feed(rng: random.Random, record: Record, owner, cluster, over: threading.Event, cards=(0, 0, 1)) -> None:
    """Keep some jobs in flight, and press buttons of some of them."""
    code = Path(witness.__file__).read_text()
    while not over.is_set():
        with _tolerant():
            if Job.objects.exclude(state__in=FINAL).count() < IN_FLIGHT:
                lines, exit_code = rng.randint(5, 60), rng.choice([0, 0, 0, 0, 3])
                argv = [sys.executable, "-c", code, str(lines), "0.05", str(exit_code)]
                job = submission.submit(
                    owner=owner, cluster=cluster, kind="command", name="witness", spec={"argv": argv},
                    gpus_per_node=rng.choice(cards), cpus=0.5,
                )  # fmt: skip
                record.accepted[job.pk] = (lines, exit_code)
            _press(rng, record)
        over.wait(rng.uniform(0.05, 0.3))
    for number in record.paused:
        for _try in range(50):
            with _tolerant():
                actions.resume(Job.objects.get(pk=number))
                break
            with _tolerant():
                if Job.objects.get(pk=number).state in FINAL:
                    break
            time.sleep(0.2)
    connection.close()


def _press(rng: random.Random, record: Record) -> None:
    number = rng.choice(list(record.accepted)) if record.accepted and rng.random() < 0.2 else None
    if number is None:
        return
    job = Job.objects.get(pk=number)
    if job.state in FINAL:
        return
    if number in record.paused:
        actions.resume(job)
        record.paused.discard(number)
    elif rng.random() < 0.3:
        record.stopped.add(number)
        actions.stop(job)
    else:
        actions.pause(job)
        record.paused.add(number)


def all_ended(record: Record) -> bool:
    return not Job.objects.filter(pk__in=record.accepted).exclude(state__in=FINAL).exists()


def tried(what, *given) -> bool:
    try:
        return what(*given)
    except (OperationalError, InterfaceError):
        connection.close()
        return False


def seen(number: int, record: Record) -> JobSeen | None:
    job = Job.objects.filter(pk=number).first()
    if job is None:
        return None
    lines, exit_code = record.accepted[number]
    killed = frozenset(attempt for job_id, attempt in record.killed_programs if job_id == number)
    return JobSeen(number, job.state, lines, exit_code, attempts_of(job), killed, number in record.stopped)


def attempts_of(job: Job) -> list[AttemptSeen]:
    """A job's attempts with their logs, and what the processes that ran for them saw."""
    attempts = []
    for row in sorted(job.attempts.all(), key=lambda attempt: attempt.number):
        run = RunDir.for_attempt(job.pk, row.number)
        witnesses = [
            [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
            for path in sorted(run.outputs.glob("witness-*.jsonl"))
        ]
        text = run.log.read_bytes() if run.log.exists() else b""
        attempts.append(
            AttemptSeen(row.number, row.state, row.reason, str(row.message), row.ended_at is not None, text, witnesses)
        )
    return attempts
