"""Fetch what servers have counted and kept, every 20 seconds, and what they leave when they are stopped.

What a killed server had counted since the last time is lost.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from django.utils.timezone import now

from aiplatform.lib.errors import DomainError
from inference.kit.models.statistics import LEFT
from inference.registry import drift, model_jobs, sweeps
from inference.registry.models import ModelVersion
from inference.serving import addresses, endpoints, requests
from inference.serving.feedback import samples
from inference.serving.limits import limits_of
from inference.serving.models import Service
from inference.serving.monitoring import rollups
from inference.serving.monitoring.models import ServiceStatistics
from inference.serving.server import image_sampling
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir

log = logging.getLogger(__name__)
RETENTION = timedelta(days=90)
MAX_BYTES = 4 << 20
AT_ONCE = image_sampling.MAX_SAMPLES
MAX_CLOCK_DRIFT_S = 6 * 3600  # of the hours that a server tells
BUDGET_S = 30.0  # of one round; who did not have a turn has one in the next


def collect(service: Service) -> None:
    """Fetch from all servers of a service that answer."""
    for job, version in _servers(service):
        try:
            _fetch(service, job, version)
        except (*requests.FAILURES, RecursionError, LookupError, TypeError, AttributeError) as exc:
            log.info("service=%s job=%s tells no statistics: %r", service.pk, job.pk, exc)


def _servers(service: Service) -> Iterator[tuple[Job, int | None]]:
    if service.job is not None and service.answers:
        yield service.job, service.model_version_id
    for row in service.replicas.select_related("job"):
        if row.answers:
            yield row.job, row.version_id
    for trial in service.trials.filter(outcome="").select_related("job"):
        if trial.answers and trial.job is not None:
            yield trial.job, trial.version_id


def _fetch(service: Service, job: Job, version: int | None) -> None:
    where = addresses.place(job, service.pk, version)
    if where is None:
        return
    headers = {endpoints.KEY_HEADER: endpoints.key_for(job.pk, job.attempt_number)}
    with requests.connected(where) as connection:
        status, body = requests.send(connection, "GET", f"{where.prefix}/statistics", headers, max_bytes=MAX_BYTES)
        store_counts(service, job, version, json.loads(body) if status == 200 else {})
        limits = limits_of(service)
        if not limits["keep_percent"] and not limits["keep_below"]:
            return
        for _number in range(AT_ONCE if samples.has_room(service) else 0):
            empty_headers, max_bytes = headers | {"Content-Length": "0"}, samples.MAX_BYTES + MAX_BYTES
            status, body = requests.send(connection, "POST", f"{where.prefix}/kept", empty_headers, max_bytes=max_bytes)
            if status != 200:
                return
            _sample(service, body)


def store_counts(service: Service, job: Job, version: int | None, counts_by_hour: object) -> None:
    """Store the counts of a server, by the hour."""
    for hour, counts in counts_by_hour.items() if isinstance(counts_by_hour, dict) else ():
        _store_hour(service, job, version, hour, counts)


def store_last_counts(job: Job, attempt: Attempt) -> None:
    """Store the counts that a server wrote when it was stopped."""
    service = Service.objects.filter(pk=job.spec.get("service")).first()
    counts = model_jobs.read(RunDir.for_attempt(job.pk, attempt.number).outputs, LEFT)
    if service is not None and counts:
        store_counts(service, job, job.spec.get("model_version"), counts)


def store_last_host_counts(job: Job, attempt: Attempt) -> None:
    """Store the counts of a shared process: each service wrote its own into a folder."""
    outputs = RunDir.for_attempt(job.pk, attempt.number).outputs
    for entry in outputs.iterdir() if outputs.is_dir() else ():
        pair = addresses.ids(entry.name)
        service = Service.objects.filter(pk=pair[0], owner=job.owner_id).first() if pair else None
        counts = model_jobs.read(outputs, f"{entry.name}/{LEFT}") if service is not None else {}
        if pair is not None and service is not None and counts:
            store_counts(service, job, pair[1], counts)


def _store_hour(service: Service, job: Job, version: int | None, hour: object, reported: object) -> None:
    tally = drift.validate(reported)
    begins = int(hour) if isinstance(hour, str) and hour.isascii() and hour.isdigit() and len(hour) < 12 else 0
    if tally is None or begins % 3600 or abs(begins - now().timestamp()) > MAX_CLOCK_DRIFT_S or not tally["images"]:
        return
    version_row = ModelVersion.objects.filter(pk=version or 0).first()
    values = {
        "service": service,
        "version": version_row,
        "begins_at": datetime.fromtimestamp(begins, UTC),
        "images": tally["images"],
        "tally": tally,
    }
    slot = f"{job.pk}:{job.attempt_number}:{begins}"
    if addresses.is_shared(job):
        slot += f":{addresses.name_of(service.pk, version or 0)}"
    ServiceStatistics.objects.update_or_create(slot=slot, defaults=values)


def _sample(service: Service, body: bytes) -> None:
    head, _line, picture = body.partition(b"\n")
    header = json.loads(head)
    why = header.get("why")
    try:
        if why in (image_sampling.LOW, image_sampling.CHANCE):
            samples.store(holder=service, picture=picture, answers=header.get("answers"), by=None, why=why)
    except DomainError as refusal:  # full, or not what it should be: the rule goes on when there is room
        log.info("service=%s keeps no picture: %s", service.pk, refusal)


def sweep() -> None:
    """Collect from all services that answer, in any order, and forget counts after 90 days."""
    began = time.monotonic()
    rows = Service.objects.filter(asleep_at=None).exclude(job=None).exclude(ready_attempt=0).order_by("?")
    for service in rows.select_related("job", "owner", "model_version__model"):
        if time.monotonic() - began > BUDGET_S:
            break
        with sweeps.kept_apart(f"service={service.pk} its statistics are not collected"):
            collect(service)
    ServiceStatistics.objects.filter(begins_at__lt=now() - RETENTION).delete()
    rollups.roll_up()
