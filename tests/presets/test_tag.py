"""Figures of rankings and their thresholds, the tagger in this process, and the preset as a job."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from sklearn import metrics

from inference.evaluation.evaluator.__main__ import evaluate
from tests.inference.running import a_run
from tests.presets import versions
from tests.presets.jobs import Job
from training.presets import ranking, tag, tag_card
from training.presets.ranks import Ranks
from training.presets.run import Refused, Run

ALONE = Ranks(0, 1, torch.device("cpu"))
STEPS = {"budget_minutes": 0, "checkpoint_minutes": 1000, "eval_share": 0, "batch_size": 16, "flip_tta": False}
SMALL = {**STEPS, "architecture": "resnet9", "net_width": 4, "width": 32, "height": 32}


def objects(folder: Path, *, train: int = 48, val: int = 16, crowds: bool = False) -> Path:
    """Grey noise with a red, a green and a blue square, each on every second image or so; blue on few."""
    draw = np.random.default_rng(0)
    (folder / "images").mkdir(parents=True)
    images, shapes = [], []
    for number in range(train + val):
        pixels = draw.integers(80, 110, (40, 40, 3), dtype=np.uint8)
        for kind, often in enumerate((0.5, 0.5, 0.2)):
            if draw.random() > often:
                continue
            x, y = (int(edge) for edge in draw.integers(0, 26, 2))
            pixels[y : y + 14, x : x + 14] = 0
            pixels[y : y + 14, x : x + 14, kind] = 250
            more = {"iscrowd": 1} if crowds else {}
            shapes.append({"image": number, "class": kind, "bbox": [x, y, 14, 14], **more})
        name = f"{number:03d}.png"
        versions.Image.fromarray(pixels).save(folder / "images" / name)
        images.append(versions._line(name, (40, 40), "train" if number < train else "val"))
    return versions.write(folder, task="detection", classes=["red", "green", "blue"], images=images, shapes=shapes)


@pytest.fixture(scope="module")
def squares(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return objects(tmp_path_factory.mktemp("versions") / "squares")


def task(version: Path, cache: Path, **params: Any) -> tag.Tagging:
    run = Run.from_environment({"AIP_DATASET_DIR": str(version), "AIP_CACHE_DIR": str(cache)})
    return tag.Tagging(run, tag_card.CARD.read({**SMALL, "steps": 1, **params}), ALONE)


# ---- figures and thresholds ------------------------------------------------------------------------------------


def test_a_tag_is_as_sure_as_its_own_threshold_says_whatever_the_others_are(squares, tmp_path):
    one = task(squares, tmp_path)
    one.cuts = torch.tensor([0.0, 2.0, -1.0])

    sure = one.sure(torch.tensor([[0.0, 2.0, 8.0]]))

    assert sure.tolist()[0] == pytest.approx([0.5, 0.5, 1 / (1 + math.exp(-9))])


@pytest.mark.parametrize("seed", range(4))
def test_average_precision_is_that_of_scikit_learn_also_where_scores_are_equal(seed):
    draw = np.random.default_rng(seed)
    scores, there = draw.integers(0, 12, 60) / 4, draw.random(60) < 0.3

    found = ranking.average_precision(torch.tensor(scores), torch.tensor(there))

    assert found == pytest.approx(metrics.average_precision_score(there, scores))


def test_average_precision_of_a_class_that_is_nowhere_is_no_number():
    assert math.isnan(ranking.average_precision(torch.rand(5), torch.zeros(5, dtype=torch.bool)))


@pytest.mark.parametrize("seed", range(4))
def test_best_cut_lies_between_scores_and_no_other_one_has_a_higher_f1(seed):
    draw = np.random.default_rng(seed)
    scores, there = draw.normal(size=40), draw.random(40) < 0.4

    cut, f1 = ranking.best_cut(torch.tensor(scores), torch.tensor(there))

    assert f1 == pytest.approx(metrics.f1_score(there, scores > cut))
    assert f1 >= max(metrics.f1_score(there, scores >= one) for one in scores) - 1e-9
    assert np.abs(scores - cut).min() > 0


@pytest.mark.parametrize(("there", "expected"), [([0, 0, 0], (0.0, 0.0)), ([1, 1, 1], (0.5, 1.0))])
def test_best_cut_of_a_class_that_is_nowhere_or_everywhere(there, expected):
    assert ranking.best_cut(torch.tensor([3.0, 1.0, 2.0]), torch.tensor(there).bool()) == expected


# ---- the task --------------------------------------------------------------------------------------------------


def test_tag_preset_reads_the_classes_of_objects_as_tags_of_their_images(squares, tmp_path):
    one = task(squares, tmp_path)

    coco = json.loads((squares / "annotations.json").read_text())
    there = {(shape["image_id"] - 1, shape["category_id"] - 1) for shape in coco["annotations"]}
    assert {(row, place) for row, place in torch.nonzero(one.labels).tolist()} == there
    assert len(one.learn) == 48  # images without an object are learned from, too
    assert one.counts()[1]["blue"] == sum(row < 48 and place == 2 for row, place in there)


def test_tag_preset_takes_crowds_for_objects(tmp_path):
    one = task(objects(tmp_path / "crowds", crowds=True), tmp_path)

    assert one.labels.sum() > 10


def test_tag_preset_refuses_a_version_without_annotations(tmp_path):
    made = objects(tmp_path / "bare")
    (made / "annotations.json").unlink()

    with pytest.raises(Refused, match="has no objects yet"):
        task(made, tmp_path)


def test_tag_preset_weighs_images_with_a_rare_class_as_those_without(squares, tmp_path):
    one = task(squares, tmp_path, class_weights="balanced")

    there = one.labels[one.learn].sum(0)
    assert (one.class_weights * there).tolist() == pytest.approx((len(one.learn) - there).tolist())
    assert one.metric == "val/map"


def test_tag_preset_loss_is_nothing_for_certain_right_answers_and_blends_what_images_show(squares, tmp_path):
    one = task(squares, tmp_path, mixup=1.0)
    batch, draws = one.load(list(range(8))), one.draw(torch.Generator().manual_seed(0), 8)

    certain = one._misfit(20 * (2 * batch[1] - 1), batch[1])
    loss = one.loss(one.model, batch, draws, ALONE)["class"]

    assert certain.item() < 1e-6
    assert 0.1 < loss.item() < 3


def test_tag_preset_model_says_a_class_is_there_from_its_own_threshold_on(squares, tmp_path):
    one = task(squares, tmp_path)
    figures = one.evaluate(one.model, ALONE, one.score)
    one.export(one.model, tmp_path / "model", figures)

    session = onnxruntime.InferenceSession(tmp_path / "model" / "model.onnx", providers=["CPUExecutionProvider"])
    [logits] = session.run(["logits"], {"images": one.images(one.score).numpy()})
    there = one.labels[one.score].numpy() > 0
    about = json.loads((tmp_path / "model" / "model.json").read_text())
    f1 = metrics.f1_score(there, logits > 0, average="macro")
    assert figures["val/macro_f1"] == pytest.approx(f1)
    assert about["thresholds"] == pytest.approx(torch.sigmoid(one.cuts).tolist(), abs=1e-4)
    assert about["decode"] == {"score_threshold": 0.5}
    assert figures["val/map"] == pytest.approx(metrics.average_precision_score(there, logits, average="macro"))


def test_tag_preset_keeps_thresholds_only_of_all_images(squares, tmp_path):
    one = task(squares, tmp_path)

    one.evaluate(one.model, ALONE, one.score[:4])
    assert not one.cuts.any()
    one.evaluate(one.model, ALONE, one.score)
    assert one.cuts.all()


@pytest.mark.long
@pytest.mark.proof
def test_tag_preset_as_a_job_learns_and_its_model_is_judged_as_it_says(tmp_path, squares):
    job = Job(tmp_path / "job", squares, "tag", {**SMALL, "net_width": 8, "lr": 0.1, "steps": 90, "flip": 0.5})
    code, log = job.run()

    assert code == 0, log
    figures = json.loads((job.outputs / "metrics.json").read_text())
    assert figures["val/map"] > 0.9
    judged = evaluate(a_run(tmp_path / "judged", job.outputs / "model", squares, split="val"))
    assert judged["summary"]["map"] == pytest.approx(figures["val/map"], abs=1e-3)
    assert judged["summary"]["f1"] == pytest.approx(figures["val/macro_f1"], abs=1e-3)
