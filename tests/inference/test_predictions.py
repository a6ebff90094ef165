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

from aiplatform import env
from aiplatform.lib.errors import DomainError, StillInUse
from datasets.services import server_paths, usage
from inference.batch import exports, presentation, results, sources
from inference.batch.kind import PredictionKind
from inference.batch.models import Prediction
from inference.registry import prediction_shapes, retention
from inference.registry import registration as registry
from tests.factories import models as factory
from tests.inference import judged, predicted, tiny, versions
from tests.inference.running import set_state
from tests.long_form import first
from workers.core.models import Attempt

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


def taken(prediction, form: str) -> bytes:
    """A download of it."""
    return b"".join(exports.send(RequestFactory().get("/"), prediction, form).streaming_content)


def test_pictures_of_a_version_are_answered(alice, model, data):
    prediction = predicted.submitted(alice, model, data)

    output = predicted.ran(prediction)

    assert prediction.job.state == "succeeded", output
    lines = predicted.answers(prediction)
    assert [line["path"] for line in lines] == [f"{number:03d}.png" for number in range(1, 7)]
    assert prediction.summary["done"] == prediction.total == 6
    assert prediction.summary["complete"]
    assert prediction.summary["predictions"] == sum(len(line["predictions"]) for line in lines) > 6


def test_killed_prediction_goes_on_and_answers_each_picture_once(alice, model, tmp_path):
    data = many(alice, tmp_path)
    complete, broken = predicted.submitted(alice, model, data), predicted.submitted(alice, model, data)
    predicted.ran(complete)
    set_state(broken.job, "running")
    argv, env, run = predicted.program(broken)
    process = subprocess.Popen(argv, cwd=run.code, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while len(predicted.chunks_of(run)) < 2 and time.monotonic() < until:
        time.sleep(0.002)  # pause: until it has written two chunks
    process.send_signal(signal.SIGKILL)
    process.wait()
    count = len(predicted.chunks_of(run))
    again(broken, 2)
    argv, env, run = predicted.program(broken, 2)

    done = subprocess.run(argv, cwd=run.code, env=env, capture_output=True, text=True, timeout=240, check=False)
    PredictionKind().ended(broken.job, broken.job.attempts.get(number=2))
    broken.refresh_from_db()

    assert done.returncode == 0, done.stdout + done.stderr
    assert 2 <= count < 5
    assert f"Going on after {count} chunks" in done.stdout
    assert f"Answering {5 - count} chunks" in done.stdout
    assert predicted.answers(broken) == predicted.answers(complete)
    assert [line["n"] for line in predicted.answers(broken)] == list(range(300))
    assert results.load(broken)["predictions"] == complete.summary["predictions"]


def test_downloads_hold_what_was_answered(alice, model, data):
    prediction = predicted.submitted(alice, model, data)
    predicted.ran(prediction)
    lines = predicted.answers(prediction)
    every = [row_ for line in lines for row_ in line["predictions"]]

    rows = list(csv.DictReader(io.StringIO(taken(prediction, "csv").decode("utf-8-sig"))))
    coco = json.loads(taken(prediction, "coco"))
    again = [json.loads(line) for line in taken(prediction, "jsonl").splitlines()]

    assert [row["path"] for row in rows] == [line["path"] for line in lines for _ in line["predictions"]]
    assert [float(row["score"]) for row in rows] == [row_["score"] for row_ in every]
    assert [[float(row[side]) for side in ("x1", "y1", "x2", "y2")] for row in rows] == [row_["box"] for row_ in every]
    assert [image["file_name"] for image in coco["images"]] == [line["path"] for line in lines]
    assert [annotation["category_id"] for annotation in coco["annotations"]] == [row_["class_id"] for row_ in every]
    x1, y1, x2, y2 = every[0]["box"]
    assert coco["annotations"][0]["bbox"] == [x1, y1, x2 - x1, y2 - y1]
    assert again == lines


@pytest.mark.parametrize(
    "task", first(2, ["detection", "classification", "segmentation", "keypoints", "embedding", "instances", "tagging"])
)
def test_answers_are_those_of_a_service(alice, data, tmp_path, task):
    model = factory.model_version(alice, tmp_path, name=f"net_{task}", task=task)
    prediction = predicted.submitted(alice, model, data, score_threshold=0.2, max_detections=7, batch=4)

    output = predicted.ran(prediction)

    lines = predicted.answers(prediction)
    sent = [(data.images_path / line["path"]).read_bytes() for line in lines]
    assert len(lines) == 6, output
    wanted = predicted.served(model.path, sent, score_threshold=0.2, max_detections=7)
    assert [line["predictions"] for line in lines] == wanted
    assert len(presentation.build_context(prediction)["cards"]) == 6
    assert taken(prediction, "csv").count(b"\n") == 1 + sum(map(len, wanted))
    if prediction_shapes.draft_of(task) == "detection":
        coco = json.loads(taken(prediction, "coco"))
        assert {annotation["image_id"] for annotation in coco["annotations"]} <= {
            image["id"] for image in coco["images"]
        }
        assert coco["annotations"]
    else:
        with pytest.raises(exports.NoPlaces):
            taken(prediction, "coco")


def test_tiles_of_large_pictures_are_answered_as_a_service_does(alice, data, tmp_path):
    made = tiny.detector(tmp_path / "tiled")
    description = json.loads((made / "model.json").read_text())
    description["input"]["tile"] = {"overlap": 0.25}
    (made / "model.json").write_text(json.dumps(description))
    archive = factory.zipped(made, tmp_path / "tiled.zip")
    model = registry.register_upload(user=alice, archive=archive, filename=archive.name, name="tiled")
    prediction = predicted.submitted(alice, model, data)

    output = predicted.ran(prediction)

    lines = predicted.answers(prediction)
    assert len(lines) == 6, output
    sent = [(data.images_path / line["path"]).read_bytes() for line in lines]
    assert [line["predictions"] for line in lines] == predicted.served(model.path, sent)


@pytest.mark.long
def test_machines_of_one_job_share_the_chunks(alice, model, tmp_path):
    data = many(alice, tmp_path)
    alone, together = predicted.submitted(alice, model, data), predicted.submitted(alice, model, data, nodes=3)
    predicted.ran(alone)
    set_state(together.job, "running")
    begun = []
    for rank in range(3):
        argv, env, run = predicted.program(together, AIP_NODE_RANK=str(rank), AIP_NODES="3")
        env |= {"AIP_CONTROL_FILE": str(run.path / f"control-{rank}")}
        begun.append(subprocess.Popen(argv, cwd=run.code, env=env, stdout=subprocess.PIPE, text=True))
    try:
        outputs = [process.communicate(timeout=240)[0] for process in begun]
    finally:
        for process in begun:
            process.kill()
    PredictionKind().ended(together.job, together.job.attempts.get())
    together.refresh_from_db()

    assert [process.returncode for process in begun] == [0, 0, 0], outputs
    assert ["Answering 2 chunks" in text for text in outputs] == [True, True, False]
    assert "Answering 1 chunks" in outputs[2]
    assert predicted.answers(together) == predicted.answers(alone)
    assert together.summary["done"] == 300
    assert together.summary["complete"]
    assert together.summary["predictions"] == alone.summary["predictions"]


@pytest.mark.long
def test_suspended_prediction_leaves_a_checkpoint_and_goes_on(alice, model, tmp_path):
    prediction = predicted.submitted(alice, model, many(alice, tmp_path))
    set_state(prediction.job, "running")
    argv, env, run = predicted.program(prediction)
    process = subprocess.Popen(argv, cwd=run.code, env=env, stdout=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while not predicted.chunks_of(run) and time.monotonic() < until:
        time.sleep(0.002)  # pause: until it has written a chunk
    (run.path / "control").write_text("suspend")
    code = process.wait(60)
    checkpoint = (run.checkpoints / "latest").resolve()
    again(prediction, 2, "preempted")
    argv, env, run = predicted.program(prediction, 2, AIP_RESUME_FROM=str(checkpoint))

    done = subprocess.run(argv, cwd=run.code, env=env, capture_output=True, text=True, timeout=120, check=False)
    PredictionKind().ended(prediction.job, prediction.job.attempts.get(number=2))
    prediction.refresh_from_db()

    assert (code, done.returncode) == (75, 0)
    assert (checkpoint / "meta.json").exists()
    assert "Going on after" in done.stdout
    assert [line["n"] for line in predicted.answers(prediction)] == list(range(300))


def test_finished_early_keeps_whole_chunks(alice, model, tmp_path):
    prediction = predicted.submitted(alice, model, many(alice, tmp_path))
    set_state(prediction.job, "running")
    argv, env, run = predicted.program(prediction)
    (run.path / "control").write_text("finish")

    code = subprocess.run(argv, cwd=run.code, env=env, stdout=subprocess.DEVNULL, check=False).returncode
    PredictionKind().ended(prediction.job, prediction.job.attempts.get())
    prediction.refresh_from_db()

    assert code == 0
    assert (prediction.summary["done"], prediction.summary["complete"]) == (64, False)
    assert len(predicted.answers(prediction)) == 64


def test_pictures_that_cannot_be_read_are_counted_and_named(alice, model, data):
    images = data.images_path
    (images / "002.png").write_bytes(b"no picture")
    (images / "003.png").unlink()
    (images / "004.png").unlink()
    (images / "004.png").symlink_to("/etc/hostname")
    prediction = predicted.submitted(alice, model, data)

    output = predicted.ran(prediction)

    assert prediction.job.state == "succeeded", output
    assert (prediction.summary["done"], prediction.summary["broken"]) == (6, 3)
    assert [(row["path"], row["code"]) for row in results.load(prediction)["left_out"]] == [
        ("002.png", "unreadable"), ("003.png", "missing"), ("004.png", "not_a_file"),
    ]  # fmt: skip
    assert len(presentation.build_context(prediction)["cards"]) == 3
    assert len(json.loads(taken(prediction, "coco"))["images"]) == 3


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """A folder that may be answered, with pictures, other files, and a link that leads out of it."""
    made = versions.detection(tmp_path / "made", images=3)
    root = tmp_path / "shelf"
    (root / "deep").mkdir(parents=True)
    for number, file in enumerate(sorted((made / "images").iterdir())):
        file.rename(root / ("deep" if number else ".") / file.name)
    (root / "words.txt").write_text("no picture")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "own.png").write_bytes((root / "001.png").read_bytes())
    (root / "way-out").symlink_to(tmp_path / "secret")
    (root / "link.png").symlink_to(tmp_path / "secret" / "own.png")
    monkeypatch.setattr(env, "SERVER_PATHS", [str(root)])
    return root


def test_pictures_of_a_folder_are_answered_and_links_are_not_followed(alice, model, shelf):
    prediction = predicted.submitted(alice, model, server_path=str(shelf))

    output = predicted.ran(prediction)

    assert [line["path"] for line in predicted.answers(prediction)] == ["001.png", "deep/002.png", "deep/003.png"], (
        output
    )
    assert (prediction.total, prediction.source_label) == (3, str(shelf))


def test_link_that_takes_the_place_of_a_folder_meanwhile_is_not_followed(alice, model, shelf, tmp_path):
    prediction = predicted.submitted(alice, model, server_path=str(shelf))
    (shelf / "deep").rename(shelf / "old")
    (tmp_path / "secret" / "own.png").rename(tmp_path / "secret" / "002.png")
    (shelf / "deep").symlink_to(tmp_path / "secret")

    predicted.ran(prediction)

    assert [line.get("error") for line in predicted.answers(prediction)] == [None, "not_a_file", "not_a_file"]


@pytest.mark.parametrize("path", ["/etc", "{0}/way-out", "{0}/../secret", "{0}/nothing", "relative", "{0}/001.png"])
def test_folders_outside_of_what_is_allowed_are_refused(alice, model, shelf, path):
    with pytest.raises((server_paths.PathRefused, server_paths.PathMissing)):
        predicted.submitted(alice, model, server_path=path.format(shelf))
    assert not Prediction.objects.exists()


def test_picture_that_is_not_for_everybody_is_refused(alice, model, shelf):
    (shelf / "deep" / "002.png").chmod(0o600)

    with pytest.raises(server_paths.PathRefused, match=r"deep/002\.png"):
        predicted.submitted(alice, model, server_path=str(shelf))


def test_list_names_pictures_of_a_folder(alice, model, shelf):
    names = sources.parse_list(b"\xef\xbb\xbfdeep/003.png\r\n\r\n./001.png\ndeep/003.png\n", "list.txt")
    prediction = predicted.submitted(alice, model, server_path=str(shelf), listed=names)

    predicted.ran(prediction)

    assert [line["path"] for line in predicted.answers(prediction)] == ["deep/003.png", "001.png"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (b"", "a.txt"),
        (b"\xff\xfe\x00", "a.txt"),
        (b"/etc/hostname", "a.txt"),
        (b"../secret/own.png", "a.txt"),
        (b"path\n", "a.csv"),
        (b"nothing.png", "a.txt"),
        (b"link.png", "a.txt"),
        (b"way-out/own.png", "a.txt"),
    ],
)
def test_lists_that_lead_elsewhere_or_nowhere_are_refused(alice, model, shelf, text, name):
    with pytest.raises(sources.ListRefused):
        predicted.submitted(alice, model, server_path=str(shelf), listed=sources.parse_list(text, name))


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"score_threshold": 1.5}, "score_threshold"),
        ({"score_threshold": float("nan")}, "score_threshold"),
        ({"max_detections": 0}, "max_detections"),
        ({"batch": 1000}, "batch"),
        ({"split": "night"}, "split"),
        ({"split": "unseen"}, "split"),
        ({"split": "test", "listed": ["001.png"]}, "split"),
        ({"server_path": "/etc/"}, "version"),
        ({"listed": ["../001.png"]}, "listed"),
        ({"name": "a/b"}, "name"),
        ({"nodes": 0}, "nodes"),
    ],
)
def test_what_means_nothing_is_refused_by_field(alice, model, data, options, field):
    with pytest.raises(DomainError) as refused:
        predicted.submitted(alice, model, data, **options)
    assert field in {error.blamed for error in refused.value.every}
    assert not Prediction.objects.exists()


