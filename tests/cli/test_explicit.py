"""Large-scale mode says the same at the command line, on the page and by the API."""

from __future__ import annotations

import pytest

from tests.factories import training as factory
from tests.factories import work
from training.presets.catalog import PRESETS
from training.runs.models import TrainingJob

pytestmark = pytest.mark.django_db
LEFT_OUT = ("lr", "batch_size", "weights", "architecture")


@pytest.fixture
def cells(alice):
    work.node(cores=4)
    return factory.version(alice, "cells")


def options(preset: str, *left_out: str) -> list[str]:
    values = {param.name: param.default for param in PRESETS[preset].parameters if param.name not in left_out}
    words = (f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in values.items())
    return [part for word in words for part in ("-p", word)]


def fields(preset: str, version: int, *left_out: str) -> dict[str, object]:
    """The same as the form sends it."""
    shown = {"preset": preset, "version": version, "explicit": "1", "nodes": 1, "gpus_per_node": 0, "cpus": 1}
    values = {param.name: param.default for param in PRESETS[preset].parameters if param.name not in left_out}
    typed = {f"{preset}__{name}": str(v).lower() if isinstance(v, bool) else v for name, v in values.items()}
    return shown | {"processes": 0} | typed


def test_command_page_and_api_name_all_missing_parameters_at_once(real_aip, as_alice, api, alice, cells, capfd):
    submit = ("train", "submit", "big", "--preset", "detect", "--data", cells.pk, "--explicit", "--cpus", 1)
    sentences = {f"{name} is missing. Explicit mode requires every parameter." for name in LEFT_OUT}

    code = real_aip(alice, *submit, *options("detect", *LEFT_OUT))
    page = as_alice.post("/training/new/", fields("detect", cells.pk, *LEFT_OUT)).context["form"].errors
    given = {param.name: param.default for param in PRESETS["detect"].parameters if param.name not in LEFT_OUT}
    body = {"preset": "detect", "version": cells.pk, "explicit": True, "cpus": 1, "params": given}
    answer = api.post("/api/v1/training/jobs/", body, format="json").json()

    assert code == 2
    printed = capfd.readouterr().err
    assert all(printed.count(sentence) == 1 for sentence in sentences), printed
    assert {said for row in page.values() for said in row} == sentences
    assert {said for row in answer["errors"].values() for said in row} == sentences
    assert not TrainingJob.objects.exists()


@pytest.mark.parametrize("preset", ["hog_svm", "hog_detect"])
def test_command_page_and_api_refuse_presets_for_processors_alike(real_aip, as_alice, api, alice, cells, capfd, preset):
    said = f"{PRESETS[preset].title} trains only on CPUs, and explicit mode is for GPUs. Leave this mode."

    code = real_aip(
        alice, "train", "submit", "--preset", preset, "--data", cells.pk, "--explicit", "--cpus", 1, *options(preset)
    )  # fmt: skip
    page = as_alice.post("/training/new/", fields(preset, cells.pk)).context["form"].errors
    given = {param.name: param.default for param in PRESETS[preset].parameters}
    body = {"preset": preset, "version": cells.pk, "explicit": True, "cpus": 1, "params": given}
    answer = api.post("/api/v1/training/jobs/", body, format="json").json()

    assert code
    assert said in capfd.readouterr().err
    assert said in page["preset"]
    assert said in answer["errors"]["preset"]
    assert not TrainingJob.objects.exists()


def test_command_with_every_parameter_is_taken(real_aip, alice, cells):
    submit = ("train", "submit", "big", "--preset", "detect", "--data", cells.pk, "--explicit", "--cpus", 1)

    assert real_aip(alice, *submit, *options("detect")) == 0
    assert TrainingJob.objects.get().params == {param.name: param.default for param in PRESETS["detect"].parameters}
