"""Media of a job by the API: listed, paged, and each file with a type that no browser runs."""

import io
import struct
import time
import zlib

import pytest
from PIL import Image

from tests.factories import work
from workers.jobs.output import media
from workers.jobs.output.reporting import pictures
from workers.jobs.output.reporting.harvest import Shown

pytestmark = pytest.mark.django_db


def png(colour="red", size=(8, 4)):
    made = io.BytesIO()
    Image.new("RGB", size, colour).save(made, "PNG")
    return made.getvalue()


def show(job, *shown):
    media.save(media.prepare(job.attempts.get(), shown))


def image(name, step, data=None):
    return Shown("image", name, step, time.time(), {}, data or png())


@pytest.fixture
def job(alice, cluster):
    made = work.job(alice, cluster, state="running")
    show(
        made,
        *(image("samples", step) for step in (1, 2, 3)),
        Shown("text", "notes", 5, time.time(), {"text": "hello", "cut": False}),
    )
    return made


def test_media_api_lists_by_kind_name_and_step_in_pages(api, job):
    address = f"/api/v1/jobs/{job.pk}/media/"

    first = api.get(f"{address}?kind=image&limit=2").json()
    second = api.get(first["next"]).json()
    one = api.get(f"{address}?name=samples&step=2").json()["results"]
    text = api.get(f"{address}?kind=text").json()["results"]

    assert [row["step"] for row in first["results"] + second["results"]] == [1, 2, 3]
    assert [(row["step"], row["facts"]) for row in one] == [(2, {"width": 8, "height": 4})]
    assert (text[0]["facts"]["text"], text[0]["file_url"]) == ("hello", None)
    assert api.get(f"{address}?kind=sound").json()["code"] == "invalid"


def test_media_api_names_series_and_what_was_not_kept(api, job):
    job.attempts.get().report_files.create(path="outputs/e", missed={"not_finite": 3, "of_tomorrow": 1})

    found = api.get(f"/api/v1/jobs/{job.pk}/media/series/").json()

    assert [(row["kind"], row["name"], row["steps"], row["last_step"]) for row in found["series"]] == [
        ("image", "samples", 3, 3), ("text", "notes", 1, 5),
    ]  # fmt: skip
    assert [note["message"]["code"] for note in found["notes"]] == ["report_file.not_finite"]
    assert found["notes"][0]["sentence"].startswith("3 values")


def test_media_api_sends_images_as_images_that_cannot_be_anything_else(api, job):
    row = api.get(f"/api/v1/jobs/{job.pk}/media/?kind=image").json()["results"][0]

    answer = api.get(row["file_url"])

    assert (answer["Content-Type"], answer["X-Content-Type-Options"]) == ("image/png", "nosniff")
    assert "sandbox" in answer["Content-Security-Policy"]
    assert Image.open(io.BytesIO(b"".join(answer.streaming_content))).size == (8, 4)


def test_media_api_keeps_media_of_others_to_themselves(api, as_bob, as_anna, job, bob, cluster):
    item = media.items_of(job).first()
    other = work.job(bob, cluster, state="running")

    for rest in ("", "series/", f"{item.pk}/file/"):
        assert as_bob.get(f"/api/v1/jobs/{job.pk}/media/{rest}").status_code == 404
        assert as_anna.get(f"/api/v1/jobs/{job.pk}/media/{rest}").status_code in (403, 404)
    assert api.get(f"/api/v1/jobs/{other.pk}/media/").status_code == 404
    assert as_bob.get(f"/api/v1/jobs/{other.pk}/media/{item.pk}/file/").status_code == 404


@pytest.mark.parametrize(
    "data", [b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"<html>", b"", b"\x89PNG\r\n\x1a\n" + b"x" * 50, b"GIF8"]
)
def test_media_takes_nothing_for_an_image_that_is_none(job, data):
    kept = media.prepare(job.attempts.get(), [Shown("image", "bad", 1, 0.0, {}, data or b"\0")])

    assert (kept.made, kept.nameless) == ([], 1)


def png_header(width, height):
    """Return the begin of a PNG that declares its size and has no pixels."""
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))


@pytest.mark.parametrize("size", [(30_000, 30_000), (6000, 4001)])  # beyond the limits of Pillow and of the platform
def test_media_refuses_an_image_that_is_a_bomb_before_decoding_it(job, size, monkeypatch):
    monkeypatch.setattr(pictures, "_plain", lambda image: pytest.fail("The image is decoded."))
    bomb = png_header(*size) + png()[33:]

    assert media.prepare(job.attempts.get(), [image("bomb", 1, bomb)]).nameless == 1


def test_media_of_a_long_series_are_spread_over_all_of_it(job):
    for begin in range(0, 400, 50):
        show(job, *(Shown("text", "log", step, 1.7e9, {"text": str(step)}) for step in range(begin, begin + 50)))

    series = media.series_of(job).get(name="log")
    steps = list(media.items_of(job).filter(series=series).values_list("step", flat=True))
    assert (series.seen, series.stride) == (400, 4)
    assert steps == list(range(0, 400, 4))


def test_media_keep_within_their_bounds(job, monkeypatch):
    monkeypatch.setattr(media, "MAX_BYTES", 300)
    show(job, image("samples", 9), *(image("samples", step) for step in range(10, 15)))

    series = media.series_of(job).get(name="samples")
    assert series.refused > 0
    assert sum(row.size_bytes for row in media.items_of(job)) <= 300


def test_media_of_a_step_that_comes_again_replaces_the_first(job, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        show(job, image("samples", 2, png("blue")))

    item = media.items_of(job).get(series__name="samples", step=2)
    lying = {path.name for path in media.folder(job.pk, 1).iterdir()}
    assert lying == {row.file for row in media.items_of(job) if row.file}
    with open(media.open_file(item), "rb") as file:
        assert Image.open(file).getpixel((0, 0)) == (0, 0, 255)
