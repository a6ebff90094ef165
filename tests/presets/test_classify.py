"""The classifier's networks and parts in this process, and the preset as a job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from sklearn import metrics

from tests.long_form import first
from tests.presets import versions
from tests.presets.jobs import Job
from training.presets import classify, classify_card, export, nets, variation
from training.presets.ranks import Ranks
from training.presets.run import Refused, Run

ALONE = Ranks(0, 1, torch.device("cpu"))
STEPS = {"budget_minutes": 0, "show_steps": True, "checkpoint_minutes": 1000, "eval_share": 0, "batch_size": 16}
RATES = {"lite0": 3e-4, "vit": 1e-4, "resnet18": 3e-3, "resnet50": 3e-3}  # that need no warm-up
SMALL = {**STEPS, "net_width": 4, "flip_tta": False}


@pytest.fixture(scope="module")
def shades(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return versions.shades(tmp_path_factory.mktemp("versions") / "shades")


def task(version: Path, cache: Path, **params: Any) -> classify.Classification:
    run = Run.from_environment({"AIP_DATASET_DIR": str(version), "AIP_CACHE_DIR": str(cache)})
    return classify.Classification(run, classify_card.CARD.read({**SMALL, "steps": 1, **params}), ALONE)


def loss_of(one: classify.Classification, batch: Any, draws: dict[str, torch.Tensor]) -> torch.Tensor:
    return torch.stack(list(one.loss(one.model, batch, draws, ALONE).values())).sum()


# ---- networks --------------------------------------------------------------------------------------------------


LARGE = (
    "resnet18",
    "resnet50",
    "googlenet_bn",
    "lite0",
    "vit",
)  # in the long form: they take the time of all the others
SIZES = [*((name, 28, 28) for name in nets.RECIPES), *((name, 70, 45) for name in ("lenet5", "googlenet_bn", "vit"))]


def large_are_long(*cases: Any) -> list[Any]:
    names = [case[0] if isinstance(case, tuple) else case for case in cases]
    marks = [[pytest.mark.long] if name in LARGE else [] for name in names]
    values = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*value, marks=mark) for value, mark in zip(values, marks, strict=True)]


@pytest.mark.parametrize(("architecture", "width", "height"), large_are_long(*SIZES))
def test_export_answers_as_every_classifier_does(tmp_path, architecture, width, height):
    torch.manual_seed(0)
    channels = 3 if architecture == "lite0" else 1
    model = nets.build(architecture, classes=4, channels=channels, net_width=4, width=width, height=height).eval()
    samples = torch.randn(3, channels, height, width)

    export.write(model, tmp_path, outputs=("logits",), samples=samples, metadata={})  # compares both

    assert model(samples).shape == (3, 4)
    assert json.loads((tmp_path / "model.json").read_text())["verify"]["max_abs_diff"] < 1e-3


def test_nets_are_as_large_as_their_papers_say():
    of = {"classes": 1000, "channels": 3, "net_width": 0, "width": 224, "height": 224}
    sizes = {name: sum(p.numel() for p in nets.build(name, **of).parameters()) for name in ("googlenet_bn", "lite0")}

    assert sizes["lite0"] == 4_652_008
    assert sizes["googlenet_bn"] == pytest.approx(6.99e6, rel=0.01)
    lenet = nets.build("lenet5", classes=10, channels=1, net_width=0, width=28, height=28)
    assert sum(p.numel() for p in lenet.parameters()) == pytest.approx(61_706, rel=0.01)


@pytest.mark.parametrize("architecture", first(3, nets.RECIPES))
def test_nets_keep_what_is_frozen_and_learn_the_rest(shades, tmp_path, architecture):
    one = task(shades, tmp_path / "cache", architecture=architecture, frozen_stages=2, lr=0.1, backbone_lr=1.0)
    kept = [layer for stage in one.model.stages()[:2] for layer in stage]
    before = [{key: value.clone() for key, value in layer.state_dict().items()} for layer in kept]
    head = one.model.fc.weight.clone()

    one.model.train()
    optimizer = one.optimizer()
    loss_of(one, one.load([0, 1, 2, 3]), one.draw(torch.Generator().manual_seed(0), 4)).backward()
    optimizer.step()

    after = [layer.state_dict() for layer in kept]
    assert all(torch.equal(b[key], a[key]) for b, a in zip(before, after, strict=True) for key in b)
    assert not torch.equal(head, one.model.fc.weight)


def test_nets_frozen_wholly_leave_the_last_layer_to_learn(shades, tmp_path):
    one = task(shades, tmp_path / "cache", architecture="vit", frozen_stages=16)

    assert {name for name, p in one.model.named_parameters() if p.requires_grad} == {"fc.weight", "fc.bias"}


# ---- variation, weights, figures -------------------------------------------------------------------------------


def drawn(count: int, **params: float) -> dict[str, torch.Tensor]:
    names = ("flip", "vertical_flip", "shift", "erase", "light_jitter", "colour_jitter", "mixup", "cutmix")
    return variation.draw(dict.fromkeys(names, 0.0) | params, 20, 20, torch.Generator().manual_seed(1), count)


def test_variation_of_nothing_leaves_images_and_classes_alone():
    x, classes = torch.rand(6, 3, 20, 20), torch.eye(3)[[0, 1, 2, 0, 1, 2]]
    draws = drawn(6)

    mixed, targets = variation.blended(x, classes, x.roll(1, 0), classes.roll(1, 0), draws)

    assert torch.equal(mixed, x)
    assert torch.equal(targets, classes)
    assert torch.equal(variation.lit(x, draws), x)
    assert torch.equal(variation.blanked(x, draws), x)


@pytest.mark.parametrize("how", ["mixup", "cutmix"])
def test_blended_images_are_of_each_class_as_much_as_they_show(how):
    labels = torch.arange(64) % 2
    x = labels.float()[:, None, None, None].expand(-1, 3, 20, 20)  # what is there of class 1 can be measured

    classes = torch.eye(2)[labels]

    mixed, targets = variation.blended(x, classes, x.roll(1, 0), classes.roll(1, 0), drawn(64, **{how: 1.0}))

    assert targets.sum(1) == pytest.approx(torch.ones(64))
    assert targets[:, 1] == pytest.approx(mixed.mean((1, 2, 3)), abs=1e-5)
    assert (targets.amax(1) < 0.95).float().mean() > 0.2
    assert (how == "cutmix") == bool(((mixed == 0) | (mixed == 1)).all())


def test_lit_images_change_each_by_itself_and_colours_apart():
    x = torch.ones(40, 3, 4, 4)

    light, colour = variation.lit(x, drawn(40, light_jitter=0.3)), variation.lit(x, drawn(40, colour_jitter=0.3))

    assert (light - 1).abs().max() <= 0.6
    assert light[:, 0, 0, 0].std() > 0.1
    assert light.std((1, 2, 3)) == pytest.approx(torch.zeros(40), abs=1e-6)
    assert colour.std((1, 2, 3)).min() > 0.001


def test_balanced_weights_let_classes_count_alike_and_images_one_on_the_mean():
    labels = torch.tensor([0] * 90 + [1] * 10)

    weights = variation.balanced(labels, 3)

    assert weights[0] * 90 == pytest.approx(weights[1] * 10)
    assert weights[2] == 0
    assert weights[labels].mean() == pytest.approx(1)


def test_rates_are_those_of_scikit_learn():
    draw = torch.Generator().manual_seed(0)
    truth, said = (torch.randint(0, 4, (50,), generator=draw) for _ in range(2))
    table = torch.bincount(truth * 5 + said, minlength=25).view(5, 5)  # a class that is nowhere

    found = variation.rates(table)

    assert found["val/accuracy"] == pytest.approx(metrics.accuracy_score(truth, said))
    assert found["val/balanced_accuracy"] == pytest.approx(metrics.balanced_accuracy_score(truth, said))
    assert found["val/macro_f1"] == pytest.approx(metrics.f1_score(truth, said, average="macro"))


def test_classify_preset_weighs_rare_classes_and_scores_by_their_mean(tmp_path):
    shades = versions.shades(tmp_path / "shades", train=40, val=8)
    lines = [json.loads(line) for line in (shades / "manifest.jsonl").read_text().splitlines()]
    kept = [line for place, line in enumerate(lines) if line["label"] == 1 or place % 8 == 1 or line["split"] == "val"]
    (shades / "manifest.jsonl").write_text("".join(json.dumps(line) + "\n" for line in kept))

    one = task(shades, tmp_path / "cache", class_weights="balanced")
    figures = one.evaluate(one.model, ALONE, one.score)

    assert one.metric == "val/balanced_accuracy"
    assert one.class_weights.tolist() == pytest.approx([25 / 2 / 20, 25 / 2 / 5])
    assert {"val/accuracy", "val/balanced_accuracy", "val/macro_f1", "val/loss"} == set(figures)


def test_classify_preset_learns_from_blended_images(shades, tmp_path):
    one = task(shades, tmp_path / "cache", mixup=0.5, cutmix=0.5, light_jitter=0.2, erase=0.5, class_weights="balanced")

    loss = loss_of(one, one.load(list(range(8))), one.draw(torch.Generator().manual_seed(0), 8))

    assert 0 < loss.item() < 2


# ---- the preset ------------------------------------------------------------------------------------------------


def test_classify_preset_takes_what_suits_the_network_where_nobody_chose(shades, tmp_path):
    chosen = task(shades, tmp_path / "cache", lr=0.03, batch_size=8).params
    suited = task(shades, tmp_path / "cache", architecture="lite0", batch_size=0).params

    assert (chosen["lr"], chosen["batch_size"]) == (0.03, 8)
    assert (suited["lr"], suited["batch_size"]) == (2e-3, 64)


def test_classify_preset_refuses_an_input_that_is_too_small(shades, tmp_path):
    with pytest.raises(Refused, match="8×8 pixels are too few: choose 12 at least"):
        task(shades, tmp_path / "cache", width=8)


@pytest.mark.parametrize("architecture", large_are_long(*nets.RECIPES))
def test_classify_preset_loss_goes_down_on_a_batch_it_sees_again(shades, tmp_path, architecture):
    one = task(shades, tmp_path / "cache", architecture=architecture, lr=RATES.get(architecture, 0.01), backbone_lr=1.0)
    batch, draws = one.load(list(range(16))), one.draw(torch.Generator().manual_seed(0), 16)
    optimizer = one.optimizer()
    one.model.train()
    losses = []
    for _step in range(10):
        loss = loss_of(one, batch, draws)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

    assert losses[-1] < 0.8 * losses[0]


@pytest.mark.proof
def test_classify_preset_as_a_job_exports_what_it_settled_on(tmp_path, shades):
    job = Job(tmp_path / "job", shades, "classify", {**STEPS, "batch_size": 0, "architecture": "lenet5", "steps": 8})
    code, log = job.run()

    assert code == 0, log
    about = json.loads((job.outputs / "model" / "model.json").read_text())
    assert (about["architecture"], about["params"]["lr"], about["params"]["batch_size"]) == ("lenet5", 0.1, 256)
    assert about["verify"]["max_abs_diff"] < 1e-3
