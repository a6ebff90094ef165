"""Models that OpenVINO runs: the same answers, and ONNX Runtime's where it is not installed."""

import json
import sys

import numpy as np
import pytest

from inference.conversion import results
from inference.kit.model_io import openvino
from inference.kit.model_io.engine import Engine
from inference.registry.packages import entries
from tests.factories import models as factory
from tests.inference import converted, judged, tiny

pytestmark = pytest.mark.django_db


@pytest.fixture
def installed():
    pytest.importorskip("openvino", reason=f"needs OpenVINO: {openvino.INSTALL}")


def asking(folder):
    description = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps(description | {"runtime": "openvino"}))
    return folder


@pytest.mark.parametrize("make", [tiny.classifier, tiny.detector], ids=["classifier", "detector"])
def test_openvino_answers_as_onnx_runtime_does(installed, tmp_path, make):
    plain = Engine(make(tmp_path / "plain") / "model.onnx")
    other = Engine(asking(make(tmp_path / "other")) / "model.onnx", strictly=True)
    size = [64 if side < 0 else side for side in plain.inputs[0].shape[1:]]
    feeds = {plain.inputs[0].name: np.random.default_rng(0).random((3, *size), np.float32)}

    expected, actual = plain.run(feeds), other.run(feeds)

    assert (other.provider, plain.provider) == ("OpenVINO", "CPUExecutionProvider")
    assert (other.inputs, other.outputs, other.batches, other.even) == (
        plain.inputs,
        plain.outputs,
        plain.batches,
        plain.even,
    )
    for name, values in expected.items():
        np.testing.assert_allclose(actual[name], values, rtol=1e-4, atol=1e-5)
    copies = {name: values.copy() for name, values in actual.items()}
    other.run({name: values * 0 for name, values in feeds.items()})
    assert all((actual[name] == copies[name]).all() for name in copies)  # a later run writes over nothing
    (first, *_others) = other.outputs
    assert list(other.run(feeds, [first.name])) == [first.name]


def test_without_openvino_the_file_is_run_by_onnx_runtime(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openvino", None)
    folder = asking(tiny.classifier(tmp_path / "model"))

    assert Engine(folder / "model.onnx").provider == "CPUExecutionProvider"
    with pytest.raises(openvino.NotInstalled, match="pip install openvino"):
        Engine(folder / "model.onnx", strictly=True)


def test_conversions_to_openvino_become_versions_that_say_how_they_are_run(installed, alice, tmp_path):
    model = factory.model_version(alice, tmp_path)
    data = judged.dataset_version(alice, tmp_path / "data")
    conversion = converted.submitted(alice, model, data, targets=("openvino", "int8_openvino"))

    converted.ran(conversion)

    rows = {row["target"]: row for row in results.load(conversion)["rows"]}
    assert (rows["openvino"]["state"], rows["openvino"]["loss"], rows["openvino"]["agreement"]) == ("accepted", 0, 1)
    assert {name: row["speed"]["provider"] for name, row in rows.items() if row["speed"]} == {
        "source": "CPUExecutionProvider",
        "openvino": "OpenVINO",
        "int8_openvino": "OpenVINO",
    }
    made = conversion.variants.get(target="openvino").made
    assert json.loads((made.path / "model.json").read_text())["runtime"] == "openvino"
    packed = [name for name, *_rest in entries(made, by=alice)]
    assert any(name.endswith("openvino.py") for name in packed)  # the package falls back by itself
