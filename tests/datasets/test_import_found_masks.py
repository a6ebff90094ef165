"""Layouts and contents of masks that other tools write: a mask is never taken for an image or a class in silence."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from datasets.formats import detect
from tests.cases import case_table
from tests.datasets.pictures import picture, put
from tests.datasets.read_folders import codes, fitted, mask_png, photo, read_folder, said, two_objects


@pytest.mark.parametrize("dtype", [np.uint16, np.uint8])
def test_masks_of_16_bits_are_masks(tmp_path, dtype):
    pixels = two_objects(dtype) * dtype(100)
    put(tmp_path, {"images/a.jpg": picture(kind="JPEG"), "masks/a.png": mask_png(pixels)})

    parsed = read_folder(tmp_path)

    assert (parsed.format, said(parsed)) == ("masks", {"a.jpg": (True, 2)})


@case_table(
    ("files", "images"),
    [
        ({"1/images/1.png": "photo", "1/masks/f3.png": 1, "1/masks/e4.png": 2,
          "2/images/2.png": "photo", "2/masks/d5.png": 1}, {"1/images/1.png": 2, "2/images/2.png": 1}),
        ({"img/x_leftImg8bit.png": "photo", "gt/x_gtFine_labelIds.png": 0, "gt/x_gtFine_color.png": 0,
          "gt/x_gtFine_instanceIds.png": 0}, {"x_leftImg8bit.png": 2}),
        ({"1_sat.jpg": "photo", "1_mask.png": 0}, {"1_sat.jpg": 2}),
    ],
)  # fmt: skip
def test_masks_in_a_folder_per_image_and_with_affixes_of_both_are_found(tmp_path, files, images):
    for name, what in files.items():
        pixels = two_objects()
        put(tmp_path, {name: photo() if what == "photo" else mask_png(np.where(pixels == what, 255, 0).astype(np.uint8))
                       if what else mask_png(pixels)})  # fmt: skip

    parsed = read_folder(tmp_path)

    assert (parsed.format, said(parsed)) == ("masks", {name: (True, count) for name, count in images.items()})


def test_one_damaged_mask_does_not_make_the_others_images(tmp_path):
    put(tmp_path, {f"images/{name}.png": photo() for name in "ab"})
    put(tmp_path, {"masks/a.png": mask_png(two_objects())[:60], "masks/b.png": mask_png(two_objects())})

    parsed = read_folder(tmp_path)

    assert (said(parsed), codes(parsed)) == ({"a.png": (False, 0), "b.png": (True, 2)}, {"bad_mask_image": 1})


def soft() -> np.ndarray:
    image = Image.fromarray(np.kron(two_objects() > 0, np.full((3, 3), 255)).astype(np.uint8))
    return np.asarray(image.resize((60, 45), Image.Resampling.BILINEAR).resize((120, 90), Image.Resampling.BILINEAR))


@pytest.mark.parametrize("pixels", [soft(), np.random.default_rng(1).integers(0, 90, (90, 120)).astype(np.uint8)])
def test_masks_with_smoothed_edges_or_noise_are_not_split_into_classes(tmp_path, pixels):
    put(tmp_path, {"images/a.png": photo(120, 90), "masks/a.png": mask_png(pixels)})

    parsed = read_folder(tmp_path)

    assert (said(parsed), codes(parsed)) == ({"a.png": (False, 0)}, {"bad_mask_image": 1})
    assert detect.is_unlabelled(parsed)


def test_a_mask_of_another_size_than_its_image_is_skipped(tmp_path):
    put(tmp_path, {"images/a.png": photo(80, 60), "masks/a.png": mask_png(two_objects())})

    parsed = fitted(read_folder(tmp_path), 80, 60)

    assert (said(parsed), codes(parsed), parsed.problems.skipped) == ({"a.png": (False, 0)}, {"mask_size": 2}, 2)


def test_jpeg_masks_are_no_class_and_a_user_decides(tmp_path):
    out = io.BytesIO()
    Image.fromarray(soft()).save(out, "JPEG")
    put(tmp_path, {"images/a.png": photo(120, 90), "masks/a.jpg": out.getvalue()})

    parsed = read_folder(tmp_path)

    assert (parsed.format, codes(parsed)) == ("images", {"unsure_masks": 1})
