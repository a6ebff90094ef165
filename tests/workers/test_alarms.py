"""Alarms: rules on plain pictures, then rows that are raised once, told once and end."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils.timezone import now

from accounts.models import AuditEntry, Delivery, Notification
from aiplatform import __version__
from aiplatform.lib.wording import verbatim
from tests.cases import case_table
from tests.factories import work
from workers.core.models import Alarm, AlarmAddress, AlarmRule, Allocation, Device, Lease
from workers.resources.monitoring import affected_jobs, alarms, snapshot_reader
from workers.resources.monitoring.monitor import Monitor
from workers.resources.monitoring.orders import ADDRESSES, ENDED, RULES_LISTED
from workers.resources.monitoring.rules import RULES, Breach, breaches, message_of
from workers.resources.monitoring.snapshot import Card, Machine, MonitoringSnapshot, Queue, Restarts, Share

CALM = {
    "version": "1", "scheduler_silent_s": 1.0, "broker_s": 0.001, "database_s": 0.002, "certificate_days": 80.0,
    "machines": (Machine("n1", 2, 50, 50, 60, 60, 0.1, "1"),), "cards": (Card("n1", 0, held=True, util=60),),
}  # fmt: skip
#: rule → (what makes it ring, its subject)
BROKEN = {
    "node_silent": ({"machines": (Machine("n1", 61),)}, "n1"),
    "disk_low": ({"machines": (Machine("n1", disk_free_percent=19),)}, "n1"),
    "unkillable": ({"machines": (Machine("n1", unkillable=2),)}, "n1"),
    "disk_full": ({"machines": (Machine("n1", disk_free_percent=4),)}, "n1"),
    "inodes_low": ({"machines": (Machine("n1", inodes_free_percent=9),)}, "n1"),
    "memory_high": ({"machines": (Machine("n1", memory_percent=96),)}, "n1"),
    "cpu_high": ({"machines": (Machine("n1", cpu_percent=99),)}, "n1"),
    "clock_differs": ({"machines": (Machine("n1", clock_off_s=-6),)}, "n1"),
    "version_differs": ({"machines": (Machine("n1", version="0"),)}, "n1"),
    "gpu_gone": ({"cards": (Card("n1", 3, health="gone", note=verbatim("NVML lost it.")),)}, "n1 gpu3"),
    "gpu_sick": ({"cards": (Card("n1", 3, health="sick", note=verbatim("2 ECC errors.")),)}, "n1 gpu3"),
    "external_process": ({"cards": (Card("n1", 3, health="external", note=verbatim("pid 7")),)}, "n1 gpu3"),
    "gpu_hot": ({"cards": (Card("n1", 3, temperature_c=90),)}, "n1 gpu3"),
    "gpu_memory_full": ({"cards": (Card("n1", 3, memory_percent=99),)}, "n1 gpu3"),
    "gpu_idle": ({"cards": (Card("n1", 3, held=True, util=0.0), Card("n1", 4, util=0.0))}, "n1 gpu3"),
    "job_waiting": ({"queues": (Queue("lab", 3, 1900),)}, "lab"),
    "jobs_failing": ({"ended": 6, "failed": 4}, "jobs"),
    "service_restarts": ({"restarts": (Restarts(7, "digits", 4),)}, "job 7"),
    "storage_quota": ({"shares": (Share("alice", 91), Share("bob", 101, of="home"))}, "alice"),
    "home_low": ({"shares": (Share("alice", 91, of="home"), Share("bob", 101))}, "alice"),
    "home_full": ({"shares": (Share("alice", 101, of="home"), Share("bob", 100, of="home"))}, "alice"),
    "scheduler_away": ({"scheduler_silent_s": 21.0}, "scheduler"),
    "broker_away": ({"broker_s": None}, "broker"),
    "broker_slow": ({"broker_s": 0.3}, "broker"),
    "database_slow": ({"database_s": 1.1}, "database"),
    "unwatched": ({"unwatched_s": 121.0}, "platform"),
    "certificate": ({"certificate_days": 13.0}, "certificate"),
    "undelivered": ({"undelivered": 1}, "messages"),
}


def test_alarm_rules_are_all_covered_by_a_case():
    assert set(BROKEN) == set(RULES)
    assert len(RULES) >= 20


@case_table("key", RULES)
def test_alarm_rule_is_raised_when_broken_and_only_then(key):
    rule, (worse, subject) = RULES[key], BROKEN[key]

    quiet = breaches(key, MonitoringSnapshot(**CALM), rule.threshold)
    [breach] = breaches(key, MonitoringSnapshot(**CALM | worse), rule.threshold)

    assert quiet == []
    assert breach.subject == subject
    said = str(message_of(key, breach.subject, breach.value, breach.facts))
    assert "%" not in said.replace(" %", "")
    assert said != subject


def test_alarm_rules_raise_nothing_for_unknown_figures():
    """A silent machine has no figures; only its silence is an alarm."""
    seen = MonitoringSnapshot(machines=(Machine("n1", 300),), cards=(Card("n1", 0),), broker_s=0.0)

    assert [key for key, rule in RULES.items() if breaches(key, seen, rule.threshold)] == ["node_silent"]


@pytest.fixture
def hot(olga, settings):
    settings.EMAIL_HOST = "mail.example.org"
    alarms.ensure_rules()
    alarms.save_address(None, by=olga, channel="mail", target="ops@example.org", least="warning")
    return MonitoringSnapshot(broker_s=0.0, cards=(Card("n1", 0, temperature_c=95.0),))


def test_alarm_tells_the_owners_of_the_jobs_that_it_affects(hot, alice, bob, cluster):
    node = work.node("n1", gpus=2)
    warm, other = Device.objects.filter(kind="gpu").order_by("index")
    mine, second, theirs = (
        work.job(owner, cluster, name=name, state="running")
        for owner, name in ((alice, "digits"), (alice, "cells"), (bob, "far"))
    )
    for job, device in ((mine, warm), (second, warm), (theirs, other)):
        Allocation.objects.create(attempt=job.attempts.get(), node=node, device=device, share=4)

    for seconds in (0, 61, 76):
        alarms.update(hot, now() + timedelta(seconds=seconds))
    cpu_load = Alarm(rule=AlarmRule.objects.get(key="cpu_high"), subject="n1")
    silent = Alarm(rule=AlarmRule.objects.get(key="node_silent"), subject="n1")
    restarts = Alarm(rule=AlarmRule.objects.get(key="service_restarts"), subject=f"job {theirs.pk}")

    told = Notification.objects.exclude(user__username="olga").get()
    assert (told.user, told.kind, told.url) == (alice, "alarm", f"/jobs/{mine.pk}/")
    assert str(told.title) == "An alert affects your jobs: digits, cells"
    assert "95" in str(told.text)
    assert affected_jobs.of_alarm(cpu_load) == []
    assert affected_jobs.of_alarm(silent) == [mine, second, theirs]
    assert affected_jobs.of_alarm(restarts) == [theirs]


@pytest.mark.postgres
def test_alarm_waits_is_raised_once_and_ends(hot, olga, alice):
    """gpu_hot must last 60 s; addresses hear of its begin and its end, administrators see it in their bell."""
    begun, cool = now(), MonitoringSnapshot(broker_s=0.0)

    alarms.update(hot, begun)
    assert (Alarm.objects.get().raised_at, Delivery.objects.count()) == (None, 0)
    for seconds in (61, 76, 91):
        alarms.update(hot, begun + timedelta(seconds=seconds))
    alarm = Alarm.objects.get()
    assert alarm.raised_at == begun + timedelta(seconds=61)
    assert [str(row) for row in Delivery.objects.all()] == ["mail to ops@example.org: Warning: A GPU is overheating"]
    assert list(Notification.objects.values_list("user__username", "kind")) == [("olga", "alarm")]

    alarms.update(cool, begun + timedelta(seconds=106))
    alarms.update(cool, begun + timedelta(seconds=121))
    alarm.refresh_from_db()
    assert alarm.ended_at == begun + timedelta(seconds=106)
    assert Delivery.objects.count() == 2
    assert str(Delivery.objects.first().title) == "Resolved: Warning: A GPU is overheating"


def test_alarm_is_raised_once_by_two_monitors_at_the_same_moment(db):
    """One waited for a lock for so long that another took over, and goes on with what it had read before."""
    alarms.ensure_rules()
    rule = AlarmRule.objects.get(key="broker_away")

    def seen():
        Alarm.objects.create(rule=rule, subject="broker", severity=rule.severity)
        yield Breach("broker", 1.0)

    alarms._update_rule(rule, seen(), now())

    assert Alarm.objects.filter(rule=rule, ended_at=None).count() == 1


def test_alarm_that_passes_before_its_time_is_never_sent(hot):
    begun = now()

    alarms.update(hot, begun)
    alarms.update(MonitoringSnapshot(broker_s=0.0), begun + timedelta(seconds=15))
    alarms.update(hot, begun + timedelta(seconds=70))

    alarm = Alarm.objects.get()
    assert alarm.raised_at is None
    assert alarm.seen_at == begun + timedelta(seconds=70)


def test_alarm_silenced_is_sent_when_it_outlives_the_silence(hot, olga):
    begun = now()
    rule = AlarmRule.objects.get(key="gpu_hot")
    alarms.set_rule(rule, by=olga, for_s=0)
    alarms.silence(by=olga, hours=1, rule=rule, subject="n1 gpu0")

    alarms.update(hot, begun)
    assert Delivery.objects.count() == 0
    alarms.update(hot, begun + timedelta(hours=2))
    assert Delivery.objects.count() == 1


def test_alarm_rule_can_be_switched_off_and_its_threshold_moved(hot, olga):
    rule = AlarmRule.objects.get(key="gpu_hot")
    alarms.set_rule(rule, by=olga, for_s=0, threshold=96.0)
    alarms.update(hot, now())
    assert not Alarm.objects.exists()

    alarms.set_rule(rule, by=olga, threshold=90.0)
    alarms.update(hot, now())
    alarms.set_rule(rule, by=olga, enabled=False)
    alarms.update(hot, now())

    assert Alarm.objects.get().ended_at is not None
    assert list(AuditEntry.objects.filter(verb="alarm_rule_changed").values_list("actor", flat=True)) == ["olga"] * 3


def test_snapshot_reader_reads_the_rows(cluster, alice):
    facts = {
        "cpu_percent": 12.0, "memory_used_mib": 8192, "memory_total_mib": 16384, "disk_free_bytes": 10,
        "disk_total_bytes": 100, "inodes_free": 5, "inodes_total": 10, "clock_off_s": 0.2, "version": "0.0.1",
    }  # fmt: skip
    machine = work.node("n1", gpus=2, facts=facts)
    card = machine.devices.get(kind="gpu", index=1)
    Device.objects.filter(pk=card.pk).update(
        health="external", health_message=verbatim("pid 7"), sample={"util": 30.0, "memory_used_mib": 8192}
    )
    silent = work.node("n2", heartbeat_at=now() - timedelta(minutes=5), facts=facts)
    moment = now()
    old = moment - timedelta(hours=2)
    work.job(alice, cluster, queued_at=old)
    again = work.job(alice, cluster, queued_at=old, attempt_number=1)
    again.attempts.update(ended_at=moment - timedelta(minutes=1))
    work.job(alice, cluster, state="failed", ended_at=moment)

    seen = snapshot_reader.SnapshotReader().read(moment)

    first, second = seen.machines
    assert (first.memory_percent, first.disk_free_percent, first.inodes_free_percent) == (50, 10, 50)
    assert (second.name, second.cpu_percent) == (silent.name, None)
    assert second.silent_s == pytest.approx(300, abs=2)
    assert (seen.cards[1].health, seen.cards[1].memory_percent) == ("external", 50)
    assert (seen.queues[0].waiting, round(seen.queues[0].longest_s)) == (2, 7200)
    assert (seen.ended, seen.failed, seen.version) == (1, 1, __version__)


def test_monitor_acts_alone_and_another_takes_over(db):
    work.node("n1", heartbeat_at=now() - timedelta(minutes=5))
    first, second = Monitor(), Monitor()

    assert (first.tick(), second.tick()) == (True, False)
    assert Alarm.objects.filter(rule__key="node_silent").exclude(raised_at=None).count() == 1
    Lease.objects.filter(name="overseer").update(renewed_at=now() - timedelta(minutes=10))  # it died
    assert second.tick()
    assert Alarm.objects.get(rule__key="unwatched").value == pytest.approx(600, abs=5)
    assert not first.tick()


def test_monitor_sends_mail_while_the_broker_is_away(db, monkeypatch):
    """Its alarm would otherwise wait for its return: nobody else sends then."""
    sent = []
    monkeypatch.setattr(snapshot_reader, "broker_round_trip", lambda: None)
    monkeypatch.setattr("workers.resources.monitoring.monitor.outbox.sweep", lambda: sent.append(1))
    monkeypatch.setattr("workers.resources.monitoring.monitor.connection.close", lambda: None)
    watching = Monitor()

    watching.tick()
    watching._posting.join(10)

    assert sent == [1]


def test_monitor_sends_the_alarm_of_a_full_disk_that_nothing_can_record(db, monkeypatch, settings, mailoutbox, olga):
    settings.EMAIL_HOST = "mail.example.org"
    work.node(settings.NODE)
    watching = Monitor()
    watching.tick()
    alarms.set_rule(AlarmRule.objects.get(key="disk_full"), by=olga, send=True)
    AlarmAddress.objects.create(channel="mail", target="ops@example.org", least="warning")

    watching.disk_full()
    watching.disk_full()

    assert [(mail.to, mail.subject) for mail in mailoutbox] == [
        (["ops@example.org"], "[aiplatform] Critical: Disk almost full")
    ]
    assert not Alarm.objects.filter(rule__key="disk_full").exists()

    watching.tick()
    assert Alarm.objects.filter(rule__key="disk_full", subject=settings.NODE).exclude(raised_at=None).exists()


def test_alarm_pages_and_api_are_for_administrators_only(as_olga, as_alice, hot, olga):
    rule = AlarmRule.objects.get(key="gpu_hot")
    alarms.set_rule(rule, by=olga, for_s=0)
    alarms.update(hot, now())
    alarm = Alarm.objects.get()

    assert "n1 gpu0 has reached 95 °C." in as_olga.get("/alarms/").content.decode()
    assert "1 active alert" in as_olga.get("/").content.decode()
    assert "1 active alert" not in as_alice.get("/").content.decode()
    assert [as_alice.get(path).status_code for path in ("/alarms/", f"/alarms/rules/{rule.pk}/")] == [403, 403]
    sent = {"enabled": "on", "severity": "critical", "threshold": "91.5", "for_s": "5"}
    assert as_olga.post(f"/alarms/rules/{rule.pk}/", sent).status_code == 302
    rule.refresh_from_db()
    assert (rule.severity, rule.threshold, rule.for_s, rule.send) == ("critical", 91.5, 5, False)
    assert as_olga.post(f"/alarms/{alarm.pk}/silence/", {"hours": "4"}).status_code == 302
    page = as_olga.get("/alarms/").content.decode()
    assert 'class="row-muted"' in page
    assert "Silenced until" in page
    assert f"/alarms/{alarm.pk}/silence/" not in page

    api = as_olga.get("/api/v1/alarms/?state=firing").json()["results"]
    assert [row["sentence"] for row in api] == ["n1 gpu0 has reached 95 °C."]
    body = {"severity": "warning"}
    changed = as_olga.patch(f"/api/v1/alarm-rules/{rule.pk}/", body, content_type="application/json")
    assert changed.json()["severity"] == "warning"
    body = {"threshold": "NaN"}
    assert as_olga.patch(f"/api/v1/alarm-rules/{rule.pk}/", body, content_type="application/json").status_code == 400
    assert as_alice.get("/api/v1/alarms/").status_code == 403


def test_alarm_list_filters_what_is_and_was_and_sorts_what_was_by_its_heads(as_olga, hot):
    rules = {rule.key: rule for rule in AlarmRule.objects.all()}
    for days, key, subject, severity in (
        (3, "gpu_hot", "n1 gpu0", "warning"), (2, "node_silent", "n2", "critical"), (1, "disk_low", "n1", "info")
    ):  # fmt: skip
        seen = now() - timedelta(days=days)
        Alarm.objects.create(
            rule=rules[key], subject=subject, severity=severity, seen_at=seen, raised_at=seen,
            ended_at=now() - timedelta(hours=days),
        )  # fmt: skip
    Alarm.objects.create(rule=rules["gpu_hot"], subject="n2 gpu1", severity="critical", raised_at=now())

    def shown(query):
        context = as_olga.get(f"/alarms/?{query}").context
        return [alarm.subject for alarm in context["firing"]], [alarm.subject for alarm in context["past"]]

    assert shown("") == (["n2 gpu1"], ["n1", "n2", "n1 gpu0"])
    assert shown("q=n1") == ([], ["n1", "n1 gpu0"])
    assert shown("rule=gpu_hot") == (["n2 gpu1"], ["n1 gpu0"])
    assert shown("severity=critical") == (["n2 gpu1"], ["n2"])
    assert shown("ordering=-severity")[1] == ["n2", "n1 gpu0", "n1"]
    assert shown("ordering=seen")[1] == ["n1 gpu0", "n2", "n1"]
    assert all(len(shown(f"ordering={word}")[1]) == 3 for word in ENDED.words)
    assert "Show all" in as_olga.get("/alarms/?q=nowhere").content.decode()


def test_alarm_rules_sort_by_their_heads_in_the_readers_language(as_olga, hot, olga):
    def shown(query):
        return [rule.key for rule in as_olga.get(f"/alarms/rules/?{query}").context["page"]]

    assert shown("") == list(RULES)
    by_name = shown("ordering=name")
    assert by_name == sorted(RULES, key=lambda key: str(RULES[key].label))
    assert {RULES[key].severity for key in shown("ordering=-severity")[:3]} == {"critical"}
    assert shown("ordering=-lasts")[0] == "gpu_idle"
    AlarmRule.objects.filter(key="gpu_hot").update(enabled=False, send=False)
    assert shown("ordering=enabled")[0] == shown("ordering=sent")[0] == "gpu_hot"
    assert all(set(shown(f"ordering={word}")) == set(RULES) for word in RULES_LISTED.words)
    olga.language = "zh-hans"
    olga.save()
    assert shown("ordering=name") != by_name
    part = as_olga.get("/alarms/rules/", headers={"HX-Request": "true"}).content.decode()
    assert "data-order" in part
    assert "</html>" not in part


def test_alarm_addresses_sort_by_their_heads(as_olga, hot, olga):
    alarms.save_address(None, by=olga, channel="mail", target="Anna@example.org", least="critical", enabled=False)

    def shown(query):
        return [row.target for row in as_olga.get(f"/alarms/addresses/?{query}").context["page"]]

    assert shown("") == ["Anna@example.org", "ops@example.org"]
    assert shown("ordering=-address") == ["ops@example.org", "Anna@example.org"]
    assert shown("ordering=least") == ["ops@example.org", "Anna@example.org"]
    assert shown("ordering=-enabled") == ["ops@example.org", "Anna@example.org"]
    assert all(len(shown(f"ordering={word}")) == 2 for word in ADDRESSES.words)
    part = as_olga.get("/alarms/addresses/", headers={"HX-Request": "true"}).content.decode()
    assert "data-order" in part
    assert "</html>" not in part


def test_alarm_addresses_are_checked_added_and_removed(as_olga, hot):
    add = "/alarms/addresses/"
    assert as_olga.post(add, {"channel": "mail", "target": "ops@example.org", "least": "info"}).status_code == 422
    assert as_olga.post(add, {"channel": "mail", "target": "nobody", "least": "info"}).status_code == 422
    refused = as_olga.post(
        add, {"channel": "webhook", "target": "http://127.0.0.1:9/", "least": "info", "enabled": "on"}
    )
    assert "inside this network" in str(refused.context["form"].errors)
    row = AlarmAddress.objects.get()

    assert as_olga.post(f"{add}{row.pk}/test/").status_code == 302
    assert str(Delivery.objects.get().title) == "Test alert"
    assert (
        as_olga.post(f"{add}{row.pk}/", {"channel": "mail", "target": "b@example.org", "least": "critical"}).url == add
    )
    row.refresh_from_db()
    assert (row.target, row.least, row.enabled) == ("b@example.org", "critical", False)
    assert as_olga.post(f"{add}{row.pk}/remove/").status_code == 302
    assert not AlarmAddress.objects.exists()
