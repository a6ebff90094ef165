"""The pool of the Celery worker for long tasks: one process, and a second one only while a task waits."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from celery.worker import state

from aiplatform.lib import celery_worker
from aiplatform.lib.celery_worker import GROW_AFTER_S, UNUSED_S, PoolScaler
from workers.core import queues


class Request:
    """A task in the worker's hands; a class of its own so that weak sets can hold it."""


class Pool:
    def __init__(self) -> None:
        self.num_processes = 1

    def grow(self, number: int) -> None:
        self.num_processes += number

    def shrink(self, number: int) -> None:
        self.num_processes -= number

    def maintain_pool(self) -> None:
        pass


@pytest.fixture
def clock(monkeypatch):
    clock = SimpleNamespace(now=1000.0, calls=[])
    loop = SimpleNamespace(call_later=lambda seconds, call, *args: clock.calls.append((seconds, call, args)))
    monkeypatch.setattr(celery_worker.time, "monotonic", lambda: clock.now)
    monkeypatch.setattr(celery_worker, "get_event_loop", lambda: loop)
    yield clock
    state.reset_state()


@pytest.fixture
def scaler(clock):
    return PoolScaler(Pool(), 2, 1)


def receive(scaler: PoolScaler) -> Request:
    request = Request()
    state.reserved_requests.add(request)
    scaler.maybe_scale(request)
    return request


def run_timers(clock: SimpleNamespace) -> None:
    calls, clock.calls = clock.calls, []
    for seconds, call, args in calls:
        assert seconds == GROW_AFTER_S
        call(*args)


def test_second_process_is_forked_for_a_task_that_still_waits(scaler, clock):
    first = receive(scaler)
    state.active_requests.add(first)
    second = receive(scaler)
    assert scaler.processes == 1

    run_timers(clock)

    assert scaler.processes == 2
    assert second not in state.active_requests


def test_short_tasks_one_after_another_fork_nothing(scaler, clock):
    first, second = receive(scaler), receive(scaler)
    for request in (first, second):
        state.reserved_requests.discard(request)

    run_timers(clock)

    assert scaler.processes == 1


def test_task_that_has_started_meanwhile_forks_nothing(scaler, clock):
    first, second = receive(scaler), receive(scaler)
    state.reserved_requests.discard(first)
    state.active_requests.add(second)

    run_timers(clock)

    assert scaler.processes == 1


def test_second_process_ends_when_nothing_has_waited_for_a_minute_and_no_task_is_in_hand(scaler, clock):
    held = [receive(scaler), receive(scaler)]
    run_timers(clock)
    clock.now += UNUSED_S - 1
    state.reserved_requests.clear()
    scaler.maybe_scale()
    assert scaler.processes == 2, "too early"

    clock.now += 1
    state.reserved_requests.add(held[0])
    scaler.maybe_scale()
    assert scaler.processes == 2, "one of them may just have been sent this task"

    state.reserved_requests.clear()
    scaler.maybe_scale()
    assert scaler.processes == 1


def test_worker_for_long_tasks_starts_with_one_process_and_our_scaler(settings):
    argv = queues.work_worker_command("node1", 3)

    assert argv[argv.index("--autoscale") + 1] == "3,1"
    assert settings.CELERY_WORKER_AUTOSCALER == "aiplatform.lib.celery_worker:PoolScaler"
