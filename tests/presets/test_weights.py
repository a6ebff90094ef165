"""Weights to start from: which tensors are taken, and which files are not opened."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from tests.presets import versions
from tests.presets.jobs import Job
from training.presets import lite0, nets, segmenter, weights
from training.presets.run import Refused

NET: dict[str, Any] = {"channels": 1, "net_width": 4, "width": 28, "height": 28}


def resnet9(classes: int, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nets.build("resnet9", classes=classes, **NET)


def kept(model: nn.Module, path: Path, *, prefix: str = "", classes: list[str] | None = None) -> Path:
    """The weights of a model in a file, with a model.json beside it that names its classes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    tensors = {prefix + key: value.contiguous().clone() for key, value in model.state_dict().items()}
    if path.suffix == ".safetensors":
        save_file(tensors, path)
    else:
        torch.save(tensors, path)
    if classes is not None:
        (path.parent / "model.json").write_text(json.dumps({"classes": [{"name": name} for name in classes]}))
    return path


@pytest.mark.parametrize("name", ["w.safetensors", "w.pth"])
def test_weights_are_all_taken_by_the_same_network_whatever_it_was_wrapped_in(tmp_path, name):
    path = kept(resnet9(3), tmp_path / name, prefix="model.", classes=["a", "b", "c"])
    model = resnet9(3, seed=1)

    taken = weights.start(model, path, heads=("fc.",), classes=["a", "b", "c"])

    ours, theirs = model.state_dict(), resnet9(3).state_dict()
    assert all(torch.equal(ours[key], theirs[key]) for key in theirs)
    assert (taken.tensors, taken.of, taken.fresh_head) == (len(ours), len(ours), False)


def test_weights_leave_the_head_out_where_the_classes_are_others_of_the_same_number(tmp_path):
    path = kept(resnet9(3), tmp_path / "w.safetensors", classes=["a", "b", "c"])
    model = resnet9(3, seed=1)

    taken = weights.start(model, path, heads=("fc.",), classes=["x", "y", "z"])

    ours, theirs, fresh = model.state_dict(), resnet9(3).state_dict(), resnet9(3, seed=1).state_dict()
    assert taken.fresh_head
    assert taken.of - taken.tensors == len([key for key in ours if key.startswith("fc.")])
    assert all(torch.equal(ours[key], (fresh if key.startswith("fc.") else theirs)[key]) for key in ours)


def test_weights_leave_out_what_has_another_shape(tmp_path):
    path = kept(resnet9(3), tmp_path / "w.pth")  # nothing says which classes it knows
    model = resnet9(5, seed=1)

    taken = weights.start(model, path, heads=("fc.",), classes=list("vwxyz"))

    assert taken.of - taken.tensors == 1  # fc.weight, for ResNet-9's last layer has no bias
    assert not taken.fresh_head


def test_weights_of_a_published_backbone_fit_below_a_name_in_front(tmp_path):
    own = segmenter.Segmenter(lite0.Lite0((8, 16, 32)), 4, width=16)
    path = kept(lite0.Lite0((32,)), tmp_path / "lite0.pth")

    taken = weights.start(own, path)

    assert taken.tensors == len(own.backbone.state_dict())


def test_weights_of_another_network_are_refused_with_what_to_do(tmp_path):
    path = kept(nets.build("lenet5", classes=3, **NET), tmp_path / "w.safetensors")

    with pytest.raises(Refused, match=r"it is of another network\. Choose its architecture"):
        weights.start(lite0.Lite0((32,)), path)


def test_weights_are_found_in_a_checkpoint_of_another_tool(tmp_path):
    torch.save({"epoch": 3, "state_dict": resnet9(3).state_dict()}, tmp_path / "w.ckpt")

    assert weights.read(tmp_path / "w.ckpt").keys() == resnet9(3).state_dict().keys()


class Spiteful:
    def __reduce__(self) -> Any:
        return (Path.write_text, (Path("ran.txt"), "ran"))


@pytest.mark.parametrize("content", ["pickle", "torch", "text", "nothing"])
def test_weights_that_hold_more_than_tensors_are_not_opened(tmp_path, monkeypatch, content):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "w.pth"
    if content == "torch":
        torch.save({"w": Spiteful()}, path)
    else:
        path.write_bytes({"pickle": pickle.dumps(Spiteful()), "text": b"hello", "nothing": b""}[content])

    with pytest.raises(Refused, match=r"w\.pth cannot be read as weights\. Save them as"):
        weights.read(path)
    assert not (tmp_path / "ran.txt").exists()


def test_weights_without_names_are_refused(tmp_path):
    torch.save([torch.zeros(2)], tmp_path / "w.pth")

    with pytest.raises(Refused, match="holds no weights by name"):
        weights.read(tmp_path / "w.pth")


@pytest.mark.long
@pytest.mark.proof
def test_preset_begins_with_weights_once_says_how_many_and_remembers_it(tmp_path):
    shades = versions.shades(tmp_path / "shades")
    params = {"architecture": "resnet9", "net_width": 4, "budget_minutes": 0, "batch_size": 16, "steps": 2, "lr": 1e-6}
    first = Job(tmp_path / "first", shades, "classify", params)
    assert first.run()[0] == 0

    second = Job(tmp_path / "second", shades, "classify", {**params, "seed": 1, "ema": 0, "weights": "alice/first v1"})
    second.env["AIP_WEIGHTS"] = str(first.outputs / "model" / "model.safetensors")
    code, log = second.run()

    figures = json.loads((second.outputs / "metrics.json").read_text())
    assert code == 0, log
    assert f"begins with {figures['weights_of']} of {figures['weights_of']} tensors, from alice/first v1" in log
    assert figures["weights_taken"] == figures["weights_of"] > 20

    del second.env["AIP_WEIGHTS"]  # what goes on needs them no longer
    (second.root / "params.json").write_text(json.dumps({**params, "seed": 1, "weights": "alice/first v1", "steps": 3}))
    second.env["AIP_RESUME_FROM"] = str(second.checkpoints)
    code, log = second.run()

    assert code == 0, log
    assert "restored from" in log
    assert "begins with" not in log
    assert json.loads((second.outputs / "metrics.json").read_text())["weights_taken"] == figures["weights_taken"]


@pytest.mark.parametrize(("theirs", "ours"), [("resnet50", "resnet18"), ("resnet18", "resnet50")])
def test_weights_of_a_network_of_another_depth_are_refused(tmp_path, theirs, ours):
    made = nets.build(theirs, classes=3, channels=1, net_width=4, width=64, height=64)
    path = kept(made, tmp_path / "w.pth")

    with pytest.raises(Refused, match="it is of another network"):
        weights.start(nets.build(ours, classes=3, channels=1, net_width=4, width=64, height=64), path)
