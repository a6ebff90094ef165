"""Several cores on one batch learn what one does."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import nn

from training.presets import lite0
from training.presets.lanes import Lanes, for_learning
from training.presets.ranks import Ranks

ALONE = Ranks(0, 1, torch.device("cpu"))


def loss(model, batch, draws, ranks):
    """Depends on all images together by its divisor, as a detector's does by the number of objects."""
    images, wanted = batch
    count = ranks.mean(wanted.sum()).clamp(min=1)
    off = (model(images * draws["light"][:, None]) - wanted[:, None]) ** 2
    return {"whole": off.sum() / count, "half": 0.5 * off.sum() / count}


def test_lanes_give_the_gradients_of_the_whole_batch_the_same_every_time():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 7), nn.GroupNorm(1, 7), nn.ReLU(), nn.Linear(7, 1))
    batch = (torch.randn(6, 5), torch.tensor([0.0, 3, 1, 0, 0, 2]))
    draws = {"light": torch.rand(6)}
    parts = loss(model, batch, draws, ALONE)
    (parts["whole"] + parts["half"]).backward()
    plain = [parameter.grad.clone() for parameter in model.parameters()]

    def by_lanes():
        found = Lanes(3).learn(model, lambda *given: loss(model, *given), batch, draws)
        return found, [parameter.grad.clone() for parameter in model.parameters()]

    (found, first), (_, second) = by_lanes(), by_lanes()

    assert float(found["whole"]) == pytest.approx(float(parts["whole"].detach()), rel=1e-5)
    assert all(torch.allclose(ours, theirs, atol=1e-6) for ours, theirs in zip(first, plain, strict=True))
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))


def test_lanes_raise_what_one_lane_raised_and_leave_nobody_waiting():
    def broken(batch, draws, ranks):
        if float(batch[0][0]) > 0:
            raise ValueError("no such image")
        return {"whole": ranks.mean(batch[0].sum())}

    with pytest.raises((ValueError, threading.BrokenBarrierError)):
        Lanes(2).learn(nn.Linear(1, 1), broken, (torch.tensor([0.0, 1.0]),), {})


def test_lanes_are_not_for_models_whose_images_look_at_each_other(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    model = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4))

    assert for_learning(model, ALONE, 8) is None
    assert for_learning(nn.Conv2d(3, 4, 1), ALONE, 8).count == 2
    assert for_learning(nn.Conv2d(3, 4, 1), ALONE, 7) is None
    assert for_learning(nn.Conv2d(3, 4, 1), Ranks(0, 2, torch.device("cpu")), 8) is None


def test_lite0_with_fixed_norms_is_one_convolution_each_and_answers_the_same():
    torch.manual_seed(0)
    model = lite0.Lite0((8, 16), frozen_blocks=3, frozen_norms=True)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.uniform_(-1, 1)
            module.running_var.uniform_(0.5, 2)
    images = torch.randn(2, 3, 64, 96)

    folded = model.train()(images)

    plain = nn.Sequential(model._conv_stem, model._bn0, nn.ReLU6())(images)
    for block in model._blocks:
        y = nn.ReLU6()(block._bn0(block._expand_conv(plain))) if block.expands else plain
        y = block._bn2(block._project_conv(nn.ReLU6()(block._bn1(block._depthwise_conv(y)))))
        plain = plain + y if block.adds else y
    assert torch.allclose(folded[-1], plain, atol=1e-4, rtol=1e-4)
    assert not any(p.requires_grad for block in model._blocks[:3] for p in block.parameters())
    folded[0].sum().backward()
    assert model._blocks[3]._expand_conv.weight.grad.abs().sum() > 0
    assert model._blocks[0]._depthwise_conv.weight.grad is None
