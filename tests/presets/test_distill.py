"""Distillation: the loss by hand, what a teacher is shown, and that a student comes to answer as it does."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from tests.presets import versions
from training.presets import classify, classify_card, distill, segment, segment_card
from training.presets.ranks import Ranks
from training.presets.run import Refused, Run

ALONE = Ranks(0, 1, torch.device("cpu"))
SMALL = {"batch_size": 16, "net_width": 4, "flip_tta": False, "flip": 0.0, "shift": 0.0, "label_smoothing": 0.0}


@pytest.fixture(scope="module")
def shades(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return versions.shades(tmp_path_factory.mktemp("versions") / "shades")


def task(version: Path, cache: Path, teacher: Path | None = None, **params: Any) -> classify.Classification:
    env = {"AIP_DATASET_DIR": str(version), "AIP_CACHE_DIR": str(cache), "AIP_TEACHER": str(teacher or "")}
    return classify.Classification(
        Run.from_environment(env), classify_card.CARD.read({**SMALL, "steps": 1, **params}), ALONE
    )


def finished(version: Path, folder: Path, **params: Any) -> Path:
    """A classifier with decided answers of its own, exported: its model.safetensors."""
    one = task(version, folder / "cache", seed=7, **params)
    one.model.get_submodule("fc").weight.data *= 30  # type: ignore[operator, union-attr]  # a layer's weights
    one.export(one.model.eval(), folder / "model", {})
    return folder / "model" / "model.safetensors"


def test_soft_loss_is_the_divergence_of_softened_answers_by_hand():
    student, teacher, heat = torch.tensor([[0.0, 2.0]]), torch.tensor([[0.0, 0.0]]), 2.0
    share = 1 / (1 + math.e)  # of the student's first class at temperature 2
    by_hand = 0.5 * math.log(0.5 / share) + 0.5 * math.log(0.5 / (1 - share))

    assert distill.soft_loss(student, teacher, heat).item() == pytest.approx(heat**2 * by_hand, rel=1e-5)
    assert distill.soft_loss(teacher, teacher, heat).item() == pytest.approx(0, abs=1e-7)


def test_soft_loss_of_maps_is_the_mean_over_their_pixels():
    student, teacher = torch.randn(2, 3, 4, 5), torch.randn(2, 3, 4, 5)
    rows = [one.permute(0, 2, 3, 1).reshape(-1, 3) for one in (student, teacher)]

    assert distill.soft_loss(student, teacher, 3.0).item() == pytest.approx(distill.soft_loss(*rows, 3.0).item())


def test_teacher_of_the_same_input_answers_what_its_export_does(shades, tmp_path):
    one = task(shades, tmp_path / "cache", finished(shades, tmp_path), seed=1)
    images = one.images(one.score[:4])
    first = task(shades, tmp_path / "cache", seed=7)
    first.model.get_submodule("fc").weight.data *= 30  # type: ignore[operator, union-attr]  # a layer's weights

    taught = one.teacher.answers(images, one.mean, one.std, student_size=(one.width, one.height))  # type: ignore[union-attr]  # it has one

    assert torch.allclose(taught, first.model.eval()(images), atol=1e-4)


class Colours(nn.Module):
    """[N, C, H, W] → the mean of each channel [N, C], and the last one's once more."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        means = x.mean((2, 3))
        return torch.cat([means, means[:, -1:]], 1)


def seeing(folder: Path, channels: int) -> distill.Teacher:
    """A teacher that answers what it is given: 20 by 10 pixels of so many channels, normalised by 100 and 50."""
    folder.mkdir()
    seen = {"width": 20, "height": 10, "channels": channels, "mean": [100.0] * channels, "std": [50.0] * channels}
    about = {"classes": [{"name": name} for name in "abcd"[: channels + 1]], "input": seen}
    (folder / "model.json").write_text(json.dumps(about))
    save_file({}, folder / "model.safetensors")
    names = [str(entry["name"]) for entry in about["classes"]]
    return distill.Teacher(folder / "model.safetensors", lambda _: Colours(), classes=names, device=ALONE.device)


def test_teacher_is_shown_its_own_channels_and_scale_of_pixel_values(tmp_path):
    red = torch.tensor([200.0, 0.0, 0.0])[:, None, None].expand(1, 3, 10, 20)
    grey = torch.full((1, 1, 10, 20), 150.0)

    of_colours = seeing(tmp_path / "grey", 1).answers((red - 7) / 3, 7.0, 3.0, student_size=(20, 10))
    mean, std = torch.tensor([7.0]), torch.tensor([3.0])
    of_grey = seeing(tmp_path / "colours", 3).answers((grey - 7) / 3, mean, std, student_size=(20, 10))

    assert of_colours[0, 0].item() == pytest.approx((200 * 0.299 - 100) / 50, abs=1e-4)
    assert of_grey[0].tolist() == pytest.approx([1.0] * 4, abs=1e-4)


