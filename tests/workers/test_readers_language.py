"""Who acts in one language is read in another: pages, API, sockets, mails, the bell, the audit trail."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pytest
from django.core import mail
from django.utils import translation
from django.utils.timezone import now
from rest_framework.test import APIClient

from accounts.models import AuditEntry, Delivery, Notification
from accounts.services import notify, outbox
from aiplatform.lib.wording import message
from tests.conftest import signed_in
from tests.factories import people, work
from workers.core.models import AlarmRule, Job
from workers.jobs.output import job_stream
from workers.resources.monitoring import alarms
from workers.resources.monitoring.snapshot import Card, MonitoringSnapshot

CHINESE = re.compile(r"[\u4e00-\u9fff]")


@pytest.fixture
def stopped(alice, olga, cluster, kind):
    """A running job of Alice's, whom she stops on a Chinese page."""
    for person, language in ((alice, "zh-hans"), (olga, "en")):
        person.language = language
        person.save()
    job = work.job(alice, cluster, name="digits", state="running")
    assert signed_in(alice).post(f"/jobs/{job.pk}/do/stop/").status_code == 302
    job.refresh_from_db()
    return job


def events_of(page):
    return re.search(r'<ol class="events">.*?</ol>', page.content.decode(), re.DOTALL)[0]


def test_job_stop_is_read_by_each_person_in_their_own_language(stopped, alice, olga):
    with translation.override("zh-hans"):
        english = events_of(signed_in(olga).get(f"/jobs/{stopped.pk}/"))
    chinese = events_of(signed_in(alice).get(f"/jobs/{stopped.pk}/"))

    assert "Stop requested." in english
    assert not CHINESE.search(english)
    assert "已请求停止。" in chinese
    assert "Stop requested." not in chinese


def test_job_api_answers_a_stop_in_the_callers_language(stopped, alice, olga):
    told = {}
    for person, language in ((olga, "en"), (alice, "zh-hans")):
        client = APIClient(headers={"accept-language": language})
        client.force_login(person)
        answer = client.get(f"/api/v1/jobs/{stopped.pk}/").json()
        told[language] = (answer["sentence"], answer["message"])

    assert told["en"] == ("Stop requested.", {"code": "job.stop_requested", "facts": {}})
    assert told["zh-hans"] == ("已请求停止。", {"code": "job.stop_requested", "facts": {}})


def test_job_socket_frames_carry_no_words_of_whoever_acted(stopped):
    row = Job.objects.filter(pk=stopped.pk).values().get()

    frame = job_stream._frame("state", job=job_stream.JobStream._public(row), header=True)

    assert not CHINESE.search(frame)
    assert set(json.loads(frame)["job"]) == {
        "state", "desired", "attempt_number", "progress", "eta_s", "phase", "phase_done", "phase_total",
        "phase_times", "position", "eta",
    }  # fmt: skip


@pytest.mark.parametrize("acting", ["en", "zh-hans"])
def test_alarm_mails_speak_the_language_of_each_administrator(olga, settings, monkeypatch, acting):
    settings.EMAIL_HOST, settings.EMAIL_BACKEND = "mail.example.org", "django.core.mail.backends.locmem.EmailBackend"
    monkeypatch.setattr(outbox, "_mail_rest", {"until": float("-inf")})
    chen = people.user("chen", role="System administrator")
    chen.is_superuser = True
    for person, language in ((olga, "en"), (chen, "zh-hans")):
        person.language, person.email = language, f"{person.username}@example.org"
        person.save()
    alarms.ensure_rules()
    AlarmRule.objects.filter(key="gpu_sick").update(for_s=0)
    sick = Card("n1", 0, health="sick", note=message("card.memory_errors", count=2))

    with translation.override(acting):
        alarms.update(MonitoringSnapshot(broker_s=0.0, cards=(sick,)), now())
        alarms.update(MonitoringSnapshot(broker_s=0.0), now() + timedelta(seconds=5))
        outbox.sweep()

    [english] = [one for one in mail.outbox if one.to == ["olga@example.org"]]
    [chinese] = [one for one in mail.outbox if one.to == ["chen@example.org"]]
    assert english.subject == "[aiplatform] Critical: A GPU is unhealthy (ECC, driver)"
    assert "2 uncorrectable memory errors." in english.body
    assert not CHINESE.search(english.subject + english.body)
    assert CHINESE.search(chinese.subject)
    assert "memory errors" not in chinese.body
    assert {row.language for row in Delivery.objects.all()} == {"en", "zh-hans"}


def test_notification_follows_the_language_its_reader_chooses_later(alice):
    notify.notify(alice, "failed", title=message("news.failed", kind="training", name="a"), key="job-1-1")
    pages = {}

    for language in ("en", "zh-hans"):
        alice.language = language
        alice.save()
        pages[language] = signed_in(alice).get("/notifications/").content.decode()

    row = Notification.objects.get()
    assert (row.title.code, row.title.facts) == ("news.failed", {"kind": "training", "name": "a"})
    assert "Training “a” failed" in pages["en"]
    assert "Training “a” failed" not in pages["zh-hans"]
    assert "训练" in pages["zh-hans"]


def test_audit_trail_of_a_chinese_administrator_is_read_in_english(olga):
    alarms.ensure_rules()
    with translation.override("zh-hans"):
        alarms.silence(by=olga, hours=1)
        alarms.silence(by=olga, hours=1, rule=AlarmRule.objects.get(key="gpu_hot"))

    olga.language = "en"
    olga.save()
    page = signed_in(olga).get("/people/audit/").content.decode()

    assert [row.verb for row in AuditEntry.objects.filter(verb__contains="silenced").order_by("pk")] == [
        "all_alarms_silenced", "alarm_silenced",
    ]  # fmt: skip
    assert "silenced all alerts" in page
    assert not any(
        CHINESE.search(json.dumps([row.target, row.facts], ensure_ascii=False)) for row in AuditEntry.objects.all()
    )
