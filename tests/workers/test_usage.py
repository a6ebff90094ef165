"""Usage: devices by time held, clipped to the span; waits; CSV that runs nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from accounts.models import User, UserGroup
from tests.factories import work
from workers.core.models import Device, Job
from workers.resources.monitoring import usage

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
END = BEGIN + timedelta(days=1)
HOUR = timedelta(hours=1)


@pytest.fixture
def node(db):
    return work.node("n1", gpus=4)


def ran(owner, cluster, node, begin, end, *, cards=1, share=8, wait=timedelta(0), cpus=2.0):
    """A job that held cards from `begin` to `end`; None: it still does."""
    job = work.job(owner, cluster, state="succeeded" if end else "running", cpus=cpus, created_at=begin - wait)
    work.hold(job, *node.devices.filter(kind="gpu")[:cards], share=share)
    Device.objects.update(used=0)
    job.attempts.update(assigned_at=begin, ended_at=end)
    return job


def rows(user, **asked):
    found = usage.report(user, begin=BEGIN, end=END, **asked)
    return {row.name: (row.gpu_hours, row.cpu_hours, row.jobs) for row in (*found.rows, found.total)}


def test_usage_hours_are_clipped_to_the_span(alice, bob, olga, cluster, node):
    ran(alice, cluster, node, BEGIN - HOUR, BEGIN + HOUR, cards=4)  # an hour of it lies inside
    ran(alice, cluster, node, END - HOUR, END + HOUR, share=4)  # half a card
    ran(bob, cluster, node, BEGIN, BEGIN + 2 * HOUR)
    ran(bob, cluster, node, END, END + HOUR)  # outside
    ran(bob, cluster, node, BEGIN - 2 * HOUR, BEGIN)  # outside

    assert rows(olga) == {"alice": (4.5, 4.0, 2), "bob": (2.0, 4.0, 1), "All": (6.5, 8.0, 3)}
    assert list(rows(alice)) == ["alice", "All"]  # people see their own


def test_usage_counts_running_jobs_up_to_now(olga, alice, cluster, node, monkeypatch):
    monkeypatch.setattr(usage, "now", lambda: BEGIN + 3 * HOUR)
    ran(alice, cluster, node, BEGIN, None)

    assert rows(olga)["alice"][0] == 3.0


def test_usage_is_summed_by_groups_and_clusters(alice, bob, olga, cluster, node):
    UserGroup.objects.create(name="vision").users.add(alice)
    UserGroup.objects.create(name="lab").users.add(alice)
    ran(alice, cluster, node, BEGIN, BEGIN + HOUR)
    ran(bob, cluster, node, BEGIN, BEGIN + 2 * HOUR)

    by_group = {name: figures[0] for name, figures in rows(olga, by="group").items()}
    assert by_group == {"No group": 2.0, "lab": 1.0, "vision": 1.0, "All": 3.0}
    assert rows(olga, by="cluster")["default"][0] == 3.0


def test_usage_waits_are_by_nearest_rank(alice, olga, cluster, node):
    for minutes in range(1, 21):
        ran(alice, cluster, node, BEGIN + HOUR, BEGIN + 2 * HOUR, wait=timedelta(minutes=minutes))

    [row] = usage.report(olga, begin=BEGIN, end=END).rows

    assert (row.wait_p50_s, row.wait_p95_s) == (600, 1140)
    assert usage.percentile([], 50) is None


def test_usage_page_its_csv_and_the_api_agree(as_olga, as_alice, cluster, node):
    evil = User.objects.create_user(username="=cmd", password="x")
    ran(evil, cluster, node, BEGIN, BEGIN + HOUR)
    days = "from=2026-03-01&until=2026-03-01"

    page = as_olga.get(f"/usage/?{days}")
    table = as_olga.get(f"/usage/?{days}&format=csv")
    api = as_olga.get(f"/api/v1/usage/?{days}").json()

    assert "=cmd" in page.content.decode()
    assert table["Content-Disposition"] == 'attachment; filename="usage-user-2026-03-01-2026-03-01.csv"'
    assert "'=cmd,1.0,2.0,1,0.0,0.0" in table.content.decode()
    assert (api["rows"][0]["gpu_hours"], api["total"]["jobs"]) == (1.0, 1)
    assert "=cmd" not in as_alice.get(f"/usage/?{days}").content.decode()
    assert as_olga.get("/usage/?from=yesterday").status_code == 422
    assert as_olga.get("/api/v1/usage/?from=2026-03-02&until=2026-03-01").status_code == 400
    assert as_olga.get("/api/v1/usage/?by=colour").status_code == 400


def test_queue_page_stops_many_jobs_with_one_line_in_the_trail(as_olga, as_alice, alice, bob, cluster):
    from accounts.models import AuditEntry

    waiting = [work.job(owner, cluster) for owner in (alice, bob)]
    over = work.job(alice, cluster, state="succeeded")
    numbers = [job.pk for job in (*waiting, over)]

    refused = as_alice.post("/api/v1/jobs/stop/", {"jobs": numbers}, content_type="application/json")
    answer = as_olga.post("/api/v1/jobs/stop/", {"jobs": numbers}, content_type="application/json")

    assert refused.status_code == 403
    assert answer.json() == {"requested": numbers[:2], "over": 1}
    assert set(Job.objects.filter(pk__in=numbers).values_list("state", flat=True)) == {"stopped", "succeeded"}
    [line] = AuditEntry.objects.filter(verb="jobs_stopped")
    assert line.facts == {"jobs": numbers[:2], "owners": ["alice", "bob"]}
