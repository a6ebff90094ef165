"""Asking a registry: certificates, credentials, redirects, addresses, checksums."""

from __future__ import annotations

import io
import time

import pytest

from tests.fakes import registry as fake
from workers.images.containers import registry as asked
from workers.images.containers.patience import Patience
from workers.images.containers.registry import Login, Registry, RegistryRefused

pytestmark = pytest.mark.sockets("a registry of the tests")
LAYER = fake.layer({"hello": b"world"})


def open_to(registry, **more):
    given = {"allowed": ["localhost"]} | more
    return Registry(registry.host, given.pop("login", Login(ca=registry.ca)), **given)


def refusal(act) -> str:
    with pytest.raises(RegistryRefused) as caught:
        act()
    return caught.value.worded.code.removeprefix("image.registry_")


def test_registry_without_a_known_certificate_is_refused(registry):
    assert refusal(open_to(registry, login=Login()).check) == "certificate"


def test_registry_takes_tokens_and_basic_credentials(registry):
    registry.users["alice"] = "opensesame"
    good = Login("alice", "opensesame", registry.ca)

    open_to(registry, login=good).check()
    assert refusal(open_to(registry, login=Login("alice", "wrong", registry.ca)).check) == "credentials"
    assert refusal(open_to(registry).check) == "sign_in"
    registry.basic = True
    open_to(registry, login=good).check()


def test_registry_that_is_not_allowed_or_inner_is_not_connected_to(registry):
    def nobody(*_):
        raise AssertionError("connected")

    assert refusal(open_to(registry, allowed=["*.example.org"]).check) == "not_allowed"
    assert refusal(open_to(registry, allowed=["none"]).check) == "not_allowed"
    assert refusal(open_to(registry, allowed=["*"]).check) == "inner"
    for address in ("10.0.0.1", "169.254.169.254", "127.0.0.1", "::1", "::ffff:10.0.0.1", "192.168.1.1"):
        given = open_to(registry, allowed=["*"], resolve=lambda *_, address=address: ["8.8.8.8", address])
        assert refusal(given.check) == "inner"
    assert registry.seen == []


@pytest.mark.parametrize("where", ["*", "*.", "["])
def test_name_that_resolvers_take_for_this_machine_is_no_registry(registry, where):
    """glibc's own answer for "*" is the loopback, whoever leads there: a name, a redirect, a token server."""
    registry.put("lab/x", "1", [LAYER])
    port = registry.host.rpartition(":")[2]
    one = Registry(f"evil.example.org:{port}", Login(ca=registry.ca), allowed=["*"], resolve=lambda *_: ["127.0.0.1"])
    inner = open_to(registry, allowed=["localhost", "*"])
    registry.redirect = f"https://{where}:{port}/v2/lab/x/blobs"

    assert refusal(lambda: one._connected(where, int(port), Patience(1))) == "not_allowed"
    blob = next(iter(registry.blobs))
    code = refusal(lambda: inner.blob("lab/x", blob, 1, io.BytesIO(), lambda _: None))
    assert code == ("insecure" if where == "[" else "not_allowed")
    assert all(path.startswith("/v2/lab/x/blobs/sha256") for path, _proof in registry.seen)


def test_registry_redirecting_inward_or_without_tls_is_not_followed(registry):
    name = registry.put("lab/x", "1", [LAYER])
    blob = next(iter(registry.blobs))

    def fetch(one):
        return lambda: one.blob("lab/x", blob, len(registry.blobs[blob]), io.BytesIO(), lambda _: None)

    for where, code in (
        ("https://169.254.169.254/latest", "not_allowed"),
        ("http://localhost/plain", "insecure"),
        ("https://user:pw@localhost/x", "insecure"),
        ("file:///etc/passwd", "insecure"),
    ):
        registry.redirect = where
        assert refusal(fetch(open_to(registry))) == code
    registry.redirect = "https://169.254.169.254/latest"
    inner = open_to(registry, allowed=["localhost", "*"])
    assert refusal(fetch(inner)) == "inner"
    registry.redirect = f"https://{registry.host}/v2/lab/x/blobs"
    assert refusal(fetch(open_to(registry))) == "answered"
    assert name.startswith("sha256:")


def test_credentials_are_not_taken_along_to_another_host(registry, tmp_path):
    registry.users["alice"] = "opensesame"
    (tmp_path / "other").mkdir()
    with fake.served(tmp_path / "other") as other:
        other.put("lab/x", "1", [LAYER])
        registry.put("lab/x", "1", [LAYER])
        registry.redirect = f"https://{other.host}/v2/lab/x/blobs"
        one = open_to(registry, login=Login("alice", "opensesame", registry.ca + other.ca))
        into, blob = io.BytesIO(), next(iter(other.blobs))
        one.blob("lab/x", blob, len(other.blobs[blob]), into, lambda _: None)

    assert into.getvalue() == other.blobs[blob]
    assert [proof for _path, proof in other.seen] == [""]


