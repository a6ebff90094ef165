"""Secrets of a job on a machine that has no key to open them."""

import json
import stat
from types import SimpleNamespace

import pytest
from django.utils import timezone

from aiplatform import env
from aiplatform.lib import sealed
from tests.factories import work
from workers import tasks
from workers.core import kinds
from workers.core.kinds import Launch
from workers.core.models import Job
from workers.core.runs import RunDir
from workers.execution import handing_over, launch, supervisors
from workers.scheduling import placing
from workers.supervisor import records

pytestmark = [pytest.mark.django_db]


@pytest.fixture
def machines(settings, monkeypatch):
    """`machines("far")` lets the rest of the test happen on that machine, which has a secret key of its own."""
    keys = {"server": settings.SECRET_KEY, "far": "another"}

    def go(name):
        settings.NODE, settings.SECRET_KEY = name, keys[name]
        monkeypatch.setattr(env, "NODE_JOINED", name == "far")

    go("server")
    return go


@pytest.fixture
def away(alice, cluster, kind, machines, monkeypatch, sent, django_capture_on_commit_callbacks):
    """A job with a secret, just placed on the machine `far`; its attempt."""

    def ask(home):
        records.write(home / records.SUPERVISOR, {"pid": 1})
        return SimpleNamespace(wait=lambda: None, close=lambda: None)

    monkeypatch.setattr(supervisors, "StartRequest", ask)
    text = sealed.seal({"HUB": "open-sesame"})
    kind.sealed = lambda job: {"secrets": text, "none": ""}
    kind.prepare = lambda job, attempt, run: Launch(["true"], env=handing_over.opened(job, run)["secrets"])
    far = work.node("far")
    job = work.job(alice, cluster)
    with django_capture_on_commit_callbacks(execute=True):
        return placing.place(job.pk, [(far.pk, [(far.devices.get(kind="cpu").pk, 8)])])


def ticket(attempt):
    return records.read(RunDir.for_attempt(attempt.job_id, 1).path / records.LAUNCH)


def test_secrets_reach_the_machine_that_cannot_open_them(away, machines, sent, django_capture_on_commit_callbacks):
    handed = RunDir.for_attempt(away.job_id, 1).path / handing_over.HANDED
    assert ("workers.hand_over", {"attempt_id": away.pk}) in sent
    machines("far")
    launch.start(away.pk)
    assert ticket(away) is None  # it waits
    machines("server")
    sent.clear()
    with django_capture_on_commit_callbacks(execute=True):
        tasks.hand_over(away.pk)
    assert ("workers.start_each", {"ids": [away.pk]}) in sent
    assert stat.S_IMODE(handed.stat().st_mode) == 0o600

    machines("far")
    launch.start(away.pk)

    assert ticket(away)["env"]["HUB"] == "open-sesame"
    assert not handed.exists()


def test_secrets_whose_message_was_lost_are_handed_over_by_the_sweep_once(away, machines):
    assert handing_over.unserved() == [away.pk]
    tasks.hand_over_sweep()
    machines("far")
    launch.start(away.pk)
    machines("server")

    tasks.hand_over_sweep()

    assert ticket(away)["env"]["HUB"] == "open-sesame"
    assert not (RunDir.for_attempt(away.job_id, 1).path / handing_over.HANDED).exists()


def handed_to(attempt):
    return RunDir.for_attempt(attempt.job_id, 1).path / handing_over.HANDED


@pytest.mark.parametrize("end", ["stopped", "unprepared", "given_up"])
def test_secrets_are_gone_with_an_attempt_that_never_began(end, away, machines, kind):
    tasks.hand_over(away.pk)
    assert handed_to(away).exists()
    machines("far")
    if end == "stopped":
        Job.objects.filter(pk=away.job_id).update(desired="stop")
    if end == "unprepared":
        kind.prepare = lambda job, attempt, run: 1 / 0

    launch.give_up(away) if end == "given_up" else launch.start(away.pk)

    assert Job.objects.get(pk=away.job_id).state in ("stopped", "failed")
    assert not handed_to(away).exists()


def test_secrets_of_an_attempt_that_ended_meanwhile_are_swept(away):
    tasks.hand_over(away.pk)
    tasks.hand_over_sweep()
    assert handed_to(away).exists()  # it waits for them
    away.ended_at = timezone.now()
    away.save()

    tasks.hand_over_sweep()

    assert not handed_to(away).exists()


def test_secrets_written_as_the_attempt_ends_are_gone_at_once(away, monkeypatch):
    def ends(job):
        type(away).objects.filter(pk=away.pk).update(ended_at=timezone.now())
        return {}

    monkeypatch.setattr(handing_over, "_open", ends)

    assert not handing_over.write(away)
    assert not handed_to(away).exists()


def test_secrets_of_a_gang_are_handed_over_though_the_server_has_a_part(alice, cluster, kind, machines, sent):
    kind.sealed = lambda job: {"secrets": "x"}
    far, here = work.node("far"), work.node("server")
    job = work.job(alice, cluster, nodes=2)
    attempt = placing.place(job.pk, [(node.pk, [(node.devices.get(kind="cpu").pk, 1)]) for node in (far, here)])
    other = work.job(alice, cluster, nodes=2)
    placing.place(other.pk, [(node.pk, [(node.devices.get(kind="cpu").pk, 1)]) for node in (here, far)])

    assert handing_over.unserved() == [attempt.pk]


def test_secrets_that_the_server_cannot_open_either_fail_the_job(away, machines, settings):
    settings.SECRET_KEY = "a third"
    tasks.hand_over(away.pk)
    machines("far")

    launch.start(away.pk)

    assert Job.objects.get(pk=away.job_id).state == "failed"


def test_secrets_of_an_attempt_that_is_over_are_left_alone(away):
    away.ended_at = away.assigned_at
    away.save()

    tasks.hand_over(away.pk)

    assert not (RunDir.for_attempt(away.job_id, 1).path / handing_over.HANDED).exists()


def test_job_on_the_server_opens_its_secrets_itself(alice, cluster, kind, machines, sent):
    text = sealed.seal({"HUB": "open-sesame"})
    kind.sealed = lambda job: {"secrets": text}
    here = work.node("server")
    job = work.job(alice, cluster)

    attempt = placing.place(job.pk, [(here.pk, [(here.devices.get(kind="cpu").pk, 8)])])
    tasks.hand_over(attempt.pk)

    assert handing_over.opened(job, RunDir.for_attempt(job.pk, 1)) == {"secrets": {"HUB": "open-sesame"}}
    assert "workers.hand_over" not in [name for name, _facts in sent]
    assert not (RunDir.for_attempt(job.pk, 1).path / handing_over.HANDED).exists()


@pytest.mark.parametrize("name", ["command", "environment"])
def test_kinds_with_secrets_name_what_is_sealed(name, alice, cluster):
    real = kinds.get(name)
    assert type(real).sealed is not kinds.JobKind.sealed
    assert json.dumps(kinds.sealed_of(work.job(alice, cluster, kind=name))) == "{}"  # without a row of its own
