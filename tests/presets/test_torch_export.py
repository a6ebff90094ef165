"""A finished classifier as a program of torch.export: built anew, written, read back, compared with its ONNX file."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from training.presets import classify, export, nets, torch_export

SEEN = {"name": "images", "height": 16, "width": 16, "channels": 1, "mean": [0.0], "std": [1.0]}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a finished model, as a training leaves it."""
    folder = tmp_path_factory.mktemp("model")
    net = nets.build("lenet5", net_width=1.0, classes=3, channels=1, width=16, height=16)
    about = {
        "preset": "classify", "architecture": "lenet5", "params": {"flip_tta": True, "net_width": 1.0},
        "classes": [{"id": n, "name": str(n)} for n in range(3)], "input": SEEN,
    }  # fmt: skip
    samples = torch.randn(4, 1, 16, 16, generator=torch.manual_seed(1))
    export.write(classify.Answering(net, mirror=True), folder, outputs=("logits",), samples=samples, metadata=about)
    return folder


def test_program_takes_any_number_of_pictures_and_answers_as_the_onnx_file(finished, tmp_path):
    found = torch_export.exported(finished, tmp_path / "model.pt2")

    program = torch.export.load(str(tmp_path / "model.pt2")).module()
    assert found["batch"] is True
    assert 0 <= found["largest"] < 1e-4
    assert tuple(program(torch.zeros(7, 1, 16, 16)).shape) == (7, 3)


def test_program_is_refused_where_it_answers_otherwise_or_the_network_is_not_ours(finished, tmp_path):
    for name in ("model.onnx", "model.json"):
        (tmp_path / name).write_bytes((finished / name).read_bytes())
    weights = load_file(finished / "model.safetensors")
    save_file({name: value + 0.1 for name, value in weights.items()}, tmp_path / "model.safetensors")

    with pytest.raises(torch_export.NotExported) as otherwise:
        torch_export.exported(tmp_path, tmp_path / "model.pt2")
    about = json.loads((tmp_path / "model.json").read_text())
    (tmp_path / "model.json").write_text(json.dumps(about | {"architecture": "own"}))
    with pytest.raises(torch_export.NotExported) as own:
        torch_export.exported(tmp_path, tmp_path / "model.pt2")

    assert otherwise.value.code == "torch_differs"
    assert own.value.code == "not_rebuilt"
