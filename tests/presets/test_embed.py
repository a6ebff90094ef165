"""The embedder's parts in this process, and the preset as a job."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from inference.evaluation.evaluator.__main__ import evaluate
from tests.inference.running import a_run
from tests.presets import versions
from tests.presets.jobs import Job
from training.presets import embed, embed_card, export, neighbours, nets
from training.presets.ranks import Ranks
from training.presets.run import Refused, Run

ALONE = Ranks(0, 1, torch.device("cpu"))
STEPS = {"budget_minutes": 0, "show_steps": True, "checkpoint_minutes": 1000, "eval_share": 0, "batch_size": 16}
SMALL = {**STEPS, "net_width": 4, "dimensions": 8, "gallery": 10}


@pytest.fixture(scope="module")
def shades(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return versions.shades(tmp_path_factory.mktemp("versions") / "shades")


def task(version: Path, cache: Path, **params: Any) -> embed.Embedding:
    run = Run.from_environment({"AIP_DATASET_DIR": str(version), "AIP_CACHE_DIR": str(cache)})
    return embed.Embedding(run, embed_card.CARD.read({**SMALL, "steps": 1, **params}), ALONE)


def test_arcface_without_margin_is_a_cross_entropy_and_a_margin_asks_for_more():
    cosines, classes = torch.tensor([[0.9, 0.1], [0.2, 0.7], [-0.99, 0.3]]), torch.tensor([0, 1, 0])

    plain = neighbours.arcface(cosines, classes, margin=0.0, scale=16.0)
    asked = neighbours.arcface(cosines[:1], classes[:1], margin=0.3, scale=16.0)

    assert float(plain) == pytest.approx(float(F.cross_entropy(16 * cosines, classes)), rel=1e-4)
    turned = torch.tensor([[math.cos(math.acos(0.9) + 0.3), 0.1]])
    assert float(asked) == pytest.approx(float(F.cross_entropy(16 * turned, classes[:1])), rel=1e-4)


def test_arcface_pulls_to_its_own_class_from_every_angle():
    own = torch.linspace(-0.999, 0.999, 101, requires_grad=True)
    cosines = torch.stack([own, torch.zeros(101)], 1)

    neighbours.arcface(cosines, torch.zeros(101, dtype=torch.int64), margin=0.4, scale=8.0).backward()

    assert (own.grad < 0).all()


def test_embedder_learns_from_near_angles_in_bfloat16_too():
    torch.manual_seed(0)
    images, classes = F.normalize(torch.randn(4, 8)), torch.arange(4)
    model = neighbours.Embedder(torch.nn.Identity(), dimensions=8, classes=4)
    model.centres.data = images + 0.01 * torch.randn(4, 8)

    def learned(*, fast: bool) -> tuple[float, torch.Tensor]:
        model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=fast):
            loss = neighbours.arcface(model(images)[1], classes, margin=0.2, scale=16.0)
        loss.backward()
        return float(loss.detach()), model.centres.grad.clone()

    (exact, expected), (fast, found) = learned(fast=False), learned(fast=True)

    assert fast == pytest.approx(exact, rel=1e-4)
    assert torch.allclose(found, expected, atol=1e-4)


def test_arcface_takes_cosines_of_half_precision():
    cosines = torch.tensor([[1.0, 0.0], [0.5, 0.25]], dtype=torch.bfloat16, requires_grad=True)

    loss = neighbours.arcface(cosines, torch.tensor([0, 1]), margin=0.2, scale=16.0)
    loss.backward()

    assert loss.dtype == torch.float32
    assert cosines.grad.isfinite().all()


def test_neighbour_figures_are_those_counted_by_hand():
    vectors = F.normalize(torch.tensor([[1.0, 0], [0.99, 0.1], [0.9, 0.3], [0, 1], [0.2, 1], [-1, 0]]))
    classes = torch.tensor([0, 1, 0, 1, 1, 2])

    found = neighbours.figures(vectors, classes)

    # nearest others: 0 → 1,2 | 1 → 0 | 2 → 1,0 | 3 → 4,2 | 4 → 3,2; image 5 is alone in its class and does not count
    assert found["recall_1"] == pytest.approx(2 / 5)
    assert found["recall_5"] == 1
    assert found["map_r"] == pytest.approx((0 + 0 + 0 + 1 / 2 + 1 / 2) / 5)


def test_neighbours_name_the_class_of_most_weight():
    cosines = torch.tensor([[0.9, 0.5, 0.45, -0.2], [0.9, 0.4, 0.1, -0.9]])

    assert neighbours.named(cosines, torch.tensor([0, 1, 1, 1]), 2).tolist() == [1, 0]


def test_known_images_are_spread_over_the_classes():
    classes = [0] * 50 + [1] * 3 + [2] * 20

    chosen = neighbours.spread(classes, 20)

    assert np.bincount([classes[place] for place in chosen]).tolist() == [9, 3, 8]
    assert chosen[0] == 0
    assert max(place for place in chosen if place < 50) > 40
    assert neighbours.spread(classes, 1000) == list(range(73))


def test_known_images_are_one_for_each_class_at_least(shades, tmp_path):
    assert neighbours.spread([0] * 50 + [1] + [2] * 20, 3) == [0, 50, 51]
    with pytest.raises(Refused, match="gallery 1 leaves classes without a known image: choose 2 at least"):
        task(shades, tmp_path / "cache", gallery=1)


@pytest.mark.parametrize("architecture", ["resnet9", pytest.param("lite0", marks=pytest.mark.long)])
def test_export_answers_as_the_embedder_does(tmp_path, architecture):
    torch.manual_seed(0)
    channels = 3 if architecture == "lite0" else 1
    net = nets.build(architecture, classes=8, channels=channels, net_width=4, width=32, height=32)
    model = neighbours.Embedder(net, dimensions=8, classes=3).eval()
    known = F.normalize(torch.rand(20, 8))
    whitening = neighbours.Whitening(known, 0.5)

    export.write(
        neighbours.Answering(model, whitening(known), whitening, mirror=True), tmp_path,
        outputs=("vectors", "similarity"), samples=torch.rand(3, channels, 32, 32), metadata={},
    )  # fmt: skip

    assert json.loads((tmp_path / "model.json").read_text())["verify"]["max_abs_diff"] < 1e-3


def test_image_and_its_mirror_image_are_one_place_where_both_are_looked_at():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 4))
    images = torch.rand(5, 1, 3, 4)

    both, mirrored = (neighbours.vectors_of(net, seen, mirror=True) for seen in (images, images.flip(-1)))

    assert torch.allclose(both, mirrored, atol=1e-6)
    assert torch.allclose(both.norm(dim=1), torch.ones(5))
    assert not torch.allclose(both, neighbours.vectors_of(net, images, mirror=False), atol=1e-2)


def test_whole_whitening_makes_all_directions_vary_alike_and_half_of_it_brings_them_nearer():
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(5000, 4, generator=generator) * torch.tensor([1.0, 0.5, 0.1, 0.05]) + 0.3

    whole, half = (neighbours.Whitening(vectors, share) for share in (1.0, 0.5))

    moved = [(vectors - one.mean) @ one.turn for one in (whole, half)]
    assert torch.allclose(torch.cov(moved[0].T), torch.eye(4), atol=0.15)
    assert torch.allclose(torch.cov(moved[1].T), torch.diag(torch.tensor([1.0, 0.5, 0.1, 0.05])), atol=0.05)
    assert torch.allclose(whole(vectors).norm(dim=1), torch.ones(5000))


def test_whitening_by_few_images_does_not_stretch_what_they_do_not_show():
    few = F.normalize(torch.randn(6, 64, generator=torch.Generator().manual_seed(0)))

    stretched = torch.linalg.eigvalsh(neighbours.Whitening(few, 0.5).turn)

    assert float(stretched.max() / stretched.min()) < 2
    same = neighbours.Whitening(few[:1].expand(5, 64), 0.5)
    assert same(few).isfinite().all()


def test_finds_neighbours_by_a_direction_that_classes_leave_small():
    generator = torch.Generator().manual_seed(0)
    classes = torch.arange(400) % 4
    large = 2.0 * (classes % 2)[:, None] + 0.4 * torch.randn(400, 3, generator=generator)
    small = 0.1 * (classes // 2)[:, None] + 0.02 * torch.randn(400, 1, generator=generator)
    vectors = F.normalize(torch.cat([large, small, torch.ones(400, 1)], 1))

    plain = neighbours.figures(vectors, classes)["recall_1"]
    whitened = neighbours.figures(neighbours.Whitening(vectors, 0.5)(vectors), classes)["recall_1"]

    assert whitened > plain + 0.05


def test_images_move_by_whole_pixels_and_are_not_blurred(shades, tmp_path):
    one = task(shades, tmp_path / "cache", shift=0.2, flip=0.0)
    draws = one.draw(torch.Generator().manual_seed(0), 16)
    seen: list[torch.Tensor] = []

    def model(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        seen.append(x)
        return x, x.flatten(1)[:, :2].requires_grad_()

    batch = one.load(list(range(16)))
    one.loss(model, batch, draws, ALONE)

    moves = draws["move"] * torch.tensor([one.width, one.height]) / 2
    assert torch.allclose(moves, moves.round(), atol=1e-4)
    assert len(moves.round().unique(dim=0)) > 4
    plain = one._normal(batch[0])
    for image, original, (right, down) in zip(seen[0], plain, moves.round().long().tolist(), strict=True):
        rows = (torch.arange(one.height) + down).clamp(0, one.height - 1)
        columns = (torch.arange(one.width) + right).clamp(0, one.width - 1)
        assert torch.allclose(image, original[:, rows][:, :, columns], atol=1e-3)


def test_embed_preset_refuses_a_version_with_one_class(tmp_path):
    folder = versions.shades(tmp_path / "one")
    lines = [json.loads(line) for line in (folder / "manifest.jsonl").read_text().splitlines()]
    (folder / "manifest.jsonl").write_text("".join(json.dumps({**line, "label": 1}) + "\n" for line in lines))

    with pytest.raises(Refused, match="one shows one class: two are needed"):
        task(folder, tmp_path / "cache")


def test_embed_preset_loss_goes_down_on_a_batch_it_sees_again(shades, tmp_path):
    one = task(shades, tmp_path / "cache")
    batch, draws = one.load(list(range(16))), one.draw(torch.Generator().manual_seed(0), 16)
    optimizer, losses = one.optimizer(), []
    for _step in range(20):
        loss = sum(one.loss(one.model, batch, draws, ALONE).values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.long
@pytest.mark.proof
def test_embed_preset_goes_on_after_a_suspend_and_is_judged_as_it_judged_itself(tmp_path, shades):
    params = {**SMALL, "steps": 16}
    straight = Job(tmp_path / "straight", shades, "embed", params)
    assert straight.run()[0] == 0

    cut = Job(tmp_path / "cut", shades, "embed", params)
    with cut.start() as process:
        for line in process.stdout:
            if "step 2 " in line:
                cut.request("suspend")
    assert process.returncode == 75
    cut.request("")
    code, log = cut.run()

    assert code == 0, log
    figures = [json.loads((job.outputs / "metrics.json").read_text()) for job in (straight, cut)]
    assert figures[0]["val/recall_1"] == figures[1]["val/recall_1"]
    about = json.loads((cut.outputs / "model" / "model.json").read_text())
    assert sorted(about["gallery"]["classes"]) == [0] * 5 + [1] * 5
    assert len(set(about["gallery"]["images"])) == 10
    assert all(len(image) == 12 for image in about["gallery"]["images"])
    judged = evaluate(a_run(tmp_path / "judged", cut.outputs / "model", shades, split="val"))["summary"]
    for name, value in judged.items():
        assert value == pytest.approx(figures[1][f"val/{name}"], abs=0.07)
    assert judged["recall_1"] > 0.8  # bright above or bright below: sixteen steps tell them apart
