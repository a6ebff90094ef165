"""What a user does first without a browser: replace the temporary password, add an SSH key."""

from __future__ import annotations

import io

import pytest

from accounts.models import SshKey
from aiplatform.client import config
from aiplatform.client.main import main

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sockets("the client talks to the platform")]
ED = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUm"
OWN = "four quiet otters swim"


@pytest.fixture
def address(live_server, home):
    return live_server.url


def sign_in(address, monkeypatch, *lines):
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
    return main(["login", address, "--username", "alice", "--password-stdin"])


@pytest.fixture
def newcomer(alice):
    alice.set_password("temporary blue boats")
    alice.must_change_password = True
    alice.save()
    return alice


def test_temporary_password_is_replaced_at_the_first_sign_in(newcomer, address, monkeypatch, capsys):
    assert sign_in(address, monkeypatch, "temporary blue boats", OWN) == 0

    newcomer.refresh_from_db()
    assert newcomer.check_password(OWN)
    assert not newcomer.must_change_password
    assert config.load(address).token
    assert main(["whoami", "--url", address]) == 0


def test_temporary_password_alone_is_refused_with_what_to_do(newcomer, address, monkeypatch, capsys):
    assert sign_in(address, monkeypatch, "temporary blue boats") == 1

    assert "This is a temporary password." in capsys.readouterr().err
    newcomer.refresh_from_db()
    assert newcomer.must_change_password


def test_weak_password_is_refused_and_nothing_changes(newcomer, address, monkeypatch, capsys):
    assert sign_in(address, monkeypatch, "temporary blue boats", "12345") == 2

    assert "too short" in capsys.readouterr().err
    newcomer.refresh_from_db()
    assert newcomer.check_password("temporary blue boats")


def test_ssh_keys_are_added_listed_and_deleted(alice, address, monkeypatch, capsys, tmp_path):
    alice.set_password(OWN)
    alice.save()
    sign_in(address, monkeypatch, OWN)
    file = tmp_path / "id.pub"
    file.write_text(ED)

    assert main(["ssh-keys", "add", str(file), "--name", "laptop", "--url", address]) == 0
    key = SshKey.objects.get(user=alice)
    assert main(["ssh-keys", "list", "--url", address]) == 0
    assert key.fingerprint in capsys.readouterr().out
    assert main(["ssh-keys", "delete", "laptop", "--url", address]) == 0
    assert not SshKey.objects.exists()


def test_browser_sign_in_stores_the_token(alice, as_alice, address, monkeypatch, capsys):
    def allow(url):
        as_alice.post("/account/device/", {"code": url.rsplit("=", 1)[1], "answer": "allow"})

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("aiplatform.client.commands.account.webbrowser.open", allow)

    assert main(["login", address]) == 0
    assert "Open this address in a browser" in capsys.readouterr().err
    assert main(["whoami", "--url", address]) == 0
