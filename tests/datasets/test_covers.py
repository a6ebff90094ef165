"""Covers of the dataset list: one image for all rows, of what the reader may see."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from datasets.models import Asset
from tests.factories import datasets as make

pytestmark = pytest.mark.django_db


def test_covers_are_one_image_of_those_that_the_reader_may_see(as_alice, as_bob, client, alice, bob):
    red, green = (Image.new("RGB", size, color) for size, color in (((600, 300), "red"), ((20, 40), "green")))
    mine = make.version(make.dataset(alice, "mine"), images=2)
    public = make.version(make.dataset(bob, "public", visibility="public"))
    first, second = mine.assets.order_by("pk")
    for asset, image in ((first, red), (second, green)):
        image.save(asset.version.images_path / asset.path, "PNG")
        Asset.objects.filter(pk=asset.pk).update(width=image.width, height=image.height)
    lost = public.assets.first()
    (public.images_path / lost.path).unlink()
    where = f"/datasets/covers/?of={first.pk},{second.pk},{lost.pk}"

    answer, theirs = as_alice.get(where), as_bob.get(where)
    again = as_alice.get(where, headers={"If-None-Match": answer.headers["ETag"]})

    def colors(content: bytes) -> list[str]:
        names = {(255, 0): "red", (0, 128): "green"}
        with Image.open(io.BytesIO(content)) as opened:
            assert (opened.format, opened.size) == ("WEBP", (112, 252))
            tiles = [opened.convert("RGBA").getpixel((56, 42 + 84 * number)) for number in range(3)]
        close = {(r, g): min(names, key=lambda at: abs(at[0] - r) + abs(at[1] - g)) for r, g, _b, _a in tiles}
        return [names[close[tile[0], tile[1]]] if tile[3] else "empty" for tile in tiles]

    assert colors(answer.content) == ["red", "green", "empty"]
    assert colors(theirs.content) == ["empty", "empty", "empty"]
    assert (again.status_code, again.content) == (304, b"")
    assert theirs.headers["ETag"] != answer.headers["ETag"]
    assert {"Cookie", "Authorization"} <= set(answer.headers["Vary"].split(", "))
    assert client.get(where).url.startswith("/login/")


@pytest.mark.parametrize(
    "given", ["", "?of=", "?of=1,", "?of=x", "?of=-1", "?of=" + "9" * 30, "?of=" + "1," * 100 + "1"]
)
def test_covers_of_no_list_of_images_are_not_found(as_alice, given):
    assert as_alice.get(f"/datasets/covers/{given}").status_code == 404
