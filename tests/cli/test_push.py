"""`aip push` against the real API."""

from __future__ import annotations

import io

import pytest

from inference.delivery.push import pushes
from inference.delivery.push.models import Push, PushTarget
from tests.factories import models as factory
from tests.inference.far_servers import Folder, serving

pytestmark = [pytest.mark.django_db, pytest.mark.sockets("models are pushed to a server of the test")]


def test_cli_keeps_a_target_pushes_a_model_and_forgets(real_aip, alice, tmp_path, capfd, settings, monkeypatch, sent):
    settings.PUSH_ALLOWED = ["127.0.0.1"]
    factory.model_version(alice, tmp_path)
    monkeypatch.setattr("aiplatform.client.commands.pushing.time.sleep", lambda _s: pushes.run(Push.objects.get().pk))
    with serving(Folder) as far:
        monkeypatch.setattr("sys.stdin", io.StringIO("right\n"))
        assert real_aip(alice, "push", "targets") == 0
        add = ("push", "add-target", "Shelf", "put")
        assert real_aip(alice, *add, far.address, "--secret-stdin") == 0
        assert real_aip(alice, "push", "test", "Shelf") == 0
        assert real_aip(alice, "push", "start", "cells:1", "Shelf", "--wait") == 0
        assert real_aip(alice, "push", "list") == 0
        push = Push.objects.get()
        assert real_aip(alice, "push", "show", push.pk) == 0
        assert real_aip(alice, "push", "again", push.pk) == 0
        assert real_aip(alice, "push", "stop", Push.objects.first().pk) == 0
        assert real_aip(alice, "push", "forget-host-key", "Shelf") == 0
        far.token = "another"
        assert real_aip(alice, "push", "test", "Shelf") == 6
        assert real_aip(alice, "push", "add-target", "No", "put", "ftp://x", "--no-secret") != 0
        assert real_aip(alice, "push", "delete-target", "Shelf", "--yes") == 0

    printed = capfd.readouterr()
    said = printed.out + printed.err
    assert f"cells v1 is stored at {far.address}/cells_v1_package.zip." in said
    assert "rejects the credentials (status 401)" in said
    assert "right" not in said
    assert not PushTarget.objects.exists()
