"""What the SDK's image, table, histogram, text and embedding write is what the platform shows."""

import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from tests.factories import work
from training.programs import workdir
from workers.jobs.output import media
from workers.jobs.output import report_ingestion as reporting

pytestmark = pytest.mark.django_db


@pytest.fixture
def running(alice, cluster):
    job = work.job(alice, cluster, state="running")
    work.run_dir(job).outputs.mkdir()
    workdir.populate(work.run_dir(job), None)
    return job


def run(job, script, **env):
    """Run a script with the SDK beside it, as a job does, and take in what it left."""
    place = work.run_dir(job)
    told = {"AIP_METRICS_FILE": str(place.metrics), "AIP_OUTPUT_DIR": str(place.outputs), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-c", script], check=False, cwd=place.code, env=told | env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    reporting.ingest(job.attempts.get())
    return done.stdout


def item(job, kind):
    return media.items_of(job).get(series__kind=kind)


def content(found):
    with open(media.open_file(found), "rb") as file:
        return file.read()


def test_sdk_image_takes_arrays_tensors_lists_and_files(running):
    run(running, """
import numpy, torch
from aip import image
image("floats", numpy.full((8, 6, 3), 0.5), 1)
image("colours first", torch.zeros(3, 20, 10), 2)
image("grey", [[0, 255], [255, 0]], 3)
image("large", numpy.zeros((3000, 2000), "uint8"), 4)
from PIL import Image
Image.new("RGB", (9, 4), "red").save("red.png")
image("file", "red.png", 5)
""")  # fmt: skip

    sizes = {
        each.series.name: (each.step, each.facts["width"], each.facts["height"]) for each in media.items_of(running)
    }
    assert sizes == {
        "floats": (1, 6, 8), "colours first": (2, 10, 20), "grey": (3, 2, 2), "large": (4, 667, 1000),
        "file": (5, 9, 4),
    }  # fmt: skip
    floats = Image.open(io.BytesIO(content(media.items_of(running).get(series__name="floats"))))
    assert floats.convert("RGB").getpixel((2, 2)) == (128, 128, 128)


def test_sdk_histogram_table_and_text_arrive_as_they_were_given(running):
    run(running, """
import numpy
from aip import histogram, table, text
histogram("weights", numpy.arange(1000.0), 5)
histogram("few", [1, 2, 2, float("nan")], 5)
table("worst", ["file", "loss"], [["a.png", 0.5], ["b.png", float("inf")]], 6)
text("notes", "# So it goes", 7)
""")  # fmt: skip

    weights = media.items_of(running).get(series__name="weights")
    few = media.items_of(running).get(series__name="few")
    assert (weights.facts["low"], weights.facts["high"], weights.facts["total"]) == (0, 999, 1000)
    assert weights.facts["bands"][4] == pytest.approx(499.5, abs=3)
    assert (few.facts["low"], few.facts["high"], few.facts["total"]) == (1, 2, 3)
    assert json.loads(content(item(running, "table"))) == {
        "columns": ["file", "loss"], "rows": [["a.png", 0.5], ["b.png", "inf"]],
    }  # fmt: skip
    assert (item(running, "text").step, item(running, "text").facts["text"]) == (7, "# So it goes")


def test_sdk_embedding_shows_the_plane_in_which_vectors_differ_most(running):
    run(running, """
import numpy
from aip import embedding
rows = numpy.random.default_rng(1).normal(size=(200, 40)) * numpy.array([9, 5] + [0.1] * 38)
embedding("last layer", rows, ["cat"] * 100 + ["dog"] * 100, 3)
""")  # fmt: skip

    found = item(running, "vectors")
    points = json.loads(content(found))
    rows = np.random.default_rng(1).normal(size=(200, 40)) * np.array([9, 5] + [0.1] * 38)
    rows = rows.astype("float32") - rows.mean(axis=0)
    values = np.linalg.svd(rows, compute_uv=False) ** 2
    assert found.facts["shares"] == pytest.approx((values / values.sum())[:2], abs=1e-3)
    assert (len(points["points"]), points["labels"][150]) == (200, "dog")


def test_sdk_media_never_end_a_program_and_say_what_was_not_kept(running):
    said = run(running, """
import numpy
from aip import embedding, histogram, image, table
image("none", numpy.zeros((2, 2, 2, 2)), 1)
image("missing", "nowhere.png", 1)
image("no image", __file__ if "__file__" in globals() else "aip/run.py", 1)
histogram("empty", [], 1)
embedding("ragged", [[1, 2], [3]], [], 1)
table("no rows", ["a"], None, 1)
""")  # fmt: skip

    assert said.count("was not kept") == 6
    assert not media.items_of(running).exists()


def test_sdk_media_only_print_outside_a_job(running, tmp_path):
    said = run(running, "from aip import text\ntext('notes', 'hello', 4)", AIP_METRICS_FILE="")

    assert said == "text 'notes' at step 4: 5 bytes\n"
    assert not (work.run_dir(running).outputs / "aip-media").exists()
