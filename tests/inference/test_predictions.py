"""Predictions: the real program on many small pictures, what a kill changes (nothing), several machines, sources."""

import csv
import io
import json
import signal
import subprocess
import time

import pytest
from django.test import RequestFactory
from django.utils.timezone import now

from inference.batch import exports, results
from inference.batch.kind import PredictionKind
from tests.factories import models as factory
from tests.inference import judged, predicted, versions
from tests.inference.running import bring
from workers.models import Attempt

pytestmark = pytest.mark.django_db


@pytest.fixture
def model(alice, tmp_path):
    return factory.model_version(alice, tmp_path)


@pytest.fixture
def data(alice, tmp_path):
    return judged.dataset_version(alice, tmp_path / "data")


def many(alice, tmp_path, count: int = 300):
    """A version of so many pictures."""
    made = versions.detection(tmp_path / "many", images=count)
    return judged.dataset_version(alice, tmp_path / "many", made=made)


def again(prediction, number: int, state: str = "lost"):
    """A further attempt of its job, as the queue makes one."""
    Attempt.objects.filter(job=prediction.job, ended_at=None).update(state=state, ended_at=now())
    Attempt.objects.create(job=prediction.job, number=number)
    type(prediction.job).objects.filter(pk=prediction.job_id).update(attempt_number=number)
    prediction.job.refresh_from_db()


def test_pictures_of_a_version_are_answered(alice, model, data):
    prediction = predicted.submitted(alice, model, data)

    said = predicted.ran(prediction)

    assert prediction.job.state == "succeeded", said
    lines = predicted.answers(prediction)
    assert [line["path"] for line in lines] == [f"{number:03d}.png" for number in range(1, 7)]
    assert prediction.summary["done"] == prediction.total == 6
    assert prediction.summary["complete"]
    assert prediction.summary["predictions"] == sum(len(line["predictions"]) for line in lines) > 6


def test_killed_prediction_goes_on_and_answers_each_picture_once(alice, model, tmp_path):
    data = many(alice, tmp_path)
    whole, broken = predicted.submitted(alice, model, data), predicted.submitted(alice, model, data)
    predicted.ran(whole)
    bring(broken.job, "running")
    argv, env, run = predicted.program(broken)
    process = subprocess.Popen(argv, cwd=run.code, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while len(predicted.chunks_of(run)) < 2 and time.monotonic() < until:
        time.sleep(0.002)  # pause: until it has written two chunks
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = len(predicted.chunks_of(run))
    again(broken, 2)
    argv, env, run = predicted.program(broken, 2)

    done = subprocess.run(argv, cwd=run.code, env=env, capture_output=True, text=True, timeout=240, check=False)
    PredictionKind().ended(broken.job, broken.job.attempts.get(number=2))
    broken.refresh_from_db()

    assert done.returncode == 0, done.stdout + done.stderr
    assert 2 <= kept < 5
    assert f"Going on after {kept} chunks" in done.stdout
    assert f"Answering {5 - kept} chunks" in done.stdout
    assert predicted.answers(broken) == predicted.answers(whole)
    assert [line["n"] for line in predicted.answers(broken)] == list(range(300))
    assert results.load(broken)["predictions"] == whole.summary["predictions"]


def taken(prediction, form: str) -> bytes:
    """A download of it."""
    return b"".join(exports.send(RequestFactory().get("/"), prediction, form).streaming_content)


def test_downloads_hold_what_was_answered(alice, model, data):
    prediction = predicted.submitted(alice, model, data)
    predicted.ran(prediction)
    lines = predicted.answers(prediction)
    every = [one for line in lines for one in line["predictions"]]

    rows = list(csv.DictReader(io.StringIO(taken(prediction, "csv").decode("utf-8-sig"))))
    coco = json.loads(taken(prediction, "coco"))
    again = [json.loads(line) for line in taken(prediction, "jsonl").splitlines()]

    assert [row["path"] for row in rows] == [line["path"] for line in lines for _ in line["predictions"]]
    assert [float(row["score"]) for row in rows] == [one["score"] for one in every]
    assert [[float(row[side]) for side in ("x1", "y1", "x2", "y2")] for row in rows] == [one["box"] for one in every]
    assert [image["file_name"] for image in coco["images"]] == [line["path"] for line in lines]
    assert [found["category_id"] for found in coco["annotations"]] == [one["class_id"] for one in every]
    x1, y1, x2, y2 = every[0]["box"]
    assert coco["annotations"][0]["bbox"] == [x1, y1, x2 - x1, y2 - y1]
    assert again == lines
