"""Large-scale mode: the dataset is there, and every parameter of the preset is given."""

from __future__ import annotations

import pytest

from tests.datasets.helpers import uploaded
from training.presets.catalog import PRESETS
from training.runs.models import TrainingJob

API = "/api/v1/training/jobs/"
PAGE = "/training/new/"


def every(preset: str) -> dict[str, object]:
    return {param.name: param.default for param in PRESETS[preset].parameters}


def test_large_scale_mode_names_all_missing_parameters_at_once(api, machine, cells):
    given = every("detect")
    missing = sorted(given)[:3]
    sent = {"preset": "detect", "version": cells.pk, "explicit": True, "cpus": 1}

    refused = api.post(API, sent | {"params": {n: v for n, v in given.items() if n not in missing}}, format="json")
    taken = api.post(API, sent | {"params": given}, format="json")

    said = refused.json()["errors"]
    assert sorted(said) == [f"param_{name}" for name in missing]
    assert said[f"param_{missing[0]}"] == [f"{missing[0]} is missing. Explicit mode requires every parameter."]
    assert taken.status_code == 201


def test_large_scale_mode_takes_no_empty_parameter(api, machine, cells):
    sent = {"preset": "detect", "version": cells.pk, "explicit": True}

    said = api.post(API, sent | {"params": every("detect") | {"lr": ""}}, format="json").json()

    assert "param_lr" in said["errors"]


@pytest.mark.parametrize("preset", [name for name, preset in PRESETS.items() if "gpu" not in preset.device_kinds])
def test_large_scale_mode_refuses_presets_for_processors(api, machine, cells, preset):
    sent = {"preset": preset, "version": cells.pk, "explicit": True, "params": every(preset)}

    said = api.post(API, sent, format="json").json()["errors"]["preset"]

    assert said[0].endswith("trains only on CPUs, and explicit mode is for GPUs. Leave this mode.")


def test_large_scale_mode_refuses_own_code_and_data_that_has_yet_to_come(api, alice, machine, code):
    own = api.post(API, {"code": code.pk, "start_file": "train.py", "explicit": True}, format="json").json()
    coming = {"preset": "detect", "explicit": True, "upload": uploaded(alice, b"later").pk, "params": every("detect")}
    planned = api.post("/api/v1/training/planned/", coming, format="json").json()

    assert own["errors"]["preset"] == ["Explicit mode trains presets. Choose one, or leave the mode."]
    assert "Explicit mode needs an existing dataset. Upload it first." in planned["errors"]["upload"]


def test_page_of_large_scale_mode_fills_in_nothing_and_says_what_is_missing(as_alice, machine, cells):
    page = as_alice.get(f"{PAGE}?explicit=1&preset=detect")
    form = page.context["form"]
    names = [param.name for param in PRESETS["detect"].parameters]
    values = {f"detect__{name}": value for name, value in every("detect").items()}
    values = {name: str(value).lower() if isinstance(value, bool) else value for name, value in values.items()}
    sent = {"preset": "detect", "version": cells.pk, "explicit": "1", "nodes": 1, "gpus_per_node": 0, "cpus": 1}
    sent |= {"processes": 0}

    some = as_alice.post(PAGE, sent | dict(list(values.items())[3:]))
    whole = as_alice.post(PAGE, sent | values)

    assert {form[f"detect__{name}"].value() for name in names} == {None}
    assert set(some.context["form"].errors) == set(list(values)[:3])
    assert whole.status_code == 302, whole.context["form"].errors
    assert TrainingJob.objects.get().params == every("detect")
