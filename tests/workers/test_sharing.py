"""Shares of a card and idle cards: what is measured, who is told, who is ended."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils.timezone import now

from accounts.models import Notification
from aiplatform import env
from tests.factories import work
from workers.core.kinds import Capabilities, Launch
from workers.core.models import Attempt
from workers.execution import launch, tickets
from workers.execution.agent import ranks
from workers.execution.agent.sharing import Breaches, CardMonitor, Use
from workers.resources.nodes.telemetry.probe import FakeProbe
from workers.resources.nodes.telemetry.sampler import Sampler, Watched
from workers.scheduling import overdue


@pytest.fixture
def shared(alice, cluster, kind, db):
    """A running job on two eighths of a card of 16 GiB."""
    job = work.job(alice, cluster, name="shared", state="running", gpus_per_node=1, share=2)
    work.hold(job, work.node(gpus=1, simulated=True).devices.get(kind="gpu"), share=2)
    return job.attempts.get()


def here(attempt):
    return {attempt.pk: ranks.RankRun(attempt, 0, list(attempt.allocations.all()))}


def test_memory_breaches_warn_once_and_end_the_job_when_they_last():
    breaches = Breaches()
    small, full, over = (Use(1, 0, held, 100.0) for held in (99.0, 100.0, 111.0))

    assert breaches.judge([small], 0) == ([], [])
    assert breaches.judge([full], 1) == ([full], [])
    assert breaches.judge([over], 2) == ([], [])
    assert breaches.judge([over], 31.9) == ([], [])
    assert breaches.judge([over], 32) == ([], [over])


def test_memory_breaches_spare_a_job_that_lets_go_in_time():
    breaches = Breaches()
    over, within = Use(1, 0, 111.0, 100.0), Use(1, 0, 110.0, 100.0)

    breaches.judge([over], 0)
    breaches.judge([within], 20)

    assert breaches.judge([over], 31)[1] == []


def test_sampler_counts_memory_by_the_processes_of_the_job(tmp_path, monkeypatch):
    import os

    mine, other = os.getpid(), 1
    probe = FakeProbe(1, lambda index: 50.0)
    readings = [replace(reading, processes={mine: 3000.0, other: 900.0}) for reading in probe.read()]
    monkeypatch.setattr(probe, "read", lambda: readings)
    sampler = Sampler(probe, tmp_path)

    figures = sampler.sample([Watched(7, mine, (0,))]).jobs[7]

    assert figures["system/gpu0_own_mib"] == 3000.0
    assert figures["system/gpu0_memory_mib"] == 12288.0


def test_card_monitor_reports_a_breach_to_the_owner_and_then_the_job(shared, django_capture_on_commit_callbacks):
    watch, moment = CardMonitor(), now()
    figures = {shared.pk: {"system/gpu0_own_mib": 5000.0}}

    for at_s in (0, 31):
        watch.check(here(shared), figures, moment, at_s)

    shared.job.refresh_from_db()
    assert Notification.objects.get(user=shared.job.owner, kind="quota").url
    assert (shared.job.desired, shared.job.reason) == ("stop", "out_of_memory")
    assert str(shared.job.message) == "Stopped: used 4.88 GiB of GPU 0, its share is 4 GiB."


def test_card_share_is_given_to_the_program_and_whole_cards_are_not(shared, settings):
    held = launch.by_rank(shared)[0]

    assert tickets.share_environment(held, None) == {"AIP_GPU_MEMORY_FRACTION": "0.2500", "AIP_GPU_MEMORY_MIB": "4096"}
    held[0].share = 8
    assert tickets.share_environment(held, None) == {}


def test_card_share_by_mps_gives_limits_that_hold_for_any_program(shared, tmp_path, monkeypatch):
    monkeypatch.setattr(env, "CUDA_MPS_PIPE", str(tmp_path))
    held = launch.by_rank(shared)[0]
    assert tickets.mps_folder(held) is None  # a simulated card has no daemon
    held[0].device.simulated = False

    folder = tickets.mps_folder(held)
    ticket = tickets.make(shared, 0, held, Launch(argv=["true"]))

    assert folder == tmp_path
    assert ticket.env["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] == "0=4096M"
    assert ticket.env["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] == "25"
    assert str(tmp_path) in ticket.read_write
    assert ticket.env["CUDA_VISIBLE_DEVICES"] == "node1-0"


def test_tickets_minor_of_is_the_device_file_the_driver_names(shared, tmp_path):
    card = launch.by_rank(shared)[0][0].device
    (tmp_path / "0000:3b:00.0").mkdir()
    (tmp_path / "0000:3b:00.0" / "information").write_text(
        f"Model: \t X\nGPU UUID: \t {card.uuid}\nDevice Minor: \t 5\n"
    )

    assert tickets.minor_of(card, tmp_path) == 5
    assert tickets.minor_of(card, tmp_path / "none") == card.index


@pytest.fixture
def idle(shared, monkeypatch):
    monkeypatch.setattr(env, "IDLE_WARN_HOURS", 1.0)
    monkeypatch.setattr(env, "IDLE_END_HOURS", 2.0)
    begun = now() - timedelta(hours=3)
    Attempt.objects.update(started_at=begun, assigned_at=begun, busy_at=begun)
    shared.refresh_from_db()
    return shared


def test_overdue_idle_warns_a_job_first_and_then_stops_it(idle):
    moment = now()
    overdue.idle(moment)
    idle.job.refresh_from_db()
    assert (idle.job.desired, Notification.objects.filter(kind="idle").count()) == ("run", 1)

    overdue.idle(moment + timedelta(seconds=30))

    idle.job.refresh_from_db()
    assert (idle.job.desired, idle.job.reason) == ("stop", "idle")
    assert Notification.objects.filter(kind="idle").count() == 1


def test_overdue_idle_suspends_a_job_that_can_go_on_later(idle, kind):
    kind.capabilities_now = Capabilities(suspend=True)
    type(idle.job).objects.update(preemptible=True)
    overdue.idle(now())
    overdue.idle(now())

    idle.job.refresh_from_db()
    assert (idle.job.desired, str(idle.job.message)) == ("release", "The GPUs were idle for 3 h.")


def test_overdue_idle_spares_who_computes_or_is_ready_on_purpose(idle, kind):
    kind.idle_guard = False
    assert overdue.idle(now()) == []
    kind.idle_guard = True
    CardMonitor().check(here(idle), {idle.pk: {"system/gpu0_util": 40.0}}, now(), 0)

    assert overdue.idle(now()) == []


def test_overdue_idle_holds_no_silent_card_against_the_job(idle):
    CardMonitor().check(here(idle), {idle.pk: {"system/memory_mib": 1.0}}, now(), 0)

    assert overdue.idle(now()) == []
