"""The toolbox: keyset pages, refusals as problem+json, sends that cannot hurt."""

import gc
import logging
from datetime import timedelta

import pytest
from celery import current_app, signals
from celery.fixups.django import DjangoWorkerFixup
from django.db import connection, connections, transaction
from django.test import RequestFactory
from rest_framework.exceptions import ValidationError

from accounts.models import Role
from aiplatform.lib import keyset, messages, nudging, sweeps
from aiplatform.lib.api import exception_handler
from aiplatform.lib.celery_worker import Consumer
from aiplatform.lib.enqueue import enqueue
from aiplatform.lib.errors import Invalid, StillInUse
from aiplatform.lib.times import format_duration
from workers.tasks import finish


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0 s"),
        (0.44, "0.4 s"),
        (59.6, "1 min"),
        (250, "4 min 10 s"),
        (7200, "2 h"),
        (183_600, "2 d 3 h"),
        (-5, "0 s"),
    ],
)
def test_words_of_durations_read_naturally(seconds, text):
    assert format_duration(seconds) == text
    assert format_duration(timedelta(seconds=seconds)) == text


def test_keyset_pages_go_forth_and_back_without_gaps(db):
    Role.objects.all().delete()
    for number in range(7):
        Role.objects.create(name=f"role {number}")
    rows = Role.objects.order_by("-pk")

    def page(query: str):
        return keyset.page(RequestFactory().get(f"/{query}"), rows, size=3)

    first = page("?search=x")
    second = page(first.next_url)
    third = page(second.next_url)
    back = page(third.previous_url)

    assert [role.name for role in (*first, *second, *third)] == [f"role {n}" for n in (6, 5, 4, 3, 2, 1, 0)]
    assert [role.pk for role in back] == [role.pk for role in second]
    assert (first.previous_url, third.next_url, first.total) == ("", "", 7)
    assert "search=x" in first.next_url


def test_keyset_pages_lose_no_row_among_equal_values_or_by_bent_links(db):
    Role.objects.all().delete()
    for number in range(5):
        Role.objects.create(name=f"role {number}", description="same" if number else "other")

    def page(query: str):
        return keyset.page(RequestFactory().get(f"/{query}"), Role.objects.all(), order="description", size=2)

    first = page("")
    second = page(first.next_url)
    third = page(second.next_url)

    assert [role.name for role in (*first, *second, *third)] == [f"role {n}" for n in range(5)]
    assert [role.pk for role in page("?next=bent")] == [role.pk for role in first]


def test_exception_handler_answers_problem_json_with_a_stable_code():
    answer = exception_handler(StillInUse("Training 4 uses it.", jobs=[4]), {"request": None})

    assert answer.status_code == 409
    assert answer.content_type == "application/problem+json"
    assert answer.data["code"] == "still_in_use"
    assert answer.data["detail"] == "Training 4 uses it."
    assert answer.data["facts"] == {"jobs": [4]}


def test_exception_handler_shows_a_blamed_field_like_a_validation_error():
    domain = exception_handler(Invalid("Too long.", field="name"), {"request": None})
    shape = exception_handler(ValidationError({"name": ["Too long."]}), {"request": None})

    assert domain.data["errors"] == {"name": ["Too long."]} == dict(shape.data["errors"])
    assert (domain.status_code, shape.status_code) == (400, 400)


def test_enqueue_logs_a_dead_broker_and_never_fails_the_request(
    db, monkeypatch, caplog, django_capture_on_commit_callbacks
):
    def refuse(*args, **kwargs):
        raise ConnectionError("no broker")

    monkeypatch.setattr(current_app, "send_task", refuse)
    monkeypatch.setattr(nudging, "_outage", nudging.Outage())

    with caplog.at_level(logging.WARNING), django_capture_on_commit_callbacks(execute=True), transaction.atomic():
        enqueue("workers.tick")

    assert "task=workers.tick not sent" in caplog.text


def test_messages_compile_all_needs_no_gettext_programs(tmp_path):
    folder = tmp_path / "zh_Hans" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    (folder / "django.po").write_text('msgid "Train"\nmsgstr "训练"\n')

    first, second = messages.compile_all(tmp_path), messages.compile_all(tmp_path)

    assert [path.name for path in first] == ["django.mo"]
    assert second == []


def test_sweeps_follow_the_return_of_the_broker_within_a_second(monkeypatch):
    sent, broker = [], {"away": True}

    def send(name, **_options):
        if broker["away"]:
            raise ConnectionError
        sent.append(name)

    monkeypatch.setattr(current_app, "send_task", send)
    monkeypatch.setitem(sweeps._sent, "at", float("-inf"))
    sweeps.send_due(100.0)
    broker["away"] = False
    sweeps.send_due(101.0)
    sweeps.send_due(102.0)

    assert sent == list(sweeps.names())


def test_worker_looks_for_its_broker_each_second_at_most():
    told = []

    class Line:
        def ensure_connection(self, _errback, _most, callback, **pauses):
            told.append(pauses)
            return self

    consumer = object.__new__(Consumer)
    consumer.app, consumer.first_connection_attempt = current_app, False
    consumer.ensure_connected(Line())

    assert current_app.conf.worker_consumer == "aiplatform.lib.celery_worker:Consumer"
    assert told[0]["interval_max"] <= 1


def test_start_of_a_process_ends_with_its_garbage_looked_for():
    assert gc.isenabled()
    assert gc.get_freeze_count() > 10_000


@pytest.mark.django_db(transaction=True)
def test_worker_keeps_its_database_connection_from_task_to_task_until_it_is_old(monkeypatch):
    closed = []
    task = finish
    celerys_own = DjangoWorkerFixup(current_app)
    connection.ensure_connection()
    monkeypatch.setattr(type(connections["default"]), "close", lambda _self: closed.append("closed"))
    connection.close_at = None

    for _task in range(3):
        for signal, handle in (
            (signals.task_prerun, celerys_own.on_task_prerun),
            (signals.task_postrun, celerys_own.on_task_postrun),
        ):
            signal.send(sender=task, task=task)
            handle(sender=task)
    kept = list(closed)
    connection.close_at = 0.0
    signals.task_prerun.send(sender=task, task=task)

    assert (kept, closed) == ([], ["closed"])
