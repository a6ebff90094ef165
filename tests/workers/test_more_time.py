"""More run time: asked for, answered, carried to the supervisor, and warned of before it is over."""

import json
import os
from datetime import timedelta

import pytest

from accounts.access.permissions import Action
from accounts.models import Notification
from tests.conftest import signed_in
from tests.factories import work
from workers.core import run_time
from workers.core.models import TimeRequest
from workers.execution.agent import attempt_monitor
from workers.jobs import more_time
from workers.resources.clusters import members
from workers.scheduling import overdue
from workers.supervisor import records

pytestmark = pytest.mark.django_db


@pytest.fixture
def running(alice, cluster):
    cluster.max_runtime = timedelta(hours=10)
    cluster.save()
    return work.job(alice, cluster, name="long", state="running")


@pytest.fixture
def asked(running, alice, olga):
    return more_time.request_time(running, hours=5, reason="two more epochs", by=alice)


def test_more_time_request_reaches_administrators_and_the_event_log(asked, olga, bob, cluster, running):
    told = Notification.objects.get(user=olga, kind="approval")

    assert (str(told.title), str(told.text)) == ("Alice requests 5 h more for “long”", "two more epochs")
    assert told.url == f"/clusters/{cluster.pk}/requests/"
    assert not Notification.objects.filter(user=bob).exists()
    assert str(running.events.get(event="time_requested").message) == "5 h more requested."


def test_more_time_granted_moves_the_limit_at_once_and_tells_the_owner(asked, running, alice, olga):
    more_time.answer(asked, grant=True, by=olga, hours=2, word="until six")
    running.refresh_from_db()

    assert run_time.runtime(running) == timedelta(hours=12)
    assert str(running.events.get(event="time_granted").message) == "2 h more granted: until six"
    assert str(Notification.objects.get(user=alice).title) == "More time for “long”: granted"


def test_more_time_request_is_answered_once(asked, running, olga):
    more_time.answer(asked, grant=False, by=olga, word="others wait")

    with pytest.raises(more_time.NoTimeNeeded, match=r"This request was already answered."):
        more_time.answer(asked, grant=True, by=olga)

    running.refresh_from_db()
    assert run_time.runtime(running) == timedelta(hours=10)


def test_more_time_request_is_refused_twice_or_without_need(asked, running, alice, bob, cluster):
    with pytest.raises(more_time.NoTimeNeeded, match="already pending"):
        more_time.request_time(running, hours=1, reason="again", by=alice)
    cluster.max_runtime = None
    cluster.save()
    free = work.job(bob, cluster, state="running")
    with pytest.raises(more_time.NoTimeNeeded, match="no time limit"):
        more_time.request_time(free, hours=1, reason="why not", by=bob)


def test_more_time_is_answered_by_administrators_but_not_for_themselves(asked, running, alice, bob, cluster):
    for person in (alice, bob):
        members.set_administrator(cluster, person, on=True)

    with pytest.raises(more_time.NotAllowed):
        more_time.answer(asked, grant=True, by=alice)

    assert more_time.answer(asked, grant=True, by=bob).answered_by == bob


@pytest.mark.parametrize("seconds_left", [0.5, None])
def test_attempt_monitor_writes_a_changed_limit_for_the_supervisor(running, tmp_path, seconds_left):
    records.write(tmp_path / records.LAUNCH, {"max_runtime_s": 36000.0})
    attempt_monitor.write_limit(tmp_path, running)
    untouched = (tmp_path / records.LIMIT).exists()
    if seconds_left is None:
        running.cluster.max_runtime = None
    else:
        running.more_time = timedelta(seconds=seconds_left)

    attempt_monitor.write_limit(tmp_path, running, "36000.0")

    assert not untouched
    assert records.read_limit(tmp_path, 36000.0) == (None if seconds_left is None else 36000.5)


