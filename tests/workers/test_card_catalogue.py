"""What is known of cards, and what a machine should have beside them: catalogue, page, API, `doctor`."""

from __future__ import annotations

import json

import pytest

from aiplatform.cli import doctor
from workers.core.models import Device, Node
from workers.resources.nodes import card_catalogue
from workers.resources.nodes.telemetry import sampler
from workers.resources.nodes.telemetry.probe import Card

pytestmark = pytest.mark.django_db
V100, UNKNOWN = "Tesla V100-SXM2-16GB", "Graphics Wonder 9000"
GIB = 1024


@pytest.fixture
def machine():
    node = Node.objects.create(name="gpu-01", memory_mib=64 * GIB, cpu_cores=32)
    for index, model in enumerate([*[V100] * 7, UNKNOWN]):
        Device.objects.create(node=node, kind="gpu", index=index, model=model, memory_mib=16 * GIB)
    Device.objects.create(node=node, kind="gpu", index=8, model="simulated", memory_mib=80 * GIB, simulated=True)
    return node


def test_catalogue_says_the_figures_of_a_known_card_and_where_they_are_from():
    card = card_catalogue.find(V100)

    assert (card.fp64, card.fp32, card.mixed, card.memory_gb, card.bandwidth) == (7.8, 15.7, 125, 16, 900)
    assert card_catalogue.rates(card) == "FP64 7.8, FP32 15.7, mixed 125 TFLOPS · 16 GB at 900 GB/s"
    assert all(one.sources for one in card_catalogue.CARDS)
    names = [name for one in card_catalogue.CARDS for name in one.names]
    assert len(names) == len(set(names))


def test_catalogue_leaves_out_what_no_source_says():
    text = card_catalogue.rates(card_catalogue.find("NVIDIA A100 80GB PCIe"))

    assert text == "80 GB at 1935 GB/s"


@pytest.mark.parametrize(
    ("memory_gib", "cards_gib", "enough"), [(64, [16] * 8, False), (128, [16] * 8, True), (2, [], True)]
)
def test_advice_asks_for_as_much_memory_as_the_cards_have(memory_gib, cards_gib, enough):
    said = card_catalogue.advice(memory_gib * GIB, [card * GIB for card in cards_gib])

    assert (said == "") is enough
    assert enough or ("64 GiB" in said and "128 GiB" in said)


def test_machine_page_says_rates_unknown_cards_and_advice(machine, as_alice):
    page = as_alice.get(f"/cluster/nodes/{machine.pk}/").content.decode()

    assert page.count("FP64 7.8, FP32 15.7, mixed 125 TFLOPS") == 7
    assert page.count("Not in the GPU catalog") == 1
    assert "64 GiB, is smaller than that of its GPUs, 128 GiB" in page


def test_api_gives_known_rates_and_null_for_other_cards(machine, api):
    node = api.get(f"/api/v1/nodes/{machine.pk}/").json()
    known = [device["known"] for device in node["devices"]]

    assert known[0]["mixed"] == 125
    assert known[7:] == [None, None]
    assert "128 GiB" in node["advice"]


def test_doctor_says_rates_and_advice(monkeypatch, capsys):
    class Probe:
        def cards(self):
            return [Card(0, "GPU-1", V100, 1 << 30), Card(1, "GPU-2", UNKNOWN, 16 * GIB)]

    monkeypatch.setattr(sampler, "open_probe", lambda *_given: Probe())
    monkeypatch.setattr(doctor, "CHECKS", (doctor._devices,))

    doctor.main(["--json"])

    found = json.loads(capsys.readouterr().out)["findings"]
    assert "mixed 125 TFLOPS" in found[0]["text"]
    assert "Not in the GPU catalog" in found[1]["text"]
    assert (found[2]["what"], found[2]["level"]) == ("memory", "warning")
