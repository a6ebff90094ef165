"""Pushes to a real HTTP server: rows, tries, ends; what is right and what goes wrong."""

from __future__ import annotations

import hashlib
import io
import logging
import subprocess
import sys
import zipfile
from datetime import timedelta

import pytest
from django.utils.timezone import now

from aiplatform.lib.errors import DomainError
from inference.delivery.push import pushes, targets
from inference.delivery.push.models import Push, PushTarget
from inference.registry import registration as registry
from tests.factories import models as factory
from tests.inference.far_servers import Folder, serving

pytestmark = [pytest.mark.django_db, pytest.mark.sockets("models are pushed to a server of the test")]


@pytest.fixture(autouse=True)
def _house(settings, sent):
    settings.PUSH_ALLOWED = ["127.0.0.1"]


@pytest.fixture
def far():
    with serving(Folder) as server:
        yield server


@pytest.fixture
def version(alice, tmp_path):
    return factory.model_version(alice, tmp_path)


@pytest.fixture
def target(alice, far):
    return targets.create(user=alice, name="Shelf", kind="put", address=f"{far.address}/models", secret="right")


def pushed(alice, version, target, **more):
    """Ask for a push, send it once, and give its row."""
    push = pushes.submit(user=alice, version=version, target=target, **more)
    pushes.run(push.pk)
    push.refresh_from_db()
    return push


def test_package_arrives_whole_and_says_where_it_lies(alice, version, target, far):
    push = pushed(alice, version, target)

    data = far.files["/models/cells_v1_package.zip"]
    assert (push.state, str(push.message), push.tries) == ("done", "", 1)
    assert push.landed == f"{far.address}/models/cells_v1_package.zip"
    assert push.sent_bytes == push.size_bytes == len(data)
    assert push.sha256 == hashlib.sha256(data).hexdigest()
    assert "run.py" in zipfile.ZipFile(io.BytesIO(data)).namelist()
    assert push.ended_at
    pushes.run(push.pk)  # the same message once more
    assert far.asked.count(("PUT", "/models/cells_v1_package.zip")) == 1


def test_files_alone_arrive_where_nobody_described_the_model(alice, tmp_path, target, far):
    mute = factory.model_version(alice, tmp_path, name="mute", task="tensor")
    with pytest.raises(DomainError):
        pushes.submit(user=alice, version=mute, target=target)

    assert pushed(alice, mute, target, content="files").state == "done"
    assert zipfile.ZipFile(io.BytesIO(far.files["/models/mute_v1.zip"])).namelist() == ["model.onnx"]


@pytest.mark.parametrize(("trouble", "code"), [("full", "push.no_room"), ("redirect", "push.redirected")])
def test_what_will_not_pass_ends_the_push_at_once(alice, version, target, far, trouble, code):
    far.trouble = trouble

    push = pushed(alice, version, target)

    assert (push.state, push.message.code, push.tries) == ("failed", code, 1)
    assert not far.files


def test_wrong_token_ends_the_push_before_anything_is_sent(alice, version, target, far):
    far.token = "another"

    push = pushed(alice, version, target)

    assert (push.state, push.message.code, push.sent_bytes) == ("failed", "push.credentials", 0)
    assert [method for method, _path in far.asked] == ["HEAD"]
    assert not targets.test(target)
    assert target.message.code == "push.credentials"


@pytest.mark.parametrize(("trouble", "code"), [("cut", "push.silent"), ("half", "push.checksum")])
def test_what_may_pass_is_tried_again_later_and_given_up_in_the_end(alice, version, target, far, trouble, code):
    far.trouble = trouble
    push = pushed(alice, version, target)
    assert (push.state, push.message.code, push.holder) == ("waiting", code, "")
    assert push.not_before > now()
    pushes.run(push.pk)  # too early
    assert Push.objects.get().tries == 1

    for _try in range(pushes.MAX_ATTEMPTS):
        Push.objects.filter(ended_at=None).update(not_before=now())
        pushes.run(push.pk)

    push.refresh_from_db()
    assert (push.state, push.message.code, push.tries) == ("failed", "push.gave_up", pushes.MAX_ATTEMPTS)


def test_push_that_was_cut_once_arrives_at_the_second_try(alice, version, target, far):
    far.trouble, far.times = "cut", 1
    push = pushed(alice, version, target)
    Push.objects.update(not_before=now())

    pushes.run(push.pk)

    push.refresh_from_db()
    assert (push.state, push.tries) == ("done", 2)
    assert str(push.message) == ""


def test_server_that_is_away_is_asked_again_later(alice, version, target, far):
    far.shutdown()
    far.server_close()

    push = pushed(alice, version, target)

    assert (push.state, push.message.code) == ("waiting", "push.silent")


def dead_holder():
    """A claim of a process that has ended."""
    program = "from aiplatform.lib.claims import new_holder; print(new_holder())"
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.strip()


