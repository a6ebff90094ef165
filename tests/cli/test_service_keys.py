"""`aip serve key`, `keys`, `revoke` and `limit` against the real API."""

from __future__ import annotations

import pytest

from inference.serving import endpoints
from inference.serving.models import Service
from tests.factories import models as factory

pytestmark = pytest.mark.django_db


def test_cli_makes_and_revokes_a_key_and_sets_limits(real_aip, alice, tmp_path, capfd):
    service = endpoints.create(user=alice, name="demo", model_version=factory.model_version(alice, tmp_path))

    assert real_aip(alice, "serve", "key", "demo", "partner", "--per-minute", "60", "--days", "30") == 0
    secret = capfd.readouterr().out.strip()
    assert real_aip(alice, "serve", "keys", "demo") == 0
    assert real_aip(alice, "serve", "revoke", "demo", "partner") == 0
    assert real_aip(alice, "serve", "revoke", "demo", "partner") != 0
    assert real_aip(alice, "serve", "limit", "demo", "--per-minute", "7", "--deadline-s", "5") == 0
    assert real_aip(alice, "serve", "limit", "demo", "--deadline-s", "5000") != 0
    assert real_aip(alice, "serve", "limit", "demo", "--share-process") == 0
    assert Service.objects.get(name="demo").options["share_process"]
    shared = ["serve", "create", "small", "--model", "cells", "--share-process"]
    assert real_aip(alice, *shared) == 0
    assert Service.objects.get(name="small").job.kind == "service_host"

    said = capfd.readouterr()
    assert secret.startswith("aik_")
    assert secret not in said.out
    assert "Key partner is revoked." in said.out + said.err
    service.refresh_from_db()
    assert {name: service.options[name] for name in ("per_minute", "deadline_s")} == {"per_minute": 7, "deadline_s": 5}
