"""Photos of phones: read where pillow-heif is installed, as `pip install pillow-heif` does, else named."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from tests.datasets.helpers import imported, zipped
from tests.datasets.pictures import picture
from tests.factories import datasets as make

pillow_heif = pytest.importorskip("pillow_heif", reason="needs pillow-heif, which is not installed by default")
pytestmark = pytest.mark.django_db

RED, BLUE = (220, 30, 30), (30, 30, 220)


def photo(orientation: int) -> bytes:
    """A lying HEIC of 64 × 48 pixels, red on the left, blue on the right, whose EXIF says how it is held."""
    image = Image.new("RGB", (64, 48), RED)
    image.paste(BLUE, (32, 0, 64, 48))
    exif = Image.Exif()
    exif[0x0112] = orientation
    out = io.BytesIO()
    image.save(out, "HEIF", quality=90, exif=exif.tobytes())
    return out.getvalue()


@pytest.mark.parametrize(
    ("orientation", "size", "top_left"), [(1, (64, 48), RED), (6, (48, 64), RED), (8, (48, 64), BLUE)]
)
def test_dataset_import_reads_a_phones_heic_photo_upright(alice, orientation, size, top_left):
    row = imported(make.dataset(alice), zipped({"a.HEIC": photo(orientation), "b.png": picture()}), annotated=False)

    asset = row.version.assets.get(path="a.png")
    assert (asset.width, asset.height) == size
    with Image.open(row.version.images_path / asset.path) as kept:
        assert (kept.format, kept.size) == ("PNG", size)
        assert kept.convert("RGB").getpixel((4, 4)) == pytest.approx(top_left, abs=25)
    assert {group["code"]: group["count"] for group in row.report["groups"]} == {"stored_as_png": 1}
