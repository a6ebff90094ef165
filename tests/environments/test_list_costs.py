"""The list of environments asks the database the same whatever it shows, also of those that run."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils.timezone import now

from tests.factories import work
from workers.core.models import Allocation, Attempt, Device, Job, JobEvent
from workers.core.states import Event

URLS = ["/environments/", "/api/v1/environments/"]


@pytest.fixture
def several(submitted):
    """`several(n)`: environments with a limit that run, every third one on two machines and every other one paused."""
    work.node("n2", cores=4)

    def make(number):
        for index in range(number):
            row = submitted(max_runtime=timedelta(hours=3), nodes=2 if index % 3 == 0 else 1, name=f"e{index}")
            state = "paused" if index % 2 else "running"
            Job.objects.filter(pk=row.pk).update(state=state, attempt_number=1)
            attempt = Attempt.objects.create(
                job_id=row.pk, number=1, state=state, started_at=now() - timedelta(hours=1)
            )
            for rank, device in enumerate(Device.objects.order_by("pk")[: row.job.nodes]):
                Allocation.objects.create(attempt=attempt, node=device.node, device=device, rank=rank)
            JobEvent.objects.create(job_id=row.pk, attempt=1, event=Event.PAUSED)

    return make


@pytest.mark.parametrize("url", URLS)
def test_environment_list_costs_the_same_however_many_run(several, as_alice, url):
    several(3)
    as_alice.get(url)
    with CaptureQueriesContext(connection) as few:
        first = as_alice.get(url)
    several(27)
    with CaptureQueriesContext(connection) as many:
        second = as_alice.get(url)

    assert (first.status_code, second.status_code) == (200, 200)
    extra = [query["sql"][:150] for query in many.captured_queries[len(few) :]]
    assert len(many) == len(few), extra
