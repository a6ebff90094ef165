"""Samples: fine when fresh, coarse when old, bounded for ever."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.factories import work
from workers.core.models import ClusterSample, Device, Node, NodeSample
from workers.resources.monitoring import history

START = datetime(2026, 3, 2, 0, 0, tzinfo=UTC)
FACTS = {
    "cpu_percent": 50.0, "memory_used_mib": 1, "memory_total_mib": 4, "disk_free_bytes": 30, "disk_total_bytes": 100,
    "net_in_bps": 5.0, "net_out_bps": 7.0,
}  # fmt: skip


@pytest.fixture
def machine(db):
    return work.node("n1", gpus=4, facts=FACTS)


def run(seconds, *, begin=START, every=10):
    for second in range(0, seconds, every):
        moment = begin + timedelta(seconds=second)
        Node.objects.update(heartbeat_at=moment)
        history.sample(moment)


def test_history_sample_says_what_the_rows_say(machine, alice, cluster):
    job = work.job(alice, cluster, state="running")
    work.job(alice, cluster)
    work.hold(job, *machine.devices.filter(kind="gpu", index__in=(0, 1)))
    Device.objects.filter(kind="gpu", index=0).update(sample={"util": 80.0, "memory_used_mib": 8192})
    Node.objects.update(heartbeat_at=START)

    history.sample(START)
    history.sample(START)

    row = NodeSample.objects.get()
    assert (row.cpu, row.memory, row.disk, row.net_in, row.gpus, row.gpus_held) == (50, 25, 70, 5, 4, 2)
    assert (row.gpu_util, row.gpu_memory) == (80, 50)
    used = ClusterSample.objects.get(cluster=cluster)
    assert (used.gpus, used.running, used.waiting) == (2, 1, 1)


def test_history_leaves_a_gap_for_a_silent_machine(machine):
    Node.objects.update(heartbeat_at=START - timedelta(minutes=1))

    history.sample(START)

    assert NodeSample.objects.get().cpu is None


@pytest.mark.postgres
def test_history_rolls_fine_samples_up_into_means(machine):
    run(660)
    Node.objects.update(facts={**FACTS, "cpu_percent": 100.0})
    run(600, begin=START + timedelta(seconds=660))

    minutes = NodeSample.objects.filter(step=60).order_by("at")
    assert minutes.count() == 20
    assert [row.cpu for row in minutes[9:13]] == [50, 50, 100, 100]
    tens = NodeSample.objects.filter(step=600).order_by("at")
    assert [(row.at, row.cpu) for row in tens] == [(START, 50), (START + timedelta(minutes=10), pytest.approx(95))]


def test_history_rows_stay_bounded(machine, monkeypatch):
    monkeypatch.setitem(history.RETENTION, 10, timedelta(minutes=1))
    monkeypatch.setitem(history.RETENTION, 60, timedelta(minutes=10))
    monkeypatch.setitem(history.RETENTION, 600, timedelta(minutes=30))

    for minute in range(0, 180, 3):
        run(10, begin=START + timedelta(minutes=minute))

    counts = [NodeSample.objects.filter(step=step).count() for step in history.STEPS]
    assert counts[0] <= 3
    assert counts[1] <= 20
    assert 2 <= counts[2] <= 14


def test_history_curves_sum_machines_and_break_at_missing_samples(machine, olga):
    work.node("n2", gpus=4, facts=FACTS | {"cpu_percent": 100.0})
    run(30)
    run(20, begin=START + timedelta(seconds=120))

    found = history.curves(olga, span="1h", moment=START + timedelta(minutes=30))

    assert found.step == 10
    assert found.series["cpu"] == [75, 75, 75, None, 75, 75]
    assert found.series["gpus"] == [8, 8, 8, None, 8, 8]
    alone = history.curves(olga, span="1h", moment=START + timedelta(minutes=30), node=machine.pk)
    assert alone.series["cpu"][0] == 50


def test_history_day_gives_bars(machine, olga):
    def at(hour, held):
        made = START + timedelta(hours=hour)
        NodeSample.objects.create(node=machine, step=600, at=made, gpus=4, gpus_held=held)

    at(0, 4)
    at(0.5, 2)
    at(9, 1)

    found = history.day(olga, START)

    assert (found[0], found[9], found[1], len(found)) == (75, 25, None, 24)
