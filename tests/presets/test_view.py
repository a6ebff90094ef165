"""Input size and shape follow the data."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from tests.presets import versions
from training.presets import detect, detect_card, image_cache, run, view, warp
from training.presets.ranks import Ranks

AUTO = {"width": 0, "height": 0, "resize": "auto", "strides": "auto", "budget_minutes": 0}


def boxes(count: int, side: float) -> np.ndarray:
    """Square boxes of `side` pixels in a row."""
    left = np.arange(count, dtype=np.float32) * side
    return np.stack([left, np.zeros(count), left + side, np.full(count, side)], 1).astype(np.float32)


def test_view_of_usual_things_on_images_of_one_shape_is_small_and_whole():
    seen = view.choose([(640, 480)] * 9, [boxes(5, 80)] * 9, AUTO)

    assert (seen.width, seen.height, seen.resize) == (320, 240, "stretch")
    assert not seen.windowed
    assert seen.strides == (8, 16)
    assert list(seen.lines()) == []


def test_view_of_small_things_is_larger_and_learned_from_windows():
    seen = view.choose([(1024, 768)] * 9, [boxes(5, 24)] * 9, AUTO)

    assert (seen.width, seen.height) == (688, 512)
    assert seen.window == (320, 320)
    assert seen.lost == 0
    assert "windows of 320×320" in "".join(seen.lines())


def test_view_of_upright_and_lying_images_squeezes_neither():
    seen = view.choose([(1024, 576), (768, 1024), (1024, 768)], [boxes(2, 300)] * 3, AUTO)

    assert (seen.width, seen.height, seen.resize) == (320, 320, "letterbox")


def test_view_of_lying_images_of_several_shapes_is_no_taller_than_needed():
    seen = view.choose([(1024, 576), (1024, 768)], [boxes(2, 300)] * 2, AUTO)

    assert (seen.width, seen.height, seen.resize) == (320, 240, "letterbox")


def test_view_never_enlarges_images_and_says_what_is_lost():
    seen = view.choose([(200, 100)], [np.concatenate([boxes(3, 5), boxes(7, 40)])], AUTO)

    assert (seen.width, seen.height) == (192, 96)
    assert seen.lost == 3
    assert "3 of 10 objects are smaller than 8 px at 192×96" in "".join(seen.lines())


def test_view_of_usual_things_grows_with_the_time_up_to_the_images_own_size():
    seen = [
        view.choose([(640, 480)] * 290, [boxes(5, 80)] * 290, {**AUTO, "budget_minutes": minutes}, cores=2)
        for minutes in (2, 10, 600)
    ]

    assert [(one.width, one.height) for one in seen] == [(320, 240), (432, 320), (640, 480)]
    assert not any(one.windowed for one in seen)


def test_view_of_few_images_stays_small_in_a_short_time():
    seen = view.choose([(640, 480)] * 18, [boxes(5, 80)] * 18, {**AUTO, "budget_minutes": 2}, cores=2)

    assert (seen.width, seen.height) == (320, 240)


def test_view_grows_later_where_learning_from_a_pixel_takes_longer():
    images, usual, params = [(640, 480)] * 290, [boxes(5, 80)] * 290, {**AUTO, "budget_minutes": 10}

    fast, slow = (view.choose(images, usual, params, cores=2, px_per_core_s=px) for px in (1_600_000, 200_000))

    assert (fast.width, slow.width) == (544, 320)


def test_view_learned_from_windows_does_not_grow_with_the_time():
    images, small = [(1024, 768)] * 9, [boxes(5, 24)] * 9

    assert view.choose(images, small, {**AUTO, "budget_minutes": 600}, cores=2) == view.choose(images, small, AUTO)


def test_view_takes_what_a_person_chose():
    seen = view.choose([(1024, 768)], [boxes(5, 24)], {**AUTO, "width": 320, "resize": "letterbox", "strides": "8"})

    assert (seen.width, seen.height, seen.resize, seen.strides) == (320, 240, "letterbox", (8,))
    assert not seen.windowed


def test_view_of_large_things_looks_on_a_coarser_map_too():
    assert view.choose([(640, 640)], [boxes(4, 400)], AUTO).strides == (8, 16, 32)


@pytest.fixture
def symbols(tmp_path):
    """The task on a few pictures with small symbols, upright and lying."""
    version = versions.symbols(tmp_path / "symbols", train=6, val=2)
    job = run.Run.from_environment({"AIP_DATASET_DIR": str(version), "AIP_CACHE_DIR": str(tmp_path / "cache")})
    params = detect_card.CARD.read({"architecture": "lite0-scratch", "budget_minutes": 0, "steps": 1})
    return detect.Detection(job, params, Ranks(0, 1, torch.device("cpu")))


def test_detection_windows_show_objects_where_their_boxes_say(symbols):
    assert symbols.view.resize == "letterbox"
    assert symbols.view.windowed
    pixels, found, _classes, valid = symbols.load([0, 1, 2, 3])
    pixels[:] = image_cache.GREY_FILL
    for image, (own, real) in enumerate(zip(found, valid, strict=True)):
        for x0, y0, x1, y1 in own[real].round().int().tolist():
            pixels[image, y0:y1, x0:x1] = 255  # objects are white, all else is grey
    draws = symbols.draw(torch.Generator().manual_seed(0), 4)
    draws["light"] = torch.ones(4, 2)
    draws["aim"] = torch.zeros(4)  # all look at an object

    sight = warp.Warp.from_draws(draws, symbols.view, found, valid)
    seen, (moved, shown) = sight.images(pixels), sight.boxes(found, valid)

    assert seen.shape[-2:] == (320, 320)
    assert shown.any(1).all()  # none looks at nothing
    for image, box in zip(*(part.tolist() for part in shown.nonzero().T), strict=True):
        x0, y0, x1, y1 = moved[image, box].round().int().tolist()
        assert float(seen[image, :, (y0 + y1) // 2, (x0 + x1) // 2].mean()) > 0.9


def test_detection_scores_and_answers_in_pixels_of_letterboxed_images(symbols):
    for row in symbols.score:
        image, own = symbols.version.images[row], symbols.truth[row][0]
        assert np.allclose(symbols.view.to_image(image, symbols.view.to_input(image, own)), own, atol=0.1)
    answering = symbols.answering(symbols.model)
    places, _scores = answering(symbols.images(symbols.score[:1]))
    assert places.shape[1] == len(symbols.places)


@pytest.mark.parametrize("size", [(1, 5_000), (5_000, 1), (1, 1)])
def test_image_however_narrow_has_a_margin_and_is_seen_between_it(tmp_path, size):
    Image.new("RGB", size, (255, 0, 0)).save(tmp_path / "narrow.png")

    pixels = image_cache.pixels(tmp_path / "narrow.png", 64, 32, 3, "letterbox")

    rows, columns = np.nonzero((pixels == (255, 0, 0)).all(2))
    _, left, top = image_cache.letterbox(*size, 64, 32)
    assert (columns.min(), rows.min()) == (left, top)
    assert (np.ptp(columns) + 1, np.ptp(rows) + 1) == image_cache.fitted(*size, 64, 32)
