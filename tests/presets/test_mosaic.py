"""Mosaics of four images, and batches of several sizes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.presets import versions
from training.presets import detect, detect_card, instances, instances_card, mosaic, segment, segment_card
from training.presets.pauses import ALONE
from training.presets.run import Run

QUICK = {"width": 64, "architecture": "lite0-scratch", "head_width": 16, "batch_size": 4}


@pytest.fixture(scope="module")
def outlines(tmp_path_factory):
    return versions.outlines(tmp_path_factory.mktemp("versions") / "outlines", train=24, val=8)


def task(of, version, root, **params):
    run = Run.from_environment({"AIP_DATASET_DIR": str(version), "AIP_CACHE_DIR": str(root)})
    card = {detect: detect_card, instances: instances_card, segment: segment_card}[of].CARD
    kind = {detect: "Detection", instances: "Instances", segment: "Segmentation"}[of]
    return getattr(of, kind)(run, card.read({**QUICK, **params}), ALONE)


def batch(count=8, side=40):
    """Images of one shade each, and on each two squares whose class is the image's number, where it is brighter."""
    images = torch.arange(count).float()[:, None, None, None].repeat(1, 3, side, side)
    boxes = torch.tensor([[2.0, 3, 12, 13], [20, 22, 36, 38]]).repeat(count, 1, 1)
    for x0, y0, x1, y1 in boxes[0].int().tolist():
        images[:, :, y0:y1, x0:x1] += 0.5
    return images, boxes, torch.arange(count)[:, None].repeat(1, 2), torch.ones(count, 2, dtype=torch.bool)


def four(*parts):
    """A batch, and its images that come one, two and three places before."""
    return [tuple(part.roll(number, 0) for part in parts) for number in range(4)]


def test_boxes_of_mosaics_lie_on_what_they_are_of_and_nowhere_else():
    draws = mosaic.draw(1.0, torch.Generator().manual_seed(1), 8)

    put, boxes, classes, valid = mosaic.made(four(*batch()), draws, visible=0.4)

    assert len({int(shade) for shade in put.unique().floor()}) == 8
    boxed = 0
    for image, own, kinds, real in zip(put[:, 0], boxes, classes, valid, strict=True):
        covered = torch.zeros_like(image, dtype=torch.bool)
        for (x0, y0, x1, y1), kind in zip(own[real].int().tolist(), kinds[real].tolist(), strict=True):
            assert (image[y0:y1, x0:x1] == kind + 0.5).all()
            covered[y0:y1, x0:x1] = True
            boxed += 1
        bright = image != image.floor()
        assert not (covered & ~bright).any()
        assert (bright & ~covered).sum() < 0.4 * bright.sum() + 110  # parts of which too little is left
    assert boxed > 12
    assert any(len(image.floor().unique()) == 4 for image in put[:, 0])


def test_images_that_are_no_mosaics_stay_as_they_are():
    images, boxes, classes, valid = batch(4)
    valid[1, 0] = False
    draws = mosaic.draw(0.0, torch.Generator().manual_seed(1), 4)

    put, own, kinds, real = mosaic.made(four(images, boxes, classes, valid), draws, visible=0.4)

    assert torch.equal(put, images)
    assert [own[place][real[place]].tolist() for place in range(4)] == [boxes[n][valid[n]].tolist() for n in range(4)]
    assert torch.equal(kinds[real], classes[valid])


def test_mosaics_of_images_without_objects_have_none():
    draws = mosaic.draw(1.0, torch.Generator().manual_seed(1), 2)

    nothing = torch.zeros(2, 0, dtype=torch.int64)

    _, boxes, classes, valid = mosaic.made(
        four(torch.zeros(2, 3, 8, 8), torch.zeros(2, 0, 4), nothing, nothing.bool()), draws, visible=0.4
    )

    assert boxes.shape == (2, 0, 4)
    assert classes.shape == valid.shape == (2, 0)


@pytest.mark.parametrize("of", [detect, instances, segment])
def test_batches_are_learned_at_sizes_of_their_own_and_targets_follow(outlines, tmp_path, of):
    mosaics = {"mosaic": 0.7} if of is detect else {}
    one = task(of, outlines, tmp_path, multi_scale=0.5, **mosaics)
    sizes = set()
    for seed in range(6):
        draws = one.draw(torch.Generator().manual_seed(seed), 4)
        given: list[torch.Tensor] = []
        hook = one.model.register_forward_pre_hook(lambda _module, args, given=given: given.append(args[0]))
        parts = one.loss(one.model, one.load([0, 1, 2, 3]), draws, ALONE)
        hook.remove()
        height, width = given[0].shape[2:]
        sizes.add((width, height))
        assert all(torch.isfinite(part) for part in parts.values())
        for marks in one.targets(one.load([0, 1, 2, 3]), draws):
            if marks.mask is not None:
                assert marks.mask.shape == (height, width)
            elif len(marks.boxes):
                assert np.asarray(marks.boxes).max() <= max(width, height)
    assert len(sizes) > 1
    assert all(side % 32 == 0 for size in sizes for side in size)


def test_sizes_and_mosaics_leave_other_choices_as_they_are(outlines, tmp_path):
    plain, varied = (task(detect, outlines, tmp_path, multi_scale=size) for size in (0.0, 0.5))
    own, other = (one.draw(torch.Generator().manual_seed(3), 4) for one in (plain, varied))

    assert all(torch.equal(own[name], other[name]) for name in own if name != "size")
    assert own["size"].tolist() == [1.0] * 4
    assert len(set(other["size"].tolist())) == 1


@pytest.mark.parametrize("parts", [2, 4])
def test_mosaics_are_the_same_whatever_the_parts_that_a_batch_is_learned_in(outlines, tmp_path, parts):
    one = task(detect, outlines, tmp_path, mosaic=0.7)
    batch, draws = one.load([0, 1, 2, 3]), one.draw(torch.Generator().manual_seed(0), 4)
    whole, *_ = one._varied(batch, draws)

    shown = []
    for own in torch.arange(4).chunk(parts):
        images, *_ = one._varied(
            tuple(part[own] for part in batch), {name: drawn[own] for name, drawn in draws.items()}
        )
        shown.append(images)

    assert torch.equal(torch.cat(shown), whole)
    assert draws["mosaic"].any()
