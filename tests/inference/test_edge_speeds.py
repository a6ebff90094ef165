"""How fast versions answer on devices: what devices say, kept within bounds, and shown for each kind of hardware."""

from __future__ import annotations

import pytest
from django.urls import reverse
from rest_framework.test import APIClient

from inference.conversion import table
from inference.conversion.models import Conversion, ConvertedVariant
from inference.delivery.edge import fleet
from inference.delivery.edge.models import DeviceSpeed, EdgeDevice
from inference.registry import hardware_speeds, model_jobs
from inference.registry.models import ModelTask
from tests.factories import models as factory

pytestmark = pytest.mark.django_db
PI = {"model": "Raspberry Pi 5", "machine": "aarch64", "cores": 4}
TIMED = {"p50_ms": 20.0, "p95_ms": 25.0, "runs": 50, "threads": 4, "provider": "CPUExecutionProvider",
         "runtime": "onnxruntime 1.23", "memory_mib": 80.0}  # fmt: skip


@pytest.fixture
def version(alice, tmp_path):
    return factory.model_version(alice, tmp_path)


@pytest.fixture
def group(alice, version):
    made = fleet.create(user=alice, name="Gates")
    return fleet.release(group=made, version=version, share=100, by=alice)


def report_speed(group, name, by, hardware=PI, **speed):
    """Report from a device of a group that has measured the model."""
    if not group.devices.filter(name=name).exists():
        fleet.add_device(group=group, name=name, by=by)
    device = EdgeDevice.objects.select_related("group__wanted", "group__before").get(name=name)
    figures = {"package": group.wanted.sha256, **TIMED, **speed}
    fleet.report(device, {"outcome": "same", "package": group.wanted.sha256, "hardware": hardware, "speed": figures})


def test_devices_of_one_kind_are_one_row_with_the_median_of_their_medians(group, alice, version):
    for name, p50 in (("a", 10.0), ("b", 20.0), ("c", 90.0)):
        report_speed(group, name, alice, p50_ms=p50, p95_ms=100.0)
    report_speed(group, "d", alice, hardware={"processor": "Xeon", "machine": "x86_64"}, p50_ms=1.0, threads=16)

    rows = hardware_speeds.for_version(version)

    assert [(row.hardware, row.machine, row.threads, row.devices, row.p50_ms) for row in rows] == [
        ("Xeon", "x86_64", 16, 1, 1.0),
        ("Raspberry Pi 5", "aarch64", 4, 3, 20.0),
    ]


def test_device_that_times_anew_replaces_what_it_said(group, alice, version):
    report_speed(group, "a", alice)
    report_speed(group, "a", alice, p50_ms=12.0)

    assert [row.p50_ms for row in DeviceSpeed.objects.all()] == [12.0]


@pytest.mark.parametrize(
    "lie",
    [
        {"p50_ms": -1}, {"p50_ms": 0}, {"p50_ms": "1"}, {"p50_ms": 1e9, "p95_ms": 1e9}, {"p95_ms": 1.0},
        {"p50_ms": float("nan")}, {"runs": 0}, {"threads": 1e9}, {"package": "0" * 64}, {"package": ["x"]},
        {"p50_ms": None},
    ],
)  # fmt: skip
def test_figures_that_cannot_be_are_passed_over_and_the_report_is_kept(group, alice, lie):
    report_speed(group, "a", alice, **lie)

    assert not DeviceSpeed.objects.exists()
    assert EdgeDevice.objects.get().outcome == "same"


def test_words_of_a_device_are_cut_and_shown_as_words(group, alice, version, client):
    report_speed(group, "a", alice, hardware={"model": "<b>" + "x" * 300}, provider="y" * 300, memory_mib=-5)
    client.force_login(alice)

    page = client.get(reverse("inference:model-detail", args=[version.model_id])).content.decode()

    row = DeviceSpeed.objects.get()
    assert (len(row.hardware), len(row.provider), row.memory_mib) == (100, 100, None)
    assert "&lt;b&gt;xxx" in page
    assert "<b>xxx" not in page


