"""A version that is tried at a service: its server runs, and gets its part of the requests."""

from __future__ import annotations

from inference.serving.models import ServiceTrial
from inference.serving.traffic import trials
from inference.tasks import sweep
from tests.inference.running import set_state


def tried(service, newer, alice, places, port=7, **options):
    trial = trials.start(service=service, version=newer, by=alice, **{"mode": "canary", "percent": 50, **options})
    set_state(trial.job, "running")
    places[service.job_id] = places.get(service.job_id, ("127.0.0.1", 1))
    places[trial.job_id] = ("127.0.0.1", port)
    sweep()
    trial = ServiceTrial.objects.select_related("job", "version", "service").get(pk=trial.pk)
    assert trial.answers
    return trial


def state(job):
    job.refresh_from_db()
    return "ending" if job.is_final or job.desired == "stop" else "up"