def test_password_is_not_given_to_whoever_a_redirect_leads_to(registry, tmp_path):
    registry.users["alice"] = "opensesame"
    (tmp_path / "other").mkdir()
    with fake.served(tmp_path / "other") as other:
        other.users["thief"] = "x"  # it asks for credentials as a registry does, and says where
        registry.put("lab/x", "1", [LAYER])
        registry.redirect = f"https://{other.host}/v2/lab/x/blobs"
        one = open_to(registry, login=Login("alice", "opensesame", registry.ca + other.ca))
        blob = next(iter(registry.blobs))
        for other.basic in (False, True):
            code = refusal(lambda: one.blob("lab/x", blob, 1, io.BytesIO(), lambda _: None))
            assert code == "stranger"

    assert len(other.seen) == 2
    assert {proof for _path, proof in other.seen} == {""}
    assert not [path for path, _proof in other.seen if path.startswith("/token")]


def test_slow_registry_is_not_waited_for(registry, monkeypatch):
    monkeypatch.setattr(asked, "TOTAL_TIMEOUT_S", 0.5)
    monkeypatch.setattr(asked, "SIGN_IN_S", 0.05)
    monkeypatch.setattr(asked, "PIECE_S", 0.5)
    registry.put("lab/x", "1", [LAYER])
    registry.drips = 0.1
    blob = next(iter(registry.blobs))
    size = len(registry.blobs[blob])
    began = time.monotonic()

    assert refusal(lambda: open_to(registry).manifest("lab/x", "1")) == "slow"
    assert refusal(open_to(registry).check) == "slow"
    assert refusal(lambda: open_to(registry).blob("lab/x", blob, size, io.BytesIO(), lambda _: None)) == "slow"
    assert time.monotonic() - began < 15


def test_large_blob_may_take_longer_than_one_answer(registry, monkeypatch):
    monkeypatch.setattr(asked, "TOTAL_TIMEOUT_S", 0.8)
    monkeypatch.setattr(asked, "PIECE_S", 10.0)
    monkeypatch.setattr(asked, "CHUNK", 20)
    registry.put("lab/x", "1", [LAYER])
    blob = next(iter(registry.blobs))
    registry.drips = 0.006
    into = io.BytesIO()
    began = time.monotonic()

    open_to(registry).blob("lab/x", blob, len(registry.blobs[blob]), into, lambda _: None)

    assert time.monotonic() - began > 0.8
    assert into.getvalue() == registry.blobs[blob]


@pytest.mark.parametrize("where", ["https://localhost:99999/x", "https://[", "https://localhost/\xe4"])
def test_address_that_is_none_is_refused_wherever_it_stands(registry, where):
    registry.put("lab/x", "1", [LAYER])
    blob = next(iter(registry.blobs))
    registry.redirect = registry.realm = where

    assert refusal(lambda: open_to(registry).blob("lab/x", blob, 1, io.BytesIO(), lambda _: None)) == "insecure"
    registry.users["alice"] = "opensesame"
    assert refusal(open_to(registry).check) == "insecure"
    assert refusal(lambda: Registry("registry.example.org:99999", Login(), allowed=["*"])) == "unknown"


def test_blob_that_is_another_is_refused(registry):
    registry.put("lab/x", "1", [LAYER])
    blob = next(iter(registry.blobs))
    size = len(registry.blobs[blob])
    one = open_to(registry)

    def fetch(size):
        return lambda: one.blob("lab/x", blob, size, io.BytesIO(), lambda _: None)

    assert refusal(fetch(size - 1)) == "checksum"
    assert refusal(fetch(size + 1)) == "checksum"
    registry.blobs[blob] = b"x" * size
    assert refusal(fetch(size)) == "checksum"


def test_manifest_is_checked_by_its_digest(registry):
    version = registry.put("lab/x", "1", [LAYER])
    kind, _text = registry.manifests["lab/x", version]

    assert open_to(registry).manifest("lab/x", "1")[0] == version
    registry.manifests["lab/x", version] = (kind, b"{}")
    assert refusal(lambda: open_to(registry).manifest("lab/x", version)) == "checksum"
    assert refusal(lambda: open_to(registry).manifest("lab/x", "2")) == "not_found"


def test_password_stands_in_no_text_of_its_login():
    assert "opensesame" not in repr(Login("alice", "opensesame"))


def test_every_refusal_has_its_words():
    from workers.images import messages

    for code in ("bad_ca", "checksum", "credentials", "sign_in", "inner", "insecure", "certificate", "silent"):
        assert f"registry_{code}" in messages.IMAGE
        assert asked.refused(code, "x", what="y", error="z").worded.code == f"image.registry_{code}"