def test_running_prediction_holds_its_model_and_its_data(alice, model, data):
    prediction = predicted.submitted(alice, model, data)

    with pytest.raises(StillInUse):
        retention.check_unused(model)
    assert usage.users_of(data) == [f"batch prediction {prediction.job.name}"]
    set_state(prediction.job, "succeeded")
    retention.check_unused(model)
    assert usage.users_of(data) == []


def test_outputs_that_are_no_answers_show_nothing_and_break_nothing(alice, model, data):
    prediction = predicted.submitted(alice, model, data)
    predicted.ran(prediction)
    folder = results.outputs(prediction)
    odd = [
        "[]", "{", '{"path": 5}', '{"path": "a", "width": 0, "height": 5, "predictions": []}',
        '{"path": "a", "width": 5, "height": 5, "predictions": [1, {"box": [NaN, 1, 2, 3], "class_id": 1},'
        ' {"box": [0, 0, 3, 3], "class_id": 1, "score": "high", "mask": {"size": [5, 5], "counts": "~~~~"}}]}',
    ]  # fmt: skip
    (folder / "chunks" / "0000000.jsonl").write_text("\n".join(["head", *odd]) + "\n" + '{"cut')

    assert [line["n"] for line in predicted.answers(prediction)] == [4]
    assert len(presentation.build_context(prediction)["cards"]) == 1
    assert taken(prediction, "csv").count(b"\n") == 3
    coco = json.loads(taken(prediction, "coco"))
    assert len(coco["images"]) == 1
    (folder / "summary.json").write_text('{"done": "all", "classes": 5}')
    assert results.load(prediction)["done"] == 0