def test_push_of_a_process_that_died_goes_on_and_never_runs_for_ever(alice, version, target, far, sent):
    push = pushes.submit(user=alice, version=version, target=target)
    died = {"state": "running", "holder": dead_holder(), "renewed_at": now(), "tries": 1, "sent_bytes": 7}
    Push.objects.update(**died)
    sent.clear()

    pushes.sweep()
    pushes.run(push.pk)

    push.refresh_from_db()
    assert (push.state, push.tries) == ("done", 2)
    Push.objects.update(**died | {"tries": pushes.MAX_ATTEMPTS, "ended_at": None})
    pushes.run(push.pk)
    push.refresh_from_db()
    assert (push.state, push.message.code, push.holder) == ("failed", "push.died", "")
    assert push.ended_at


def test_push_that_another_process_sends_is_left_alone(alice, version, target, far):
    push = pushes.submit(user=alice, version=version, target=target)
    Push.objects.update(state="running", holder="elsewhere:x:1:1:x", renewed_at=now(), tries=1)

    pushes.run(push.pk)

    assert Push.objects.get().tries == 1
    assert not far.asked
    Push.objects.update(renewed_at=now() - timedelta(minutes=5))  # it fell silent
    pushes.run(push.pk)
    assert Push.objects.get().state == "done"


def test_push_that_is_stopped_while_it_is_sent_ends(alice, version, target, far, monkeypatch):
    monkeypatch.setattr(pushes, "RENEW_S", 0.02)
    push = pushes.submit(user=alice, version=version, target=target)
    original = pushes.PROTOCOLS["put"]

    class Endless:
        def send(self, destination, parcel, on_sent):
            while True:
                on_sent(1)
                ticked.wait(0.01)  # pause: a slow line

    import threading

    ticked = threading.Event()
    monkeypatch.setitem(pushes.PROTOCOLS, "put", Endless())
    wrote = pushes.Claim.write

    def write(claim, **columns):
        pushes.stop(push)
        return wrote(claim, **columns)

    monkeypatch.setattr(pushes.Claim, "write", write)
    pushes.run(push.pk)

    push.refresh_from_db()
    assert push.state == "stopped"
    monkeypatch.undo()
    assert pushes.PROTOCOLS["put"] is original
    pushes.stop(push)  # twice does no harm
    assert pushes.again(push, by=alice).pk != push.pk


def test_version_or_target_that_is_gone_ends_the_push_with_the_reason(alice, version, target, far):
    push = pushes.submit(user=alice, version=version, target=target)
    targets.delete(target=target, by=alice)
    push.refresh_from_db()
    assert (push.state, push.message.code, push.target_name) == ("failed", "push.target_gone", "Shelf")
    with pytest.raises(DomainError):
        pushes.again(push, by=alice)

    other = targets.create(user=alice, name="Shelf", kind="put", address=far.address, secret="right")
    push = pushes.submit(user=alice, version=version, target=other)
    registry.delete(model=version.model, by=alice)
    pushes.run(push.pk)
    push.refresh_from_db()
    assert (push.state, push.message.code, push.model_name) == ("failed", "push.version_gone", "cells v1")


def test_rights_that_were_taken_meanwhile_end_the_push(alice, bob, version, target):
    push = pushes.submit(user=alice, version=version, target=target)
    PushTarget.objects.update(owner=bob)

    pushes.run(push.pk)

    push.refresh_from_db()
    assert (push.state, push.message.code) == ("failed", "push.target_gone")


def test_same_push_is_asked_for_once_and_only_so_many_wait(alice, version, target, monkeypatch):
    push = pushes.submit(user=alice, version=version, target=target)
    assert pushes.submit(user=alice, version=version, target=target).pk == push.pk

    monkeypatch.setattr(pushes, "MAX_UNFINISHED", 1)
    with pytest.raises(pushes.CannotPush):
        pushes.submit(user=alice, version=version, target=target, content="files")


def test_secret_is_in_no_row_in_no_log_and_in_no_print(alice, version, target, far, caplog):
    far.token = "t0ken-of-alice"
    targets.change(target=target, by=alice, secret="t0ken-of-alice")
    with caplog.at_level(logging.DEBUG):
        pushed(alice, version, target)
        far.trouble = "cut"
        pushed(alice, version, target, content="files")

    rows = [str(vars(row)) for model in (PushTarget, Push) for row in model.objects.all()]
    assert "t0ken-of-alice" not in "".join(rows) + caplog.text + repr(pushes.to_destination(target))
    assert pushes.to_destination(target).secret == "t0ken-of-alice"


def test_secret_sealed_under_another_key_is_asked_for_anew(alice, version, target, settings):
    settings.SECRET_KEY = "another"

    push = pushed(alice, version, target)

    assert (push.state, push.message.code) == ("failed", "push.sealed")
