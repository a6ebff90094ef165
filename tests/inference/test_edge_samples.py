"""Pictures that devices keep for annotation: taken as hostile bytes, once each, shown, and made a dataset."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from django.utils.timezone import now
from PIL import Image
from rest_framework.test import APIClient

from aiplatform.lib.errors import Invalid
from datasets.models import DatasetVersion, Import
from datasets.services import imports
from inference.delivery.edge import fleet, sampling
from inference.delivery.edge.device import samples as on_device
from inference.delivery.edge.models import EdgeDevice, EdgeGroup
from inference.serving.feedback import samples
from inference.serving.feedback.models import ServiceSample
from tests.factories import models as factory
from tests.inference import pictures

pytestmark = pytest.mark.django_db(transaction=True)
SEND = "/api/v1/edge/samples"


@pytest.fixture
def version(alice, tmp_path):
    return factory.model_version(alice, tmp_path)


@pytest.fixture
def group(alice, version):
    made = fleet.create(user=alice, name="Gates")
    fleet.release(group=made, version=version, share=100, by=alice)
    return sampling.set_rule(group=made, percent=10, below=50, days=14, by=alice)


@pytest.fixture
def token(group, alice):
    _made, code = fleet.add_device(group=group, name="gate-1", by=alice)
    return fleet.enrol(code=code, hardware={})["token"]


def jpeg(number, size=(96, 64)):
    image = Image.new("RGB", size)
    image.paste((255, 0, 0), (number, 10, number + 20, 40))
    return pictures.encoded(image, "JPEG", quality=95)


def send(token, picture, *, answers=(), why="low_score", **more):
    fields = {"image": SimpleUploadedFile("x.jpg", picture), "answers": json.dumps(list(answers)), "why": why} | more
    return APIClient().post(SEND, fields, headers={"Authorization": f"Edge {token}"})


def test_picture_that_comes_twice_is_there_once_also_after_it_was_annotated(group, token, alice):
    assert [send(token, jpeg(1)).status_code for _time in range(3)] == [204] * 3
    (sample,) = ServiceSample.objects.all()
    assert (sample.group, sample.service, sample.device, sample.why) == (group, None, "gate-1", "low_score")
    assert sample.model_name == "cells v1"
    assert sample.file.read_bytes() == jpeg(1)

    samples.annotate(holder=EdgeGroup.objects.get(), name="back", by=alice)

    assert send(token, jpeg(1)).status_code == 204
    assert samples.waiting(group) == []


def test_answers_of_devices_become_the_draft_of_a_dataset(group, token, alice, version, client):
    name = version.classes[0]["name"]
    send(token, jpeg(5), answers=[{"name": name, "score": 0.4, "box": [5, 10, 25, 40]}, {"name": "unheard of"}])
    client.force_login(alice)

    made = client.post(reverse("inference:edge-samples", args=[group.pk]), {"name": "back"})

    assert made.status_code == 302
    imports.run(Import.objects.get().pk)
    draft = DatasetVersion.objects.get()
    assert (draft.image_count, draft.annotation_count) == (1, 1)
    assert json.loads((draft.path / "annotations.json").read_text())["annotations"][0]["bbox"] == [5, 10, 20, 30]


@pytest.mark.parametrize(
    "picture",
    [
        b"", b"no picture", b"\xff\xd8\xff" + b"x" * 500, pictures.plain(), jpeg(1)[:300],
        b"\xff\xd8\xff" + b"x" * sampling.MAX_BYTES,
    ],
    ids=["empty", "words", "only its beginning", "png", "cut", "too large"],
)  # fmt: skip
def test_bytes_that_are_no_small_jpeg_are_refused(group, token, picture):
    assert send(token, picture).status_code == 400
    assert not ServiceSample.objects.exists()


@pytest.mark.parametrize(
    "more",
    [{"why": "because"}, {"answers": "{"}, {"answers": '{"a": 1}'}, {"answers": "[" * 5000}, {"answers": "[1]"}],
)
def test_odd_heads_are_refused(group, token, more):
    assert send(token, jpeg(1), **more).status_code == 400
    assert not ServiceSample.objects.exists()


def test_group_that_keeps_nothing_takes_nothing_and_says_nothing_of_it_in_its_word(group, token, alice):
    device = EdgeDevice.objects.select_related("group__wanted", "group__before").get()
    assert fleet.word(device)["document"]["samples"] == {"percent": 10, "below": 0.5}
    before = device.group.number

    sampling.set_rule(group=group, percent=0, below=0, days=14, by=alice)

    device = EdgeDevice.objects.select_related("group__wanted", "group__before").get()
    document = fleet.word(device)["document"]
    assert "samples" not in document
    assert document["number"] > before  # a word that somebody kept does not bring it back
    assert (send(token, jpeg(1)).status_code, ServiceSample.objects.count()) == (409, 0)


def test_stranger_sends_nothing(group, token):
    assert send("aipe_nobody", jpeg(1)).status_code == 401
    assert APIClient().post(SEND, {}).status_code == 401


def test_no_more_is_taken_than_there_is_room_for(group, token, monkeypatch):
    monkeypatch.setattr(samples, "MAX_SAMPLES", 2)  # of which rules may take the half
    assert send(token, jpeg(1)).status_code == 204

    assert send(token, jpeg(2)).status_code == 409
    assert send(token, jpeg(1)).status_code == 204  # it is there


def test_rule_out_of_bounds_is_refused_with_all_that_is_wrong(group, alice):
    with pytest.raises(Invalid) as refused:
        sampling.set_rule(group=group, percent=101, below=-1, days=0, by=alice)

    assert [error.blamed for error in refused.value.every] == ["keep_percent", "keep_below", "keep_days"]


def test_pictures_go_after_the_days_of_their_group_and_with_it(group, token, alice):
    send(token, jpeg(1))
    file = ServiceSample.objects.get().file
    ServiceSample.objects.update(at=now() - timedelta(days=13))
    samples.sweep()
    assert file.exists()

    ServiceSample.objects.update(at=now() - timedelta(days=15))
    samples.sweep()
    assert not file.exists()
    send(token, jpeg(2))
    file = ServiceSample.objects.get().file
    fleet.delete(group=EdgeGroup.objects.get(), by=alice)
    samples.sweep()
    assert not file.exists()


def test_pages_show_why_and_until_when_and_belong_to_the_owner(group, token, alice, bob, client):
    send(token, jpeg(1))
    row = ServiceSample.objects.get()
    page, rule = (reverse(f"inference:{name}", args=[group.pk]) for name in ("edge-samples", "edge-sample-rule"))
    picture = reverse("inference:edge-sample", args=[group.pk, row.pk])
    client.force_login(alice)

    shown = client.get(page).content.decode()

    assert "Low confidence" in shown
    assert "gate-1" in shown
    assert "Stored until" in shown
    assert (
        "Devices of this group store images"
        in client.get(reverse("inference:edge-group", args=[group.pk])).content.decode()
    )
    assert b"".join(client.get(picture).streaming_content) == jpeg(1)
    assert client.post(rule, {"keep_percent": 200, "keep_below": 0, "keep_days": 1}).status_code == 422
    assert client.post(rule, {"keep_percent": 20, "keep_below": 0, "keep_days": 1}).status_code == 302
    assert EdgeGroup.objects.get().keep_percent == 20
    client.force_login(bob)
    assert [client.get(url).status_code for url in (page, picture)] == [404, 404]
    assert client.post(rule, {}).status_code == 404
    client.force_login(alice)
    assert client.post(reverse("inference:edge-sample-remove", args=[group.pk, row.pk])).status_code == 302
    assert not ServiceSample.objects.exists()


def test_api_sets_the_rule_lists_and_annotates(group, token, api, bob):
    send(token, jpeg(1))
    route = f"/api/v1/edge-groups/{group.pk}/"

    content = api.post(f"{route}sampling/", {"keep_below": 30}, format="json").json()
    rows = api.get(f"{route}samples/").json()
    stranger = APIClient()
    stranger.force_authenticate(bob)

    assert (content["keep_percent"], content["keep_below"], content["keep_days"]) == (10, 30, 14)
    assert [(row["why"], row["device"], row["width"]) for row in rows] == [("low_score", "gate-1", 96)]
    assert stranger.get(f"{route}samples/").status_code == 404
    assert api.post(f"{route}annotate/", {"name": "back"}, format="json").status_code == 202
    assert api.post(f"{route}annotate/", {"name": "again"}, format="json").status_code == 409


def kept_by(folder: Path, **rule: float) -> on_device.Samples:
    made = on_device.Samples(folder, lambda picture: picture)
    made.follow(rule)
    return made


HEAD = {"answers": [], "why": "chance", "package": ""}


def test_device_keeps_so_many_and_lets_the_oldest_go(tmp_path, monkeypatch):
    monkeypatch.setattr(on_device, "MAX_IMAGES", 3)
    made = kept_by(tmp_path, percent=100)

    for number in (*range(5), 4):
        made.store(b"picture %d" % number, HEAD)

    assert [on_device.read(path)[1] for path in made.list_stored()] == [b"picture 2", b"picture 3", b"picture 4"]
    monkeypatch.setattr(on_device, "MAX_BYTES", 150)
    made.store(b"p" * 50, HEAD)
    assert sum(path.stat().st_size for path in made.list_stored()) <= 150


def test_device_keeps_by_score_and_by_chance_and_nothing_where_that_is_forbidden(tmp_path):
    made = kept_by(tmp_path / "a", below=0.5)
    assert made._reason([{"score": 0.9}, {"score": 0.4}]) == "low_score"
    assert (made._reason([{"score": 0.9}]), made._reason([])) == ("", "")
    assert kept_by(tmp_path / "b", percent=100)._reason([]) == "chance"
    made.store(b"picture", HEAD)

    made.follow(None)
    forbidden = on_device.Samples(tmp_path / "a", lambda picture: picture, allowed=False)
    forbidden.follow({"percent": 100})
    forbidden.store(b"picture", HEAD)

    assert (made.state, forbidden.state) == ("off", "forbidden")
    assert made.list_stored() == []
