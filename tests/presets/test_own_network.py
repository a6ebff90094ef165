"""Networks of people's own: made from their text, tried before a training, exported, and read as a teacher."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

from tests.cases import case_table
from tests.presets import versions
from training import presets
from training.presets import classify, classify_card, nets, own_network, preview, tag, tag_card
from training.presets.ranks import Ranks
from training.presets.run import Refused, Run
from training.runs import custom_networks as texts

ALONE = Ranks(0, 1, torch.device("cpu"))
OF = {"classes": 3, "channels": 1, "width": 28, "height": 20}
PLAIN = """
from torch import nn

def build(classes, channels):
    return nn.Sequential(nn.Conv2d(channels, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.LazyLinear(classes))
"""
MINE = """
class Mine(nn.Module):
    def __init__(self, held=None):
        super().__init__()
        self.held = held

    def forward(self, x):
        %s
"""


def task(kind: Any, card: Any, version: Path, cache: Path, *, teacher: Path | None = None, **params: Any) -> Any:
    env = {"AIP_DATASET_DIR": str(version), "AIP_CACHE_DIR": str(cache), "AIP_TEACHER": str(teacher or "")}
    given = {"batch_size": 16, "steps": 1, "architecture": "own", "network": PLAIN, **params}
    return kind(Run.from_environment(env), card.read(given), ALONE)


@pytest.fixture(scope="module")
def shades(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return versions.shades(tmp_path_factory.mktemp("versions") / "shades")


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name, _text in texts.examples()])
@pytest.mark.parametrize("channels", [1, 3])
def test_own_network_examples_answer_for_each_class(monkeypatch, name, channels):
    monkeypatch.setitem(sys.modules, "presets", presets)  # as in a job, where the presets lie beside nothing else
    monkeypatch.setitem(sys.modules, "presets.nets", nets)
    text = dict(texts.examples())[name]
    texts.check({"architecture": "own", "network": text})

    net = own_network.make(text, **{**OF, "channels": channels}).eval()

    assert net(torch.rand(5, channels, 20, 28)).shape == (5, 3)


@case_table(
    ("text", "said"),
    [
        ("def build(classes, channels)\n    pass", "Line 1: SyntaxError"),
        ("import torch\nimport nothing_like_it", "Line 2: ModuleNotFoundError"),
        ("x = 1", "has no attribute 'build'"),
        ("def build(classes, channels):\n    return 7", "build returned a int"),
        ("from torch import nn\ndef build(classes, channels):\n    return nn.Flatten()", "no weights that learn"),
        (PLAIN.replace("channels, 4, 3", "channels + 1, 4, 3"), "fails on images of 2×1×20×28"),
        (PLAIN.replace("(classes))", "(classes + 1))"), "answers 2×4 to images of 2×1×20×28. Let it answer 2×3"),
        ("def build(classes, channels):\n\n    raise KeyError('mine')", "Line 3: KeyError: 'mine'"),
        ("raise SystemExit(0)", "Line 1: SystemExit: 0"),
        ("class E(Exception):\n    __str__ = None\nraise E", "Line 3: network.E: "),
        (PLAIN.replace("nn.Flatten()", "nn.Flatten(), nn.Identity(), Mine()") + MINE % "exit()", "SystemExit"),
        (PLAIN.replace("(classes))", "(classes), Mine())") + MINE % "return x.detach()", "do not depend on"),
        (
            PLAIN.replace("nn.Flatten()", "nn.Flatten(), Mine()") + MINE % "return (x, x) if self.training else x",
            "TypeError",
        ),
        (
            PLAIN.replace("nn.Flatten()", "nn.Flatten(), Mine(x for x in ())") + MINE % "return x",
            "cannot be copied",
        ),
    ],
)
def test_own_network_that_does_not_work_is_refused_with_its_line(text, said):
    with pytest.raises(Refused) as refused:
        own_network.make(text, **OF)

    assert said in str(refused.value)


def test_own_network_error_is_told_in_no_more_than_a_few_lines():
    with pytest.raises(Refused) as refused:
        own_network.make("raise ValueError('x' * 1_000_000)", **OF)

    assert len(str(refused.value)) < 400


def test_own_network_that_answers_no_numbers_is_refused_before_the_training(shades, tmp_path):
    text = PLAIN.replace("nn.Flatten()", "nn.Flatten(), Mine()") + MINE % "return x * float('nan')"

    with pytest.raises(Refused, match="what is no number"):
        task(classify.Classification, classify_card.CARD, shades, tmp_path / "cache", network=text)


def test_own_network_that_fails_in_the_middle_of_a_training_names_its_line():
    later = "self.held -= 1\n        return x if self.held > 0 else {}['mine']"
    net = own_network.make(PLAIN.replace("nn.ReLU()", "Mine(4)") + MINE % later, **OF)
    asked = {"architecture": "own", "budget_minutes": 0.0}

    def learn():
        for _step in range(4):
            net(torch.zeros(2, 1, 20, 28))

    with pytest.raises(Refused, match=r"Your network fails\. Line 15: KeyError: 'mine'"), watched(asked):
        learn()
    with pytest.raises(KeyError), watched({**asked, "architecture": "resnet9"}):
        learn()


def watched(asked):
    return own_network.watched(Run.from_environment({}), asked, part=1)


ENDLESS = """
from training.presets import own_network
from training.presets.run import Run

own_network.MIN_TIMEOUT_S = 0.0
with own_network.watched(Run.from_environment({}), {"architecture": "own", "budget_minutes": 1e-6}, part=1):
    text = "import sys\\nsys.stderr = None\\nwhile True:\\n    pass"
    own_network.make(text, classes=2, channels=1, width=8, height=8)
"""


def test_own_network_that_never_comes_back_is_ended_with_a_sentence_that_names_its_line():
    ended = subprocess.run([sys.executable, "-c", ENDLESS], check=False, capture_output=True, text=True, timeout=120)

    assert ended.returncode == 1
    assert re.search(r"did not come back within 0\.0 minutes; it is in line [34]\.", ended.stderr)


def test_own_network_is_given_the_time_that_a_pause_takes(monkeypatch, capfd):
    looks = iter(["", "pause", "pause", "pause", ""])
    run = Run.from_environment({})
    monkeypatch.setattr(run, "requested", lambda: next(looks))
    monkeypatch.setattr(own_network, "LOOK_S", 0.001)
    monkeypatch.setattr(own_network, "_lines", lambda _stack: [7])
    ended = []
    monkeypatch.setattr(own_network.os, "_exit", ended.append)

    own_network._watch(threading.Event(), run, 0.002)

    assert (ended, list(looks)) == ([1], [])
    assert "it is in line 7" in capfd.readouterr().err


def test_own_network_that_onnx_cannot_hold_is_refused_before_the_training(shades, tmp_path):
    depends = (
        "from torch import nn\nclass Net(nn.Module):\n    def __init__(self, c, k):\n        super().__init__()\n"
        "        self.fc = nn.Linear(c, k)\n    def forward(self, x):\n        x = x.mean((2, 3))\n"
        "        return self.fc(x) * (3.0 if float(x.sum()) > 0 else -1.0)\n"
        "def build(classes, channels):\n    return Net(channels, classes)\n"
    )

    with pytest.raises(Refused, match="answers otherwise in ONNX"):
        task(classify.Classification, classify_card.CARD, shades, tmp_path / "cache", network=depends)


def test_own_network_learns_is_frozen_exported_and_teaches(shades, tmp_path):
    one = task(classify.Classification, classify_card.CARD, shades, tmp_path / "cache", frozen_stages=1, lr=0.02)
    kept, optimizer = one.model.net[0].weight.clone(), one.optimizer()
    batch, draws = one.load(list(range(16))), one.draw(torch.Generator().manual_seed(0), 16)
    one.model.train()
    losses = []
    for _step in range(30):
        loss = sum(one.loss(one.model, batch, draws, ALONE).values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    one.export(one.model.eval(), tmp_path / "model", {})

    assert losses[-1] < 0.9 * losses[0]
    assert torch.equal(kept, one.model.net[0].weight)
    assert one.heads == ("net.5.",)
    about = json.loads((tmp_path / "model" / "model.json").read_text())
    assert (about["architecture"], about["params"]["network"]) == ("own", PLAIN)
    images = one.images(one.score[:4]).numpy()
    (logits,) = onnxruntime.InferenceSession(tmp_path / "model" / "model.onnx").run(None, {"images": images})
    expected = classify.Answering(one.model, mirror=True)(torch.from_numpy(images)).detach().numpy()
    assert np.abs(logits - expected).max() < 1e-3

    taught = task(
        classify.Classification, classify_card.CARD, shades, tmp_path / "cache",
        teacher=tmp_path / "model" / "model.safetensors", architecture="resnet9", network="", net_width=4,
    )  # fmt: skip
    answers = taught.teacher.answers(torch.from_numpy(images), one.mean, one.std, student_size=(one.width, one.height))
    assert np.abs(answers.numpy() - expected).max() < 1e-3


@pytest.mark.long
def test_own_network_tags_too(tmp_path):
    symbols = versions.symbols(tmp_path / "symbols", train=10, val=2)

    one = task(tag.Tagging, tag_card.CARD, symbols, tmp_path / "cache", width=32, height=32)

    assert isinstance(one.model, own_network.Own)


def test_outline_lists_the_layers_with_their_answers_and_weights():
    net = nn.Sequential(nn.Conv2d(3, 4, 3, bias=False), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 2))

    about = preview.outline(net.train(), torch.rand(2, 3, 8, 8))

    assert about["weights"] == 4 * 27 + 4 * 36 * 2 + 2
    assert [(one["name"], one["kind"], one["answer"], one["weights"]) for one in about["layers"]] == [
        ("0", "Conv2d", [4, 6, 6], 108), ("1", "ReLU", [4, 6, 6], 0),
        ("2", "Flatten", [144], 0), ("3", "Linear", [2], 290),
    ]  # fmt: skip
    assert net.training