def test_attempt_monitor_carries_granted_time_to_the_supervisor(asked, running, olga):
    run = work.run_dir(running)
    pid = os.getpid()
    me = {"pid": pid, "start_ticks": records.start_ticks(pid), "boot_id": records.boot_id(), "child": {"pid": pid}}
    records.write(run.path / records.SUPERVISOR, me)
    records.write(run.path / records.LAUNCH, {"max_runtime_s": 36000.0})
    attempt = running.attempts.select_related("job__cluster").get()
    watched = attempt_monitor.AttemptMonitor(attempt)
    watched.check(attempt)
    before = records.read_limit(run.path, 36000.0)

    more_time.answer(asked, grant=True, by=olga)
    watched.check(running.attempts.select_related("job__cluster").get())

    assert (before, records.read_limit(run.path, 36000.0)) == (36000.0, 54000.0)


def test_overdue_warns_a_job_once_before_its_time_is_over(running, alice):
    begun = running.attempts.get().started_at
    nearly = begun + timedelta(hours=9, minutes=30)

    overdue.over_time(begun + timedelta(hours=8))
    early = running.events.filter(event="time_nearly_up").count()
    overdue.over_time(nearly)
    overdue.over_time(nearly + timedelta(minutes=1))

    assert early == 0
    assert [str(e.message) for e in running.events.filter(event="time_nearly_up")] == [
        "The maximum run time of 10 h is almost reached."
    ]
    assert str(Notification.objects.get(user=alice, kind="time").title) == "“long” is close to its maximum run time"


def test_overdue_counts_granted_time(asked, running, olga):
    begun = running.attempts.get().started_at
    more_time.answer(asked, grant=True, by=olga)

    still = overdue.over_time(begun + timedelta(hours=14))
    leaving = overdue.over_time(begun + timedelta(hours=15, seconds=1))  # its supervisor lets it save first
    over = overdue.over_time(begun + timedelta(hours=15, minutes=3))
    assert leaving == []

    assert (still, over) == ([], [running.pk])


def test_more_time_is_requested_and_answered_by_page_and_api(as_alice, as_bob, bob, as_olga, running, cluster):
    page = as_alice.get(f"/jobs/{running.pk}/header/").content.decode()
    sent = as_alice.post(f"/jobs/{running.pk}/more-time/", {"hours": "3", "reason": "nearly there"})
    row = TimeRequest.objects.get()
    listed = as_olga.get(f"/clusters/{cluster.pk}/requests/").content.decode()
    outsider = as_bob.get(f"/clusters/{cluster.pk}/requests/").status_code
    refused = as_bob.post(f"/time-requests/{row.pk}/answer/", {"answer": "grant"}).status_code
    members.set_administrator(cluster, bob, on=True)
    as_bob.post(f"/time-requests/{row.pk}/answer/", {"answer": "grant", f"{row.pk}-hours": "4", f"{row.pk}-word": "ok"})
    told = as_alice.get(f"/api/v1/time-requests/{row.pk}/").json()

    assert "Request more time" in page
    assert sent.status_code == 302
    assert "nearly there" in listed
    assert (outsider, refused) == (404, 404)
    assert (told["answer"], told["hours"], told["answered_by"], told["word"]) == ("granted", 4.0, "bob", "ok")
    assert as_alice.get(f"/api/v1/jobs/{running.pk}/").json()["limit_s"] == 14 * 3600


def test_more_time_is_hidden_from_and_refused_to_a_stranger(as_bob, as_anna, running, asked):
    body = json.dumps({"hours": 1, "reason": "mine now"})
    url = f"/api/v1/jobs/{running.pk}/extend/"

    assert as_bob.post(url, body, content_type="application/json").status_code == 404
    assert as_anna.post(url, body, content_type="application/json").status_code == 403
    assert as_bob.get("/api/v1/time-requests/").json()["results"] == []
    assert as_bob.get(f"/jobs/{running.pk}/more-time/").status_code == 404


def test_more_time_is_closed_to_cluster_administrators_without_the_right(asked, bob, cluster):
    members.set_administrator(cluster, bob, on=True)
    for role in bob.roles.all():
        role.actions = [a for a in role.actions if a != Action.CLUSTER_ADMINISTER]
        role.save()
    bob.forget_actions()

    assert signed_in(bob).get(f"/clusters/{cluster.pk}/requests/").status_code == 403
