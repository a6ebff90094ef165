"""Buttons, reports and messages in any order, doubled, late: the table holds and nothing is left behind."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aiplatform.lib.errors import DomainError
from tests.factories import work
from tests.long_form import examples
from workers.core.models import Allocation, Attempt, Job, Node
from workers.core.states import FINAL, LIVE, Event
from workers.jobs import actions, submission, transitions
from workers.scheduling import placing

ACTS = st.lists(
    st.one_of(
        st.sampled_from(["pause", "resume", "suspend", "stop", "finish", "restore", "place", "place_twice"]),
        st.tuples(st.sampled_from(list(Event)), st.integers(-1, 1)),
    ),
    max_size=25,
)


@pytest.mark.postgres
@given(acts=ACTS)
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_job_state_rows_stay_true_for_any_order_of_buttons_and_reports(alice, cluster, kind, acts):
    Job.objects.all().delete()
    Allocation.objects.all().delete()
    Node.objects.all().delete()
    node = work.node(gpus=1, simulated=True)
    card = node.devices.get(kind="gpu")
    job = submission.submit(owner=alice, cluster=cluster, kind="command", name="any", gpus_per_node=1)

    for act in acts:
        before = Job.objects.get(pk=job.pk)
        with contextlib.suppress(DomainError, placing.Late):
            _do(act, before, node, card)
        _rows_are_true(job, card)


def _do(act, job, node, card):
    if isinstance(act, tuple):
        event, shift = act
        if event is not Event.PLACED:
            transitions.move(job.pk, event, attempt=job.attempt_number + shift, reason="done")
    elif act in {"place", "place_twice"}:
        for _time in range(1 + (act == "place_twice")):
            placing.place(job.pk, [(node.pk, [(card.pk, 8)])])
    else:
        getattr(actions, act)(job)


def _rows_are_true(job, card):
    job = Job.objects.get(pk=job.pk)
    live = Attempt.objects.filter(job=job, ended_at=None)
    held = Allocation.objects.filter(attempt__job=job, released_at=None)
    card.refresh_from_db()
    if job.state in LIVE:
        assert [a.number for a in live] == [job.attempt_number]
        assert live[0].state == job.state
        assert sum(a.share for a in held) == 8
        assert card.used == (0 if live[0].evicted_at else 8)  # others may have what it is evicted from
    else:
        assert not live.exists()
        assert not held.exists()
        assert card.used == 0
    for attempt in Attempt.objects.filter(job=job, ended_at__isnull=False):
        assert attempt.state in FINAL
