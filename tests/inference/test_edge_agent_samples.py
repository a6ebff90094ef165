"""Pictures and lines that the agent sends, against the real server: killed while it sends, forbidden, and cut short."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess

import pytest
from PIL import Image

from aiplatform.lib import files
from inference.delivery.edge import fleet, sampling
from inference.delivery.edge.device.samples import Samples
from inference.delivery.edge.models import EdgeGroup
from inference.kit.models import selftest
from inference.kit.models.standalone import Model
from inference.registry.selftest import self_tests
from inference.registry.selftest.models import SelfTest
from inference.serving.feedback import samples
from inference.serving.feedback.models import ServiceSample
from tests.factories import models as factory
from tests.inference import pictures
from tests.inference.edge_device import Device, predict, released, row, wait_for

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.sockets("an agent asks the platform, and answers pictures"),
]
HEAD = {"answers": [], "why": "chance", "package": ""}


@pytest.fixture
def group(alice):
    return fleet.create(user=alice, name="Gates")


@pytest.fixture
def device(alice, group, tmp_path, live_server):
    made = Device(tmp_path / "device", live_server.url)
    _row, code = fleet.add_device(group=group, name="gate-1", by=alice)
    assert made.enrol(code).returncode == 0
    released(group, factory.model_version(alice, tmp_path), alice)
    sampling.set_rule(group=group, percent=100, below=0, days=30, by=alice)
    return made


def kept_on(device: Device, count: int) -> Samples:
    """Images that a device kept while it was offline."""
    samples = Samples(device.root / "samples", lambda picture: picture)
    samples.follow({"percent": 100})
    for number in range(count):
        image = Image.new("RGB", (40, 30), (60 * number, 0, 0))
        samples.store(pictures.encoded(image, "JPEG"), HEAD)
    return samples


def test_pictures_that_a_device_answers_come_upright_as_jpegs_without_what_the_camera_wrote(alice, group, device):
    process = subprocess.Popen(
        device.command("run", "--port", str(device.port), "--every", "0.2"), env={"PATH": os.environ["PATH"]},
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    image = Image.new("RGB", (60, 40), (200, 0, 0))
    exif = image.getexif()
    exif[0x0112], exif[0x010F] = 6, "Camera of somebody"
    try:
        wait_for(lambda: row(group).samples == "on")
        for body in (pictures.encoded(image, "JPEG", exif=exif), pictures.plain("green"), pictures.plain("green")):
            predict(device.port, body)
        wait_for(lambda: ServiceSample.objects.count() == 2 and not list((device.root / "samples").iterdir()))
    finally:
        process.send_signal(signal.SIGTERM)
        output, _errors = process.communicate()

    there = list(ServiceSample.objects.order_by("pk"))
    first = Image.open(io.BytesIO(there[0].file.read_bytes()))
    assert [(row_.kind, row_.why, row_.model_name) for row_ in there] == [("JPEG", "chance", "cells v1")] * 2
    assert (first.size, dict(first.getexif())) == ((40, 60), {})
    assert "The platform keeps some of the pictures" in output


@pytest.mark.parametrize("step", ["sending", "sent", "reported"])
def test_agent_killed_while_it_sends_loses_nothing_and_sends_nothing_twice(alice, group, device, step):
    assert device.round() == "updated"
    samples = kept_on(device, 4)

    for _time in range(2):
        assert device.round(AIP_EDGE_DIE=step).startswith("died -9")
        assert ServiceSample.objects.count() + len(samples.list_stored()) >= 4  # each is on one side at least
    for _time in range(2):
        assert device.round() == "same"

    assert sorted(len(row_.sha256) for row_ in ServiceSample.objects.all()) == [64] * 4
    assert samples.list_stored() == []
    lines = [text for _number, text in row(group).log.lines]
    assert lines.count("updated") == 1
    assert lines.count("agent 1 begins") >= 2


def test_agent_that_may_not_lets_no_picture_leave_and_says_so(alice, group, device):
    assert device.round() == "updated"
    samples = kept_on(device, 2)

    assert device.round("--no-samples") == "same"

    assert (ServiceSample.objects.count(), samples.list_stored(), row(group).samples) == (0, [], "forbidden")
    assert "No picture leaves this device" in str(row(group).log.lines)


def test_group_that_keeps_no_longer_takes_what_waits_on_its_devices_away(alice, group, device):
    assert device.round() == "updated"
    samples = kept_on(device, 2)
    sampling.set_rule(group=EdgeGroup.objects.get(), percent=0, below=0, days=30, by=alice)

    assert device.round() == "same"

    assert (ServiceSample.objects.count(), samples.list_stored(), row(group).samples) == (0, [], "off")


@pytest.mark.long
def test_picture_that_the_server_never_takes_goes_and_one_without_room_waits(alice, group, device, monkeypatch):
    assert device.round() == "updated"
    stored = kept_on(device, 1)
    stored.store(b"\xff\xd8\xff no picture", HEAD)
    (device.root / "samples" / "000000000000001-torn").write_bytes(b"{")
    monkeypatch.setattr(samples, "MAX_SAMPLES", 0)
    assert device.round() == "same"
    assert len(stored.list_stored()) == 2  # the torn one is gone; where there is no room the next waits, too
    monkeypatch.undo()

    assert device.round() == "same"

    assert (ServiceSample.objects.count(), stored.list_stored()) == (1, [])


@pytest.mark.long
def test_what_a_model_complains_of_is_in_the_log_of_its_device(alice, group, device):
    assert device.round() == "updated"
    server = (device.root / "current").resolve() / "inference" / "server" / "alone.py"
    server.write_text("import sys\nsys.exit('the disk of this device is odd <b>')\n")

    device.round()
    device.round()  # the lines of a model that ended come with the next report at the latest

    assert "the disk of this device is odd <b>" in str(row(group).log.lines)


def test_model_that_answers_otherwise_than_the_platform_did_is_refused(alice, group, device, tmp_path):
    version = factory.model_version(alice, tmp_path, name="good")
    sampled(version, shift=0.0)
    before = released(group, version, alice)
    assert device.round() == "updated"
    other = factory.model_version(alice, tmp_path, name="other", task="tagging")
    sampled(other, shift=0.2)
    released(group, other, alice)

    assert device.round() == "answers_differ"
    assert device.installed == before
    report = row(group)
    assert {name: report.differs[name] for name in ("sample", "samples", "kind")} == {
        "sample": 1, "samples": 1, "kind": "score",
    }  # fmt: skip
    assert report.differs["largest"] == pytest.approx(0.2)
    group.refresh_from_db()
    assert group.halted


def sampled(version, shift: float) -> None:
    """Give a version a sample with its answer; the first score is moved by so much."""
    answer = json.loads(json.dumps(Model(version.path).predict(selftest.drawn(0))))
    answer["predictions"][0]["score"] -= shift
    files.write_json(
        self_tests.file_of(version), {"format": 1, "samples": [{"seed": 0, "asked": {}, "answer": answer}]}
    )
    SelfTest.objects.create(version=version, samples=1, pictures=0)
