"""`aip edge` against the real API."""

from __future__ import annotations

import pytest

from inference.delivery.edge import logs, speeds
from inference.delivery.edge.models import EdgeDevice, EdgeGroup
from tests.factories import models as factory

pytestmark = pytest.mark.django_db


def test_cli_makes_a_group_adds_a_device_and_releases_a_model(real_aip, alice, tmp_path, capfd):
    factory.model_version(alice, tmp_path)

    assert real_aip(alice, "edge", "list") == 0
    assert real_aip(alice, "edge", "create", "Gates", "--days-offline", "30") == 0
    assert real_aip(alice, "edge", "add", "Gates", "gate-1") == 0
    assert real_aip(alice, "edge", "release", "Gates", "cells:1", "--share", "10") == 0
    assert real_aip(alice, "edge", "list") == 0
    assert real_aip(alice, "edge", "devices", "Gates") == 0
    assert real_aip(alice, "edge", "sampling", "Gates", "--percent", "5", "--below", "40") == 0
    assert real_aip(alice, "edge", "annotate", "Gates", "back") != 0  # nothing waits
    assert real_aip(alice, "edge", "rollback", "Gates") != 0
    assert real_aip(alice, "edge", "release", "Gates", "cells:1", "--share", "33") != 0
    device = EdgeDevice.objects.get()
    logs.store(device, [[1_700_000_000_000, "disk is \x1b[31modd"]])
    speed = {"package": device.group.wanted.sha256, "p50_ms": 20.5, "p95_ms": 21, "runs": 9, "threads": 4}
    speeds.record(device, speed, hardware={"card": "Orin"})
    assert real_aip(alice, "edge", "log", device.pk) == 0
    assert real_aip(alice, "models", "hardware", "cells:1") == 0
    assert real_aip(alice, "edge", "revoke", device.pk) == 0
    assert real_aip(alice, "edge", "remove", device.pk, "--yes") == 0
    assert real_aip(alice, "edge", "delete", "Gates", "--yes") == 0

    printed = capfd.readouterr()
    assert "python3 aip-edge.pyz enrol --server" in printed.out + printed.err
    assert "cells v1 is released to 10 % of the devices of Gates." in printed.out + printed.err
    assert "not enrolled" in printed.out
    assert "5 % at random, and those with a confidence below 40 %" in printed.out + printed.err
    assert "2023-11-14" in printed.out
    assert "\x1b" not in printed.out
    assert "20.5 ms" in printed.out
    assert "Orin" in printed.out
    assert not EdgeGroup.objects.exists()
