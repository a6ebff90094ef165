"""/metrics: figures for Prometheus, for bearers of the right token only."""

from __future__ import annotations

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils.timezone import now
from prometheus_client.parser import text_string_to_metric_families

from accounts.services import tokens
from tests.factories import work
from workers.core import pass_metrics
from workers.core.models import Node, VirtualCluster
from workers.resources.monitoring import alarms
from workers.resources.monitoring.snapshot import Card, MonitoringSnapshot


def asked(token: str = ""):
    return Client(headers={"Authorization": f"Bearer {token}"} if token else {}).get("/metrics")


@pytest.fixture
def figures(db, settings):
    """`figures()` scrapes: {(name, values of its labels in their order): value}."""
    settings.METRICS_TOKEN = "scrape-me"

    def scrape():
        answer = asked("scrape-me")
        assert answer.status_code == 200
        families = text_string_to_metric_families(answer.content.decode())
        return {
            (
                sample.name.removeprefix("aiplatform_"),
                *(sample.labels[name] for name in sorted(sample.labels)),
            ): sample.value
            for family in families
            for sample in family.samples
        }

    return scrape


def test_metrics_page_is_for_bearers_of_a_right_token_only(figures, alice, olga):
    assert asked().status_code == 401
    assert asked("wrong").status_code == 401
    assert asked(tokens.issue(user=alice, name="x", scope="read")[1]).status_code == 403
    assert asked(tokens.issue(user=olga, name="x", scope="read")[1]).status_code == 200
    assert asked("scrape-me")["Content-Type"].startswith("text/plain")


def test_metrics_page_without_a_setting_opens_to_no_empty_token(db, settings):
    settings.METRICS_TOKEN = ""

    assert Client(headers={"Authorization": "Bearer "}).get("/metrics").status_code in {401, 403}


def test_metrics_page_shows_the_figures(figures, alice, cluster, monkeypatch):
    node = work.node("n1", gpus=2, facts={"cpu_percent": 42.0, "memory_used_mib": 2})
    node.devices.filter(kind="gpu", index=0).update(sample={"util": 30.0, "memory_used_mib": 1})
    job = work.job(alice, cluster, state="running")
    work.hold(job, node.devices.get(kind="gpu", index=1), share=4)
    work.job(alice, cluster)
    alarms.ensure_rules()
    alarms.update(MonitoringSnapshot(broker_s=0.0, cards=(Card("n1", 0, health="sick"),)), now())
    monkeypatch.setattr(pass_metrics, "_told", {"at": float("-inf")})
    pass_metrics.record(0.25, 7)
    pass_metrics.record(9.0, 9)  # too soon after the last

    found = figures()

    assert found["node_up", "n1"] == 1
    assert found["node_cpu_percent", "n1"] == 42
    assert found["node_memory_used_bytes", "n1"] == 2 * 1024 * 1024
    assert found["device_util_percent", "0", "gpu", "n1"] == 30
    assert found["device_used_shares", "1", "gpu", "n1"] == 4
    assert found["jobs", "command", "running"] == 1
    assert found["queue_length", "default"] == 1
    assert found["cluster_cards_used", "default"] == 0.5
    assert found["alarms_firing", "gpu_sick", "critical"] == 1
    assert (found["scheduler_pass_seconds",], found["scheduler_pass_waiting",]) == (0.25, 7)
    cache.clear()


def test_metrics_page_lets_no_name_forge_a_line(figures):
    evil = 'x"} 1\nforged{a="b'
    VirtualCluster.objects.create(name=evil)
    Node.objects.create(name="n\n2")

    found = figures()

    assert found["queue_length", evil] == 0
    assert found["node_up", "n\n2"] == 1
    assert not any(key[0].startswith("forged") for key in found)
