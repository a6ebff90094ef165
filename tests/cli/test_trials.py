"""`aip serve try`, `part`, `rollback`, `trials` and `usage` against the real API."""

from __future__ import annotations

import pytest

from inference.serving import endpoints
from tests.factories import models as factory
from tests.inference.running import set_state

pytestmark = pytest.mark.django_db


def test_cli_tries_another_version_and_rolls_it_back(real_aip, alice, tmp_path, capfd):
    version = factory.model_version(alice, tmp_path)
    factory.model_version(alice, tmp_path, name="newer")
    set_state(endpoints.create(user=alice, name="demo", model_version=version).job, "running")

    assert real_aip(alice, "serve", "trials", "demo") == 0
    assert real_aip(alice, "serve", "try", "demo", "--model", "newer:1", "--percent", "5") == 0
    assert real_aip(alice, "serve", "part", "demo", "20") == 0
    assert real_aip(alice, "serve", "part", "demo", "100") != 0
    assert real_aip(alice, "serve", "promote", "demo") != 0
    assert real_aip(alice, "serve", "rollback", "demo") == 0
    assert real_aip(alice, "serve", "trials", "demo") == 0
    assert real_aip(alice, "serve", "usage", "demo", "--span", "week") == 0

    printed = capfd.readouterr()
    said = printed.out + printed.err
    assert "newer v1 gets 20 % of the requests." in said
    assert "cells v1 serves all requests." in said
    assert "rolled_back" in printed.out
