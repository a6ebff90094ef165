"""What operators look at, full of data: machines with history, a day in bars, alarms, notifications."""

from __future__ import annotations

import math
from datetime import datetime, time, timedelta

import pytest
from django.utils import timezone
from django.utils.timezone import now
from playwright.sync_api import expect

from accounts.services import notify
from aiplatform.lib.wording import verbatim
from tests.factories import work
from workers.core.models import AlarmRule, ClusterSample, NodeSample
from workers.resources.monitoring import alarms
from workers.resources.monitoring.snapshot import Card, Machine, MonitoringSnapshot, Queue
from workers.resources.nodes import lifecycle


@pytest.fixture
def busy(site, alice, olga, cluster):
    """Two machines with an hour and two days of history, a job, alarms, news."""
    told = [
        {"name": name, "pid": 40 + n, "memory_mib": 90.0, "up_s": 4000, "run": ""}
        for n, name in enumerate(["agent", "cpu", "gpu0"])
    ]
    facts = {
        "cpu_percent": 42.0, "memory_used_mib": 3000, "memory_total_mib": 16384, "disk_free_bytes": 10**9,
        "disk_total_bytes": 4 * 10**9, "net_in_bps": 12345.0, "net_out_bps": 4567.0, "version": "0.1.0",
        "services": told,
        "disks": [{"path": "/", "free_bytes": 10**9, "total_bytes": 4 * 10**9}],
        "interfaces": [{"name": "eth0", "in_bps": 12345.0, "out_bps": 4567.0}],
    }  # fmt: skip
    nodes = [work.node(name, gpus=4, simulated=True, facts=facts) for name in ("node1", "node2")]
    job = work.job(alice, cluster, name="digits", state="running", gpus_per_node=1)
    work.hold(job, nodes[0].devices.get(kind="gpu", index=1))
    lifecycle.record(nodes[0], "joined", "Joined from 10.0.0.7.")
    moment = now()
    for back in range(200):
        wave = 50 + 40 * math.sin(back / 20)
        for node in nodes:
            at = moment - timedelta(seconds=10 * back)
            figures = {"cpu": wave, "memory": 40.0, "disk": 75.0, "net_in": 1e4 * wave, "net_out": 5e3, "gpus": 4}
            NodeSample.objects.create(
                node=node, step=10, at=at, gpus_held=2 + wave / 50, gpu_util=wave / 2, gpu_memory=30.0, **figures
            )
        ClusterSample.objects.create(cluster=cluster, step=10, at=moment - timedelta(seconds=10 * back), gpus=wave / 20)
    for days in (0, 7):
        begin = timezone.make_aware(datetime.combine(timezone.localdate() - timedelta(days=days), time(0)))
        for hour in range(24):
            held = 3 + math.sin(hour / 4) - days / 7
            at = begin + timedelta(hours=hour)
            NodeSample.objects.create(node=nodes[0], step=600, at=at, gpus=4, gpus_held=held)
    alarms.ensure_rules()
    broken = MonitoringSnapshot(
        machines=(Machine("node2", silent_s=90), Machine("node1", disk_free_percent=12)),
        cards=(Card("node1", 3, health="external", note=verbatim("Process 4711 (python).")),),
        queues=(Queue("default", 4, 2700),),
        broker_s=0.001,
    )  # fmt: skip
    alarms.update(broken, moment - timedelta(hours=1))
    alarms.update(broken, moment)
    alarms.save_address(None, by=olga, channel="mail", target="operators@example.org", least="warning")
    for number, kind in enumerate(("finished", "failed", "approval")):
        notify.notify(
            olga,
            kind,
            title=verbatim(f"Training “run {number}” ended"),
            text=verbatim("Exit code 1."),
            url="/",
            key=str(number),
        )
    return nodes


@pytest.mark.parametrize(("width", "dark"), [(390, True), (1440, False)], ids=["narrow-dark", "wide-light"])
def test_operators_pages_full_of_data_fit(open_as, olga, busy, accessible, fits, shot, width, dark):
    page = open_as(olga, width=width, height=900, dark=dark)
    paths = {
        "overview": "/", "cluster": "/cluster/", "node": f"/cluster/nodes/{busy[0].pk}/", "alarms": "/alarms/",
        "rules": "/alarms/rules/", "addresses": "/alarms/addresses/", "news": "/notifications/",
        "choices": "/account/notifications/", "tasks": "/tasks/", "usage": "/usage/?by=cluster",
        "rule": f"/alarms/rules/{AlarmRule.objects.get(key='gpu_hot').pk}/",
    }  # fmt: skip
    wrong = []
    for name, path in paths.items():
        page.goto(path)
        if name in {"cluster", "node"}:
            page.locator("[data-history-url]").scroll_into_view_if_needed()  # charts load when they are near
            page.wait_for_selector(".chart-card canvas")
            assert page.locator(".chart-card").count() >= 4
        shot(page, f"ops-{name}-{width}", full=True)
        try:
            fits(page)
            accessible(page)
        except AssertionError as exc:
            wrong.append(str(exc)[:1500])

    assert wrong == []


def test_node_page_shows_curves_of_a_longer_span(open_as, olga, busy):
    page = open_as(olga)
    page.goto("/cluster/")
    page.locator("[data-history-url]").scroll_into_view_if_needed()
    page.wait_for_selector(".chart-card canvas")

    page.get_by_role("button", name="7 days").click()

    expect(page.locator("[data-history-span='7d']")).to_have_attribute("aria-pressed", "true")
    page.wait_for_selector(".chart-card canvas")