def test_measurements_on_nodes_stand_in_the_same_table_the_newest_of_each(group, alice, version):
    report_speed(group, "a", alice)
    for p50 in (5.0, 7.0):
        figures = {"p50_ms": p50, "p95_ms": 8.0, "processor": "Raspberry Pi 5", "machine": "aarch64", "threads": 4,
                   "provider": "CPUExecutionProvider", "node": "node-1", "memory_mib": 40.0}  # fmt: skip
        job = factory.training_job(alice, kind="model_task")
        ModelTask.objects.create(job=job, act="measure", version=version, figures=figures)

    odd = {"p50_ms": 5.0, "p95_ms": "soon", "memory_mib": "much", "threads": "some", "node": "node-2"}
    ModelTask.objects.create(job=factory.training_job(alice), act="measure", version=version, figures=odd)

    rows = {row.nodes: row for row in hardware_speeds.for_version(version)}

    row = rows["node-1",]
    assert (row.devices, row.p50_ms, row.memory_mib) == (1, 13.5, 60.0)
    row = rows["node-2",]
    assert (row.hardware, row.threads, row.p95_ms, row.memory_mib) == ("", 0, 5.0, None)


def test_api_gives_the_table_to_whoever_sees_the_version(group, alice, bob, version, api):
    report_speed(group, "a", alice)

    rows = api.get(f"/api/v1/model-versions/{version.pk}/hardware/").json()
    stranger = APIClient()
    stranger.force_authenticate(bob)

    assert [(row["hardware"], row["devices"], row["nodes"], row["p50_ms"]) for row in rows] == [
        ("Raspberry Pi 5", 1, [], 20.0)
    ]
    assert stranger.get(f"/api/v1/model-versions/{version.pk}/hardware/").status_code == 404


def test_conversion_shows_its_variants_side_by_side_on_each_kind_of_hardware(group, alice, version, tmp_path, client):
    job = factory.training_job(alice, kind="conversion")
    conversion = Conversion.objects.create(job=job, version=version, params={"targets": ["fp16"]})
    assert table.on_hardware(conversion) is None
    half = factory.model_version(alice, tmp_path, name="half", model=version.model)
    ConvertedVariant.objects.create(conversion=conversion, target="fp16", state="accepted", made=half)
    report_speed(group, "a", alice)
    report_speed(fleet.release(group=group, version=half, share=100, by=alice), "a", alice, p50_ms=11.0)
    client.force_login(alice)

    shown = table.on_hardware(conversion)
    page = client.get(reverse("inference:conversion-detail", args=[conversion.pk])).content.decode()

    assert shown["variants"] == ["Original", "FP16"]
    assert [(row["kind"].hardware, row["devices"], row["ms"]) for row in shown["rows"]] == [
        ("Raspberry Pi 5", 1, [20.0, 11.0])
    ]
    assert "Raspberry Pi 5" in page


def test_person_asks_for_a_measurement_on_a_model_of_card(alice, version, client, api, monkeypatch):
    requests = []
    monkeypatch.setattr(
        model_jobs.submission,
        "submit",
        lambda **options: requests.append(options) or factory.training_job(alice, kind="model_task"),
    )
    client.force_login(alice)

    client.post(reverse("inference:version-measure", args=[version.pk]), {"device": "gpu:NVIDIA L4"})
    client.post(reverse("inference:version-measure", args=[version.pk]))
    api.post(f"/api/v1/model-versions/{version.pk}/measurements/", {"device_model": "NVIDIA L4"}, format="json")

    assert [(request["gpus_per_node"], request.get("device_model", "")) for request in requests] == [
        (1, "NVIDIA L4"), (0, ""), (1, "NVIDIA L4"),
    ]  # fmt: skip