def test_teacher_is_shown_its_own_size_and_windows_at_its_own_scale(tmp_path):
    sizes = []
    teacher = seeing(tmp_path / "one", 1)
    teacher.model.register_forward_pre_hook(lambda _module, given: sizes.append(tuple(given[0].shape[2:])))

    teacher.answers(torch.zeros(1, 1, 5, 40), 0.0, 1.0, student_size=(40, 5))
    teacher.answers(torch.zeros(1, 1, 64, 128), 0.0, 1.0, student_size=(20, 5))  # a window of something twice as high

    assert sizes == [(10, 20), (128, 128)]


def test_teacher_answers_in_the_students_order_of_classes_and_must_know_them_all(shades, tmp_path):
    file = finished(shades, tmp_path)
    about = json.loads((file.parent / "model.json").read_text())
    straight = task(shades, tmp_path / "cache", file)
    about["classes"].reverse()
    (file.parent / "model.json").write_text(json.dumps(about))
    turned = task(shades, tmp_path / "cache", file)
    images = straight.images(straight.score[:4])
    seen = (images, straight.mean, straight.std)
    whole = (straight.width, straight.height)

    answers = [one.teacher.answers(*seen, student_size=whole) for one in (straight, turned)]  # type: ignore[union-attr]  # they have one

    assert torch.equal(answers[0], answers[1].flip(1))
    about["classes"][0]["name"] = "another"
    (file.parent / "model.json").write_text(json.dumps(about))
    with pytest.raises(Refused, match="The teacher does not know"):
        task(shades, tmp_path / "cache", file)


def test_teacher_whose_files_do_not_belong_together_is_refused(shades, tmp_path):
    file = finished(shades, tmp_path)
    about = json.loads((file.parent / "model.json").read_text())
    (file.parent / "model.json").write_text(json.dumps({**about, "architecture": "lenet5"}))

    with pytest.raises(Refused, match="Choose a model that this preset trained"):
        task(shades, tmp_path / "cache", file)


def apart(one: classify.Classification, teacher: distill.Teacher) -> float:
    """How far the answers to images it has not learned from are from the teacher's."""
    images = one.images(one.score)
    taught = teacher.answers(images, one.mean, one.std, student_size=(one.width, one.height))
    return distill.soft_loss(one.model.eval()(images), taught, 1.0).item()


def learned(one: classify.Classification, steps: int) -> None:
    torch.manual_seed(0)
    optimizer = torch.optim.Adam(one.model.parameters(), 0.01)
    draw = torch.Generator().manual_seed(0)
    for _step in range(steps):
        one.model.train()
        rows = torch.randperm(one.rows, generator=draw)[:16].tolist()
        losses = one.loss(one.model, one.load(rows), one.draw(draw, 16), ALONE)
        optimizer.zero_grad()
        torch.stack(list(losses.values())).sum().backward()
        optimizer.step()


def test_student_learns_the_teachers_soft_answers_and_without_it_does_not(shades, tmp_path):
    swapped = task(shades, tmp_path / "cache", architecture="lenet5")
    swapped.labels = 1 - swapped.labels  # what a student can have from its teacher alone
    learned(swapped, 15)
    swapped.export(swapped.model.eval(), tmp_path / "model", {})
    file = tmp_path / "model" / "model.safetensors"
    taught = task(shades, tmp_path / "cache", file, architecture="lenet5", distill=0.9, seed=1)
    alone = task(shades, tmp_path / "cache", architecture="lenet5", seed=1)
    teacher = taught.teacher
    assert teacher is not None
    before = apart(taught, teacher)

    learned(taught, 25)
    learned(alone, 25)

    assert apart(taught, teacher) < 0.5 * before
    assert apart(taught, teacher) < 0.2 * apart(alone, teacher)


def test_segmenter_learns_after_a_teacher_of_another_size(tmp_path):
    shapes = versions.outlines(tmp_path / "shapes", train=6, val=2, size=(96, 64))

    def made(teacher: Path | None = None, **params: Any) -> segment.Segmentation:
        env = {
            "AIP_DATASET_DIR": str(shapes),
            "AIP_CACHE_DIR": str(tmp_path / "cache"),
            "AIP_TEACHER": str(teacher or ""),
        }
        given = {"architecture": "unet", "net_width": 8, "width": 96, "height": 64, "batch_size": 2, **params}
        return segment.Segmentation(Run.from_environment(env), segment_card.CARD.read(given), ALONE)

    first = made(net_width=12, width=128, height=96)
    first.export(first.model.eval(), tmp_path / "model", {})
    one = made(tmp_path / "model" / "model.safetensors", distill=0.25, temperature=2.0)
    batch, draws = one.load([0, 1]), one.draw(torch.Generator().manual_seed(0), 2)

    losses, plain = one.loss(one.model, batch, draws, ALONE), made().loss(one.model, batch, draws, ALONE)

    assert losses["pixel_loss"].item() == pytest.approx(0.75 * plain["pixel_loss"].item())
    assert losses["soft_loss"].item() > 0
    losses["soft_loss"].backward()
    assert one.model.get_submodule("what").weight.grad.abs().sum() > 0  # type: ignore[union-attr, operator]  # a layer's weights
