"""Looking at a training: the batch before it, answers along its way, layers after it, where its time goes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from tests.presets import versions
from tests.presets.jobs import Job
from training.presets import embed, embed_card, keypoints, keypoints_card, layers, lite0, marks, preview, samples
from training.presets.ranks import Ranks
from training.presets.run import Run
from training.presets.trainer import Trainer

TINY = {
    "classify": {"net_width": 4, "flip_tta": False},
    "detect": {"architecture": "lite0-scratch", "head_width": 16},
    "segment": {"architecture": "unet", "net_width": 8},
}
STEPS = {"budget_minutes": 0, "batch_size": 4}
#: Tried in the long form, as they look with what the detector looks with.
LONGER = [pytest.param(name, marks=pytest.mark.long) for name in ("classify", "segment")]


def version_for(preset: str, folder: Path) -> Path:
    if preset == "classify":
        return versions.shades(folder, train=8, val=4)
    if preset == "detect":
        return versions.squares(folder, train=8, val=4)
    return versions.outlines(folder, train=8, val=4, size=(96, 64))


def colours(path: Path) -> np.ndarray:
    return np.asarray(Image.open(path).convert("RGB")).reshape(-1, 3).astype(int)


@pytest.mark.proof
@pytest.mark.parametrize("preset", ["detect", *LONGER])
def test_preset_shows_its_batch_and_its_times_and_trains_nothing(tmp_path, preset):
    job = Job(
        tmp_path / "job", version_for(preset, tmp_path / "version"), preset, {**STEPS, **TINY[preset], "steps": 9}
    )
    job.env["AIP_SHOW"] = "batch"

    code, log = job.run()

    assert code == 0, log
    about = json.loads((job.outputs / "preview" / "preview.json").read_text())
    assert about["images"] == {"learn": 8, "score": 4}
    assert (about["batch_size"], about["steps_per_epoch"], about["steps_timed"]) == (4, 2, 20)
    assert about["epoch_s"] == pytest.approx(2 * about["step_ms"] / 1000, abs=0.02)
    counts = {one["name"]: one["count"] for one in about["classes"]}
    expected = {"classify": {"above": 4, "below": 4}, "detect": {"bright": 8, "dark": 8}}
    assert counts == expected.get(preset, counts)
    assert sum(counts.values()) == about.get("objects", 8)
    names = {path.name for path in (job.outputs / "preview").iterdir()}
    assert {"batch-1.jpg", "batch-4.jpg", "score-4.jpg"} <= names
    assert not (job.outputs / "model").exists()
    assert not list(job.checkpoints.glob("step-*"))


@pytest.mark.proof
@pytest.mark.parametrize("preset", ["detect", *LONGER[:1]])
def test_preset_keeps_answers_along_the_way_and_after_a_restart_and_shows_its_layers(tmp_path, preset):
    params = {**STEPS, **TINY[preset], "steps": 5, "eval_share": 0.01, "show_steps": True}
    job = Job(tmp_path / "job", version_for(preset, tmp_path / "version"), preset, params)
    with job.start() as process:
        for line in process.stdout:
            if line.startswith("step 3 "):
                job.request("suspend")
    kept = sorted(path.name for path in (job.outputs / "samples").iterdir())
    assert "truth" in kept
    job.request("")

    assert job.run()[0] == 0

    after = sorted(path.name for path in (job.outputs / "samples").iterdir())
    assert set(kept) <= set(after)
    assert "step-000005" in after
    about = json.loads((job.outputs / "samples" / "step-000005" / "about.json").read_text())
    figures = json.loads((job.outputs / "metrics.json").read_text())
    assert about["value"] == figures[about["metric"]]
    assert len(list((job.outputs / "samples" / "step-000005").glob("*.jpg"))) == 4

    job.env["AIP_SHOW"] = "layers"
    code, log = job.run()

    assert code == 0, log
    shown = json.loads((job.outputs / "layers" / "layers.json").read_text())
    assert shown["step"] == 5
    assert all((job.outputs / "layers" / f"{layer['number']:02d}-1.jpg").exists()
               for layer in shown["layers"] if len(layer["shape"]) == 3)  # fmt: skip
    assert bool(shown["cams"]) == (preset == "classify")


@pytest.mark.long
@pytest.mark.proof
@pytest.mark.parametrize("preset", ["keypoints", "embed"])
def test_layers_of_every_network_take_an_image_that_somebody_gave(preset, tmp_path):
    make = versions.figures if preset == "keypoints" else versions.shades
    params = {"budget_minutes": 0, "steps": 1, "eval_share": 0, "batch_size": 4}
    job = Job(tmp_path / "job", make(tmp_path / "version"), preset, params)
    code, log = job.run()
    assert code == 0, log
    Image.new("RGB", (50, 30), (200, 0, 0)).save(tmp_path / "given.png")
    job.env |= {"AIP_SHOW": "layers", "AIP_SHOW_IMAGE": str(tmp_path / "given.png")}

    code, log = job.run()

    assert code == 0, log
    assert len(json.loads((job.outputs / "layers" / "layers.json").read_text())["images"]) == 1


@pytest.mark.long
@pytest.mark.proof
def test_layers_take_an_image_that_somebody_gave_and_refuse_without_a_checkpoint(tmp_path):
    version = version_for("classify", tmp_path / "version")
    job = Job(tmp_path / "job", version, "classify", {**STEPS, **TINY["classify"], "steps": 2, "eval_share": 0})
    job.env["AIP_SHOW"] = "layers"

    code, log = job.run()

    assert code == 1
    assert "There is no checkpoint to look into." in log
    del job.env["AIP_SHOW"]
    assert job.run()[0] == 0
    Image.new("RGB", (50, 30), (200, 0, 0)).save(tmp_path / "given.png")
    job.env |= {"AIP_SHOW": "layers", "AIP_SHOW_IMAGE": str(tmp_path / "given.png")}
    assert job.run()[0] == 0
    shown = json.loads((job.outputs / "layers" / "layers.json").read_text())
    assert [len(shown["images"]), shown["cams"][0]["image"]] == [1, 1]


def test_layers_of_a_network_that_folds_its_norms_answer_each_for_itself():
    net = lite0.Lite0((8, 16)).eval()
    convolutions = [name for name, module in net.named_modules() if isinstance(module, nn.Conv2d)]
    expected = net(torch.full((1, 3, 64, 64), 0.3))

    listed = preview.outline(net, torch.full((1, 3, 64, 64), 0.3))["layers"]
    with lite0.layers_apart():
        apart = net(torch.full((1, 3, 64, 64), 0.3))

    assert set(convolutions) <= {one["name"] for one in listed}
    assert all(torch.allclose(one, other, atol=1e-4) for one, other in zip(apart, expected, strict=True))


def test_keypoints_are_shown_where_they_are(tmp_path):
    version = versions.figures(tmp_path / "figures", train=6, val=4)
    env = {"AIP_DATASET_DIR": str(version), "AIP_CACHE_DIR": str(tmp_path / "cache")}
    card = keypoints_card.CARD.read({"architecture": "lite0-scratch", "flip": 1.0, "turn": 0.0, "shift": 0.0})
    task = keypoints.Keypoints(Run.from_environment(env), card, Ranks(0, 1, torch.device("cpu")))
    rows = task.score[:2]

    (truth, _other), (answer, _second) = task.truths(rows), task.answers(task.model.eval(), task.images(rows))

    half = np.array([task.width, task.height]) / 2
    assert np.allclose(np.array(truth.points), (task.points[rows[0]][task.known[rows[0]]]).numpy() + half)
    assert truth.caption in dict(task.counts()[1])
    kinds = [str(entry["name"]) for entry in task.version.classes]
    assert len(answer.points) == int(task.own[kinds.index(answer.caption)].sum())
    batch = task.load([0, 1])
    (varied, _third) = task.targets(batch, task.draw(torch.Generator().manual_seed(1), 2))
    assert varied.caption == task.truths([task.learn[0]])[0].caption
    told = preview.described(cast(Trainer, SimpleNamespace(task=task, batch_size=2, per_epoch=3)))
    assert len(task.learn) > 6  # objects
    assert told["images"] == {"learn": 6, "score": 4}


def test_embedder_answers_the_nearest_class(tmp_path):
    version = versions.shades(tmp_path / "shades", train=8, val=4)
    env = {"AIP_DATASET_DIR": str(version), "AIP_CACHE_DIR": str(tmp_path / "cache")}
    card = embed_card.CARD.read({"net_width": 4, "dimensions": 8})
    task = embed.Embedding(Run.from_environment(env), card, Ranks(0, 1, torch.device("cpu")))

    answers = task.answers(task.model.eval(), task.images(task.score[:4]))

    assert task.counts() == ("images", {"above": 4, "below": 4})
    assert {one.caption for one in task.truths(task.score)} == {"above", "below"}
    assert {one.caption.split()[0] for one in answers} <= {"above", "below"}


def test_marks_are_drawn_where_they_are():
    grey = np.full((20, 40, 3), 100, np.uint8)
    mask = np.zeros((20, 40), np.uint8)
    mask[:, 30:] = 2

    image = np.asarray(marks.drawn(grey, marks.Marks(boxes=[(5, 5, 15, 15)], classes=[0], mask=mask), side=40))

    assert tuple(image[10, 5]) == marks.colour(0)
    assert tuple(image[10, 10]) == (100, 100, 100)
    wanted = (1 - marks.VEIL) * 100 + marks.VEIL * np.array(marks.colour(1))
    assert image[10, 36] == pytest.approx(wanted, abs=1)


def test_marks_name_the_classes_of_a_mask_where_they_are():
    grey = np.full((80, 160, 3), 100, np.uint8)
    mask = np.zeros((40, 80), np.uint8)
    mask[5:15, 5:15], mask[25:30, 60:70] = 1, 3
    one = marks.Marks(mask=mask, names=["date", "fig", "nut"])

    named = np.asarray(marks.drawn(grey, one, side=160)).astype(int)
    plain = np.asarray(marks.drawn(grey, marks.Marks(mask=mask), side=160)).astype(int)

    rows, columns = np.nonzero(np.abs(named - plain).sum(-1))
    assert (tuple(named[rows.min(), columns.min()]), tuple(named[rows.max(), columns.max()])) == (
        marks.colour(0),
        marks.colour(2),
    )
    for x, y in ((20, 20), (130, 56)):  # the middle of either, in pixels of the drawing
        assert np.hypot(columns - x, rows - y).min() < 4
    assert not ((columns > 60) & (columns < 118)).any()
    whole = marks.drawn(grey, marks.Marks(mask=np.ones((40, 80), np.uint8), names=["date", "fig"]), side=160)
    assert whole.getpixel((80, 37)) == marks.colour(0)  # a class that is everywhere is named in the middle


def test_marks_bring_back_the_pixels_a_model_was_given():
    pixels = np.arange(2 * 3 * 4 * 3, dtype=np.uint8).reshape(2, 3, 4, 3)
    given = ((torch.from_numpy(pixels).float() - 127) / 128).permute(0, 3, 1, 2)

    assert (marks.from_model(given, 127.0, 128.0) == pixels).all()


def test_grad_cam_weighs_maps_by_the_mean_gradient_and_leaves_out_what_speaks_against():
    maps = torch.tensor([[[[1.0, 0.0], [0.0, 2.0]], [[3.0, 0.0], [0.0, 0.0]]]])
    slopes = torch.stack([torch.full((2, 2), 1.0), torch.full((2, 2), -1.0)])[None]

    heat = layers.grad_cam(maps, slopes)

    assert heat.tolist() == [[[0.0, 0.0], [0.0, 1.0]]]  # 1 - 3 < 0, and 2


def test_samples_beyond_the_most_lose_every_second_but_never_the_newest(tmp_path):
    for step in range(samples.MAX_STEPS + 1):
        (tmp_path / f"step-{step:06d}").mkdir()

    samples._thin(tmp_path)

    left = sorted(path.name for path in tmp_path.iterdir())
    assert len(left) == samples.MAX_STEPS // 2 + 1
    assert left[-1] == f"step-{samples.MAX_STEPS:06d}"
    assert left[0] == "step-000000"


@pytest.mark.long
@pytest.mark.proof
@pytest.mark.parametrize("preset", ["detect", *LONGER[:1]])
def test_preset_says_where_the_time_of_a_step_goes(tmp_path, preset):
    job = Job(
        tmp_path / "job", version_for(preset, tmp_path / "version"), preset, {**STEPS, **TINY[preset], "steps": 9}
    )
    job.env |= {"AIP_SHOW": "profile", "AIP_SHOW_STEPS": "4"}

    code, log = job.run()

    assert code == 0, log
    about = json.loads((job.outputs / "profile" / "profile.json").read_text())
    assert sum(about["shares"].values()) == pytest.approx(1, abs=0.002)
    assert all(0 <= share <= 1 for share in about["shares"].values())
    assert about["shares"]["forward"] > 0
    assert about["shares"]["backward"] > 0
    assert (about["steps"], about["kind"], about["batch_size"], about["kernels"]) == (4, "cpu", 4, 0)
    assert about["step_ms"] > 0
    assert {one["step"] for one in about["timeline"]} == {0, 1, 2, 3}
    assert any("conv" in row["name"] for row in about["operations"])
    assert all(row["self_cpu_ms"] <= row["cpu_ms"] + 1e-3 for row in about["operations"])
    with gzip.open(job.outputs / "profile" / "trace.json.gz") as file:
        assert json.load(file)["traceEvents"]
    assert not (job.outputs / "model").exists()
    assert not list(job.checkpoints.glob("*"))
