"""`aip jobs media` against the real API."""

from __future__ import annotations

import io
import json
import time

import pytest
from PIL import Image

from tests.factories import work
from workers.jobs.output import media
from workers.jobs.output.reporting.harvest import Shown

pytestmark = pytest.mark.django_db


def png() -> bytes:
    made = io.BytesIO()
    Image.new("RGB", (8, 4), "red").save(made, "PNG")
    return made.getvalue()


@pytest.fixture
def job(alice, cluster):
    made = work.job(alice, cluster, state="running")
    shown = [Shown("image", "val/samples", step, time.time(), {}, png()) for step in (1, 2)]
    shown.append(Shown("text", "../notes", 5, time.time(), {"text": "hello", "cut": False}))
    shown.append(Shown("table", "worst", 5, time.time(), {}, json.dumps({"rows": [[1]]}).encode()))
    media.save(media.prepare(made.attempts.get(), shown))
    return made


def test_cli_lists_what_a_job_showed(real_aip, alice, job, capfd):
    job.attempts.get().report_files.create(path="outputs/e", missed={"not_finite": 3})

    assert real_aip(alice, "jobs", "media", job.pk) == 0
    assert real_aip(alice, "jobs", "media", job.pk, "--kind", "text") == 0

    printed = capfd.readouterr()
    assert "val/samples" in printed.out
    assert printed.out.count("../notes") == 2
    assert "3 values" in printed.out + printed.err


def test_cli_brings_media_once_and_under_names_that_stay_in_the_folder(real_aip, alice, job, tmp_path, capfd):
    folder = tmp_path / "media"

    assert real_aip(alice, "jobs", "media", job.pk, "--to", folder) == 0
    assert real_aip(alice, "jobs", "media", job.pk, "--to", folder) == 0

    files = {path.relative_to(folder).parent.as_posix(): path for path in folder.rglob("*.*") if path.is_file()}
    printed = capfd.readouterr()
    assert set(files) == {"image/val/samples", "text/_/notes", "table/worst"}
    with Image.open(files["image/val/samples"]) as image:
        assert image.size == (8, 4)
    assert files["text/_/notes"].read_text() == "hello"
    assert json.loads(files["table/worst"].read_text()) == {"rows": [[1]]}
    assert "4 of 4 in" in printed.out + printed.err
    assert "0 of 4 in" in printed.out + printed.err


def test_cli_brings_one_step_of_one_series(real_aip, alice, bob, job, tmp_path, capfd):
    chosen = ("--kind", "image", "--name", "val/samples", "--step", 2, "--to", tmp_path / "one")

    assert real_aip(alice, "jobs", "media", job.pk, *chosen) == 0
    assert real_aip(bob, "jobs", "media", job.pk, *chosen) == 5

    (file,) = [path for path in (tmp_path / "one").rglob("*") if path.is_file()]
    assert file.name.startswith("00000002-")
    assert file.suffix == ".png"
