"""Pages and API of conversions."""

import pytest
from django.urls import reverse
from rest_framework.test import APIClient

from inference.conversion.models import Conversion
from inference.templatetags import conversion as conversion_tags
from tests.factories import models as factory
from tests.inference import converted, judged

pytestmark = pytest.mark.django_db


@pytest.fixture
def model(alice, tmp_path):
    return factory.model_version(alice, tmp_path)


@pytest.fixture
def data(alice, tmp_path):
    return judged.dataset_version(alice, tmp_path / "data")


def test_conversion_api(api, alice, bob, model, data):
    sent = {"model_version": "cells:1", "version": data.pk, "targets": ["fp16"], "looks": 8, "keep": "none"}
    made = api.post("/api/v1/conversions/", sent, format="json")
    assert made.status_code == 201, made.content
    conversion = Conversion.objects.get()
    converted.ran(conversion)

    row = api.get(f"/api/v1/conversions/{conversion.pk}/").json()
    assert [(variant["target"], variant["state"], variant["made"]) for variant in row["variants"]] == [
        ("fp16", "accepted", None)
    ]
    assert api.get("/api/v1/conversions/", {"search": "cells"}).json()["results"][0]["id"] == conversion.pk
    assert len(api.get(f"/api/v1/conversions/{conversion.pk}/results/").json()["rows"]) == 2
    response = api.post(f"/api/v1/conversions/{conversion.pk}/keep/", {"target": "fp16"}, format="json")
    assert (response.status_code, response.json()["number"]) == (200, 2)
    missing = api.post(f"/api/v1/conversions/{conversion.pk}/keep/", {"target": "int8"}, format="json")
    assert missing.status_code == 404
    other = APIClient()
    other.force_authenticate(bob)
    assert other.get(f"/api/v1/conversions/{conversion.pk}/").status_code == 404
    wrong = api.post("/api/v1/conversions/", sent | {"targets": ["nope"], "looks": 1}, format="json")
    assert wrong.status_code == 400


def test_conversion_pages(client, alice, bob, model, data):
    client.force_login(alice)
    page_form = client.get(reverse("inference:conversion-new"), {"model_version": model.pk, "version": data.pk})
    assert page_form.status_code == 200
    sent = {
        "model_version": model.pk, "version": data.pk, "targets": ["fp16", "int8"], "max_loss": "1", "keep": "none",
        "split": "test", "looks": "8", "method": "minmax", "cpus": "1", "gpus_per_node": "0",
    }  # fmt: skip
    assert client.post(reverse("inference:conversion-new"), sent | {"targets": []}).status_code == 422
    assert client.post(reverse("inference:conversion-fit"), sent).status_code == 200
    made = client.post(reverse("inference:conversion-new"), sent)
    conversion = Conversion.objects.get()
    page = reverse("inference:conversion-detail", args=[conversion.pk])
    assert made.headers["Location"] == page
    assert b"Waiting" in client.get(page).content
    converted.ran(conversion)

    shown = client.get(page).content.decode()
    assert "INT8, calibrated" in shown
    assert "Create version" in shown
    response = client.post(reverse("inference:conversion-keep", args=[conversion.pk, "int8"]))
    assert response.headers["Location"] == f"{reverse('inference:model-detail', args=[model.model_id])}?version=2"
    again = client.get(page).content.decode()
    assert again.count("Create version") == shown.count("Create version") - 1
    assert ">v2</a>" in again
    assert "Measured during conversion" in client.get(response.headers["Location"]).content.decode()
    assert client.post(reverse("inference:conversion-keep", args=[conversion.pk, "fp32"])).status_code == 404
    assert "cells_v1_conversion" in client.get(reverse("inference:conversion-list")).content.decode()
    client.force_login(bob)
    assert client.get(page).status_code == 404
    assert client.post(reverse("inference:conversion-stop", args=[conversion.pk])).status_code == 404


def test_ratios_state_which_side_is_better():
    assert [conversion_tags.times_faster(1.5), conversion_tags.times_faster(0.5)] == ["1.50× faster", "2.00× slower"]
    assert [conversion_tags.times_smaller(3), conversion_tags.times_smaller(0.8)] == ["3.00× smaller", "1.25× larger"]
