"""Pushes to a real SSH server of the test: pinned host keys, resumed files, verified sums."""

from __future__ import annotations

import hashlib

import asyncssh
import pytest

from aiplatform.lib.errors import DomainError
from inference.delivery.push import ssh, targets
from inference.delivery.push.protocol import Destination, Parcel, PushFailed
from inference.delivery.push.protocols import PROTOCOLS
from tests.inference.far_ssh import reachable

pytestmark = pytest.mark.sockets("models are pushed to a server of the test")
DATA = bytes(range(256)) * 1024
WAY = PROTOCOLS["ssh"]


@pytest.fixture
def far(tmp_path, monkeypatch):
    monkeypatch.setattr(ssh, "CHUNK", 16_384)
    with reachable(tmp_path / "disk") as machine:
        yield machine


def place(far, secret="right", **more):
    fields = {"host_key": far.host_key.export_public_key().decode().strip()} | more
    return Destination(far.address, {"username": "alice"}, secret, allowed=["127.0.0.1"], **fields)


def parcel():
    pieces = [DATA[at : at + 10_000] for at in range(0, len(DATA), 10_000)]
    return Parcel("cells_v1_package.zip", len(DATA), hashlib.sha256(DATA).hexdigest(), "cells", 1, lambda: iter(pieces))


def refused(doing, *args):
    with pytest.raises(PushFailed) as caught:
        doing(*args)
    return caught.value.worded.code


def test_package_arrives_under_its_name_and_is_summed_there(far):
    counted = []

    landed = WAY.send(place(far), parcel(), counted.append)

    assert landed == "127.0.0.1:/srv/models/cells_v1_package.zip"
    assert [file.name for file in (far.root / "srv/models").iterdir()] == ["cells_v1_package.zip"]
    assert (far.root / "srv/models/cells_v1_package.zip").read_bytes() == DATA
    assert sum(counted) == len(DATA)
    assert far.asked[0].startswith("sha256sum -- ")
    far.shell = False  # runs no commands: what arrived is read back
    WAY.send(place(far), parcel(), counted.append)  # and replaces what was there
    assert (far.root / "srv/models/cells_v1_package.zip").read_bytes() == DATA


def test_private_key_signs_in_and_a_bad_one_is_refused_at_once(far):
    key = asyncssh.generate_private_key("ssh-ed25519")
    far.key = key.export_public_key().decode()
    text = key.export_private_key().decode()

    WAY.check(place(far, secret=text))
    assert WAY.test(place(far, secret=text)).host_key
    assert (far.root / "srv/models").is_dir()
    for bad in (text[:-40], key.export_private_key("pkcs8-pem", passphrase="x").decode(), "-----BEGIN nothing"):
        with pytest.raises(DomainError):
            WAY.check(place(far, secret=bad))


def test_host_key_is_pinned_by_the_first_test_and_another_one_is_refused(far, alice, settings, sent):
    settings.PUSH_ALLOWED = ["127.0.0.1"]
    target = targets.create(
        user=alice, name="Gate", kind="ssh", address=far.address, options={"username": "alice"}, secret="right"
    )
    assert refused(WAY.send, place(far, host_key=""), parcel(), lambda _count: None) == "push.host_key_unknown"

    assert targets.test(target)
    assert targets.fingerprint(target) == far.host_key.get_fingerprint()
    stranger = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode().strip()
    type(target).objects.update(host_key=stranger)
    target.refresh_from_db()
    far.asked.clear()
    assert not targets.test(target)
    assert target.message.code == "push.host_key_changed"
    assert target.host_key == stranger
    targets.forget_host_key(target=target, by=alice)
    target.refresh_from_db()
    assert targets.test(target)


def test_wrong_password_and_a_folder_that_may_not_be_written_are_said(far):
    assert refused(WAY.test, place(far, secret="wrong")) == "push.sign_in"
    far.trouble = "read_only"

    assert refused(WAY.send, place(far), parcel(), lambda _count: None) == "push.not_writable"


def test_what_was_cut_goes_on_where_it_stopped(far):
    far.trouble = "cut"
    assert refused(WAY.send, place(far), parcel(), lambda _count: None) == "push.silent"
    (part,) = (far.root / "srv/models").iterdir()
    there = part.stat().st_size
    assert 0 < there < len(DATA)
    far.trouble, far.began_at = "", []

    WAY.send(place(far), parcel(), lambda _count: None)

    assert min(far.began_at) == there
    assert (far.root / "srv/models/cells_v1_package.zip").read_bytes() == DATA


@pytest.mark.parametrize("shell", [True, False])
def test_damaged_file_never_gets_its_name(far, shell):
    far.trouble, far.shell = "damaged", shell

    assert refused(WAY.send, place(far), parcel(), lambda _count: None) == "push.checksum"
    assert not list((far.root / "srv/models").iterdir())


def test_full_disk_is_said(far):
    far.trouble = "full"

    assert refused(WAY.send, place(far), parcel(), lambda _count: None) == "push.no_room"


def test_folder_below_the_home_is_named_by_a_tilde(far):
    home = Destination(far.address.replace("/srv/models", "/~/models"), {"username": "alice"}, "right")

    assert ssh._folder(home) == "models"
    assert ssh._folder(Destination("ssh://h/~", {})) == "."
    assert ssh._folder(Destination("ssh://h", {})) == "/"
