"""A home that passes its quota: nobody has to open a page for its owner and the operators to hear of it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils.timezone import now

from accounts.models import Notification
from aiplatform import env
from datasets.files import homes, tasks, usage
from datasets.files.models import HomeUsage
from tests.factories import work
from training.environments import services
from training.environments.services import EnvironmentRequest
from workers.core.models import Alarm, AlarmRule, Job
from workers.resources.monitoring import alarms
from workers.resources.monitoring.snapshot_reader import SnapshotReader

KIB = 1024


@pytest.fixture
def quota(monkeypatch):
    monkeypatch.setattr(env, "HOME_QUOTA_BYTES", 100 * KIB)
    alarms.ensure_rules()


def look(moment):
    """What the monitor does every quarter of a minute, with nothing remembered."""
    alarms.update(SnapshotReader().read(moment), moment)


def old():
    HomeUsage.objects.update(measured_at=now() - 2 * usage.REMEASURE_AFTER)


def raised():
    return sorted(Alarm.objects.filter(ended_at=None, rule__key__startswith="home").values_list("rule__key", "subject"))


def told(kind):
    return Notification.objects.filter(kind=kind).order_by("pk")


def test_home_is_told_of_from_the_threshold_on_that_an_operator_set(alice, cluster, home, quota):
    AlarmRule.objects.filter(key="home_low").update(threshold=60)
    work.job(alice, cluster, state="running")
    (home / "checkpoint").write_bytes(b"x" * 65 * KIB)

    tasks.sweep()
    look(now())

    assert raised() == [("home_low", "alice")]


def test_home_that_a_job_fills_is_told_to_its_owner_and_to_operators(alice, bob, olga, cluster, home, quota):
    job = work.job(alice, cluster, state="running")
    (home / "small").write_bytes(b"x")
    tasks.sweep()
    look(now())
    before = (HomeUsage.objects.get().size_bytes, raised())
    (home / "checkpoint").write_bytes(b"x" * 95 * KIB)
    old()
    tasks.sweep()
    look(now())
    nearly = (raised(), [row.user.username for row in told("quota")], told("alarm").count())
    (home / "more").write_bytes(b"x" * 10 * KIB)
    old()
    tasks.sweep()
    look(now())

    assert before == (1, [])
    assert nearly == ([("home_low", "alice")], ["alice"], 0)
    assert raised() == [("home_full", "alice"), ("home_low", "alice")]
    own = told("quota").last()
    assert (own.user, own.url) == (alice, "/files/")
    assert "The home folder of alice uses 105 % of its quota." in str(own.text)
    assert "until files are deleted" in str(own.text)
    assert "olga" in {row.user.username for row in told("alarm")}

    Job.objects.filter(pk=job.pk).update(state="stopped")
    (home / "checkpoint").unlink()
    old()
    tasks.sweep()
    look(now())

    assert raised() == []


def test_homes_are_left_alone_where_nothing_writes_or_nothing_is_limited(alice, bob, cluster, home, monkeypatch):
    """Walking through everybody's files is work for the disk that all share."""
    work.job(alice, cluster, state="running")
    tasks.sweep()
    without_quota = HomeUsage.objects.count()
    monkeypatch.setattr(env, "HOME_QUOTA_BYTES", 100 * KIB)
    tasks.sweep()
    first = HomeUsage.objects.get(user=alice).measured_at
    (home / "new").write_bytes(b"x" * 200 * KIB)
    tasks.sweep()

    assert without_quota == 0
    assert HomeUsage.objects.get(user=alice).measured_at == first
    assert not HomeUsage.objects.filter(user=bob).exists()


def test_sweep_ends_in_time_and_goes_on_with_the_oldest(alice, bob, cluster, quota, monkeypatch):
    for person in (alice, bob):
        work.job(person, cluster, state="running")
        (homes.home_of(person) / "a").write_bytes(b"x")
    monkeypatch.setattr(usage, "REMEASURE_LIMIT_S", 0.0)
    tasks.sweep()
    none = HomeUsage.objects.count()
    monkeypatch.setattr(usage, "REMEASURE_LIMIT_S", 15.0)
    tasks.sweep()
    HomeUsage.objects.filter(user=alice).update(measured_at=now() - timedelta(days=2))
    HomeUsage.objects.filter(user=bob).update(measured_at=now() - timedelta(days=1))
    measured = []
    monkeypatch.setattr(usage, "measure", lambda user, at_most_s: measured.append(user.username))
    tasks.sweep()

    assert none == 0
    assert measured == ["alice", "bob"]


def test_pages_of_files_and_of_an_environment_say_what_to_do(alice, as_alice, cluster, home, quota):
    work.node(cores=4)
    job = services.submit(user=alice, request=EnvironmentRequest(cpus=1.0)).job
    before = as_alice.get(f"/jobs/{job.pk}/").content.decode()
    (home / "checkpoint").write_bytes(b"x" * 101 * KIB)
    usage.measure(alice, at_most_s=5.0)
    after = as_alice.get(f"/jobs/{job.pk}/").content.decode()

    assert "environment-home-full" not in before
    assert "no workspace starts until files are deleted" in after
    assert "Your home is full" in as_alice.get("/files/").content.decode()
