"""What database and files say when everything rests, gathered for the checkers."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aiplatform.lib import claims
from tests import running
from tests.chaos import crowd_checker, lodging_checker, lodgings
from tests.chaos.checker import Findings, JobSeen, check
from tests.chaos.crowd_checker import Known
from tests.chaos.feeder import attempts_of

REST_S = 60.0
Facts = Sequence[Mapping[str, Any]]
Attempts = Mapping[int, set[int]]


def judge(
    root: Path, facts: Facts, killed: Attempts, orphaned: Attempts, closed: Attempts, findings: Findings
) -> dict[str, Any]:
    """Wait until nothing moves, compare everything with everything; figures about how much was compared.

    Args:
        killed, orphaned, closed: attempts, by job, whose program, supervisor or exec server was killed.
    """
    from django.db.models import Sum

    from workers.core.models import Allocation, Attempt, Device, Job
    from workers.core.states import FINAL
    from workers.execution.lost_attempts import MAX_LOSSES

    with contextlib.suppress(TimeoutError):
        running.wait_for(lambda: not Job.objects.exclude(state__in=FINAL).exists(), REST_S / running.PATIENCE, "", 0.5)
    orphans = running.processes_of(root)
    deadline = time.monotonic() + REST_S
    while orphans and time.monotonic() < deadline:
        time.sleep(0.5)
        orphans = running.processes_of(root)
    jobs = _jobs(facts, killed, orphaned)
    found = check(
        jobs, jobs, orphans=orphans,
        leases=Allocation.objects.filter(released_at=None).count(),
        used_shares=Device.objects.aggregate(sum=Sum("used"))["sum"] or 0,
        max_losses=MAX_LOSSES,
    )  # fmt: skip
    for rule, texts in found.broken.items():
        for text in texts:
            findings.add(rule, text)
    struck = {job: killed.get(job, set()) | orphaned.get(job, set()) for job in {*killed, *orphaned}}
    lived, images = lodgings.lodgings(struck, closed), lodgings.saved()
    lodging_checker.check(facts, lived, images, lodgings.unfinished(root), findings)
    known = {*jobs, *(row.job for row in lived)}
    unknown = Job.objects.exclude(pk__in=known).values_list("pk", "name")
    for number, name in unknown:
        findings.add("twice", f"job {number} ({name}) belongs to no submission")
    crowd_checker.check(facts, _known(facts), findings)
    kinds = Counter(fact["kind"] for fact in facts)
    return {
        "environments": len(lived), "images": dict(Counter(image.state for image in images)),
        "jobs": len(jobs), "attempts": Attempt.objects.count(),
        "states": dict(Counter(Job.objects.values_list("state", flat=True))),
        "lines": sum(a.log.count(b"\n") for job in jobs.values() for a in job.attempts),
        "ledger": dict(kinds), "rest": next((fact for fact in facts if fact["kind"] == "rest"), {}),
    }  # fmt: skip


def _jobs(facts: Facts, killed: Attempts, orphaned: Attempts) -> dict[int, JobSeen]:
    """Every job that some submission made, with what was asked of it."""
    from workers.core.models import Job

    asked = {fact["name"]: fact for fact in facts if fact["kind"] == "submit"}
    verbs: dict[int, set[str]] = {}
    for fact in facts:
        if fact["kind"] == "steer":
            verbs.setdefault(fact["job"], set()).add(fact["verb"])
    seen = {}
    for job in Job.objects.filter(name__in=asked).prefetch_related("attempts"):
        fact, pressed = asked[job.name], verbs.get(job.pk, set())
        seen[job.pk] = JobSeen(
            job.pk, job.state, fact["lines"], fact["exit_code"], attempts_of(job), frozenset(killed.get(job.pk, ())),
            "stop" in pressed, "finish" in pressed, frozenset(orphaned.get(job.pk, ())),
        )  # fmt: skip
    return seen


def _known(facts: Facts) -> Known:
    from annotation.models import Shape
    from workers.core.models import Job
    from workers.core.runs import RunDir

    jobs: dict[str, list[int]] = {}
    for number, name in Job.objects.values_list("pk", "name"):
        jobs.setdefault(name, []).append(number)
    shapes: dict[str, list[Any]] = {}
    for name, rings, deleted in Shape.objects.values_list("uuid", "rings", "deleted"):
        shapes.setdefault(str(name), []).append(None if deleted else rings)

    def log(job: int, attempt: int) -> bytes:
        path = RunDir.for_attempt(job, attempt).log
        return path.read_bytes() if path.exists() else b""

    return Known(jobs, shapes, _datasets(facts), log, _held())


def _datasets(facts: Facts) -> dict[str, list[list[str] | None]]:
    """Digests of what lies on the disk for each uploaded data set, once its import had time to end."""
    from datasets.models import Dataset, DatasetVersion, Import

    names = [fact["name"] for fact in facts if fact["kind"] == "upload"]
    with contextlib.suppress(TimeoutError):
        running.wait_for(
            lambda: not Import.objects.filter(state__in=Import.WORKING).exists(), 90 / running.PATIENCE, "", 0.5
        )
    found: dict[str, list[list[str] | None]] = {}
    for dataset in Dataset.objects.filter(name__in=names):
        version = next((one for one in DatasetVersion.objects.filter(dataset=dataset) if one.is_ready), None)
        sums = None
        if version is not None:
            files = [version.images_path / path for path in version.assets.values_list("path", flat=True)]
            sums = sorted(hashlib.sha256(file.read_bytes()).hexdigest() for file in files)
        found.setdefault(dataset.name, []).append(sums)
    return found


def _held() -> list[str]:
    """Rows somebody claims to work on though nobody does."""
    from accounts.models import IdempotencyRecord
    from annotation.models import Export
    from datasets.models import Import

    # one that a dead process held, or nobody yet, is free for the next request with its key
    begun = IdempotencyRecord.objects.filter(status=0).exclude(holder="")
    rows = [("request", row) for row in begun if not claims.is_gone(row.holder)]
    rows += [("import", row) for row in Import.objects.filter(state__in=Import.WORKING)]
    rows += [("failed import", row) for row in Import.objects.filter(state=Import.State.FAILED)]
    rows += [("export", row) for row in Export.objects.filter(state__in=[Export.State.QUEUED, Export.State.CONVERTING])]
    return [
        f"{kind} {row.pk} is still held by {row.holder or 'nobody'} {getattr(row, 'error', '')}" for kind, row in rows
    ]
