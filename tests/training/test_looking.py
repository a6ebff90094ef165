"""Looks at a training: queued as jobs of their own, shown on its page, and no model comes of them."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from unittest.mock import Mock

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from PIL import Image

from aiplatform.client import config, http
from tests.factories import training as factory
from tests.training.preparing import prepared
from training.presets.catalog import PRESETS
from training.runs import images, jobs, previews, publishers
from training.runs.kind import TrainingKind
from training.runs.models import TrainingJob
from workers.core.models import Attempt, Job

PREVIEW = {
    "images": {"learn": 1200, "score": 4}, "counted": "objects", "classes": [{"name": "<b>nut", "count": 7}],
    "input": [320, 240], "window": None, "resize": "stretch", "objects": 9, "lost": 2, "batch_size": 16,
    "sizes": [{"below": 8, "count": 2}, {"below": None, "count": 7}], "steps_per_epoch": 75, "pictures": 2,
    "originals": {"smallest": [640, 480], "usual": [640, 480], "largest": [800, 600]}, "prepared_s": 3.0,
}  # fmt: skip
TIMES = {"steps_timed": 20, "step_ms": 100.0, "epoch_s": 7.5, "memory_mib": 512}


def sent(cells, cluster, **more):
    return {"preset": "detect", "version": cells.pk, "cluster": cluster.pk, "nodes": 1, "gpus_per_node": 0,
            "cpus": 1, "processes": 0, "share": 8, "priority": 0, "memory_mib": 0, **more}  # fmt: skip


@pytest.fixture
def trained(alice, machine, cells):
    training = factory.training(alice, data=cells, params={"lr": 0.01})
    factory.checkpoint(factory.move(training, "succeeded"), 100, metric=0.5)
    return training


def test_preview_is_a_job_of_its_own_that_is_told_what_to_show(as_alice, alice, machine, cells):
    cluster = factory.training(alice, data=cells).job.cluster

    page = as_alice.post("/training/preview/", sent(cells, cluster, name="mine"), headers={"hx-request": "true"})

    look = TrainingJob.objects.get(job__name="mine_preview")
    assert page.status_code == 200
    assert f'hx-get="/training/{look.pk}/images/"' in page.content.decode()
    launch, _run = prepared(look)
    assert launch.env["AIP_SHOW"] == "batch"
    assert not TrainingKind().capabilities(look.job).pause
    assert jobs.as_request(look)["extra"] == ""  # a clone trains


def test_preview_takes_the_parameters_as_a_form_sends_them(as_alice, machine, alice, cells):
    cluster = factory.training(alice, data=cells).job.cluster

    page = as_alice.post(
        "/training/preview/", sent(cells, cluster, detect__folds="0", detect__fold="0"), headers={"hx-request": "true"}
    )

    assert page.status_code == 200
    assert TrainingJob.objects.filter(extra__show_batch=True).count() == 1


def test_preview_refuses_what_a_training_refuses_and_own_code(as_alice, alice, machine, cells):
    cluster = factory.training(alice, data=cells).job.cluster

    wrong = as_alice.post("/training/preview/", sent(cells, cluster, detect__lr="-1"))
    own = as_alice.post("/training/preview/", sent(cells, cluster, preset="own", command="true"))

    assert (wrong.status_code, own.status_code) == (422, 422)
    assert "lr must be a number from 1e-07 to 10." in wrong.content.decode()
    assert "Custom code cannot be previewed. Choose a preset." in own.content.decode()
    assert TrainingJob.objects.count() == 1


def test_preview_switch_is_no_use_to_own_code(api, machine, cells, alice, code):
    answer = api.post("/api/v1/training/jobs/", {"code": code.pk, "start_file": "train.py", "extra": "-ShowBatch"})

    assert (answer.status_code, answer.json()["code"]) == (400, "bad_switch")


def test_preview_page_says_what_is_lost_and_how_long_a_pass_takes(as_alice, alice, machine, cells):
    look = factory.training(alice, data=cells, extra="-ShowBatch", params={"budget_minutes": 5})
    run = factory.move(look, "running")
    url = f"/training/{look.pk}/images/"
    assert "Images appear here" in as_alice.get(url).content.decode()
    (run.outputs / "preview").mkdir()
    (run.outputs / "preview" / "preview.json").write_text(json.dumps(PREVIEW))

    first = as_alice.get(url, headers={"hx-request": "true"}).content.decode()
    (run.outputs / "preview" / "preview.json").write_text(json.dumps(PREVIEW | TIMES))
    factory.move(look, "succeeded")
    whole = as_alice.get(url, headers={"hx-request": "true"}).content.decode()

    assert "2 of 9 objects are smaller than 8 px at 320 × 240" in first
    assert "measuring" in first
    assert "every 2s" in first
    assert "about 40 epochs" in whole  # 300 s of 7.5 s each
    assert "every 2s" not in whole
    assert "&lt;b&gt;nut" in whole
    assert whole.count("<img") == 2 + 4


@pytest.mark.parametrize(
    "broken",
    [
        "[]",
        "{",
        '{"images": 3}',
        '{"images": {"learn": "x"}, "classes": [1]}',
        json.dumps(PREVIEW | {"lost": float("inf")}),
        json.dumps(PREVIEW | {"input": [1]}),
    ],
)
def test_preview_page_lives_with_whatever_a_job_wrote(as_alice, alice, machine, cells, broken):
    look = factory.training(alice, data=cells, extra="-ShowBatch")
    run = factory.move(look, "running")
    (run.outputs / "preview").mkdir()
    (run.outputs / "preview" / "preview.json").write_text(broken)

    assert as_alice.get(f"/training/{look.pk}/images/").status_code == 200


def test_looks_leave_no_model(alice, machine, cells, monkeypatch):
    published = []
    monkeypatch.setattr(publishers, "publish", published.append)
    look = factory.training(alice, data=cells, extra="-ShowBatch")
    factory.move(look, "succeeded")

    TrainingKind().ended(Job.objects.get(pk=look.job_id), Attempt.objects.get(job=look.job_id))

    assert published == []
    look.refresh_from_db()
    assert look.published_attempt == 1


def test_layers_are_looked_into_by_a_job_that_begins_from_the_checkpoint(as_alice, alice, trained):
    picture = io.BytesIO()
    Image.new("RGB", (8, 8)).save(picture, "PNG")
    image = SimpleUploadedFile("me.png", picture.getvalue())

    answer = as_alice.post(f"/training/{trained.pk}/layers/", {"checkpoint": "1/step-000100", "image": image})

    look = TrainingJob.objects.get(parent=trained)
    assert answer.url == f"/training/{trained.pk}/images/"
    assert look.params == trained.params
    assert look.job.resume_from.endswith("checkpoints/step-000100")
    launch, run = prepared(look)
    assert launch.env["AIP_SHOW"] == "layers"
    assert (run.inputs / "look").read_bytes() == picture.getvalue()
    assert launch.env["AIP_SHOW_IMAGE"] == str(run.inputs / "look")


def test_command_of_layers_sends_an_image_of_ones_own(api, trained, tmp_path, monkeypatch):
    picture = tmp_path / "me.png"
    Image.new("RGB", (8, 8)).save(picture)
    route, sent = f"training/jobs/{trained.pk}/layers/", {}
    monkeypatch.setattr(http.Client, "open", lambda _self, *_where, **more: sent.update(more) or Mock())
    http.Client(config.Config("http://testserver", "")).post_file(route, {"checkpoint": ""}, "image", picture)

    made = api.generic("POST", f"/api/v1/{route}", sent["data"], content_type=sent["headers"]["Content-Type"])

    launch, _run = prepared(TrainingJob.objects.get(pk=made.json()["id"]))
    assert Path(launch.env["AIP_SHOW_IMAGE"]).read_bytes() == picture.read_bytes()


def test_layers_are_shown_on_the_page_of_the_training(as_alice, api, alice, trained):
    number = api.post(f"/api/v1/training/jobs/{trained.pk}/layers/", {}).json()["id"]
    run = factory.move(TrainingJob.objects.get(pk=number), "succeeded")
    weights = {"shape": [4, 3, 3, 3], "bins": [1, 3], "from": -1.0, "to": 1.0, "mean": 0.0, "std": 0.5, "picture": True}
    layer = {"number": 1, "name": "stem.0", "kind": "Conv2d", "shape": [4, 8, 8], "weights": weights}
    cam = {"image": 1, "class": "shoe", "score": 0.75, "layer": "stem.0"}
    about = {"images": [{"name": "a.png"}], "layers": [layer], "of_layers": 3, "cams": [cam], "step": 100}
    (run.outputs / "layers").mkdir()
    (run.outputs / "layers" / "layers.json").write_text(json.dumps(about))

    page = as_alice.get(f"/training/{trained.pk}/images/").content.decode()

    assert "1 of 3 at step 100" in page
    assert "stem.0" in page
    assert "path=layers/01-weights.jpg" in page.replace("%2F", "/")
    assert "Grad-CAM of image 1 for shoe" in page


def test_layers_of_others_and_without_a_checkpoint_are_refused(as_bob, api, alice, machine, cells, trained):
    fresh = factory.training(alice, data=cells)

    assert as_bob.post(f"/training/{trained.pk}/layers/").status_code == 404
    answer = api.post(f"/api/v1/training/jobs/{fresh.pk}/layers/", {})
    assert (answer.status_code, answer.json()["code"]) == (409, "no_checkpoint")
    look = api.post(f"/api/v1/training/jobs/{trained.pk}/layers/", {}).json()
    assert api.post(f"/api/v1/training/jobs/{look['id']}/layers/", {}).status_code == 400


def test_strip_goes_on_over_attempts_and_takes_the_later_one_where_both_have_a_step(as_alice, alice, machine, cells):
    training = factory.training(alice, data=cells)
    for attempt, steps in ((1, (10, 20, 30)), (2, (20, 40))):
        run = factory.move(training, "running", attempt=attempt)
        for name in ("truth", *(f"step-{step:06d}" for step in steps)):
            folder = run.outputs / "samples" / name
            folder.mkdir(parents=True)
            (folder / "1.jpg").write_bytes(b"\xff\xd8")
            (folder / "about.json").write_text('{"metric": "val/ap50", "value": 0.5}')

    strip = images.strip(training)
    page = as_alice.get(f"/training/{training.pk}/images/").content.decode()

    assert [(point.step, point.attempt) for point in strip.points] == [(10, 1), (20, 2), (40, 2)]
    assert (strip.images, strip.points[0].figure) == ([1], "AP50 on validation 0.500")
    assert page.count("data-step=") == 3
    assert PRESETS["detect"].name == training.preset


def test_strip_follows_no_link_and_own_code_has_none(as_alice, alice, machine, cells, code, tmp_path):
    training = factory.training(alice, data=cells)
    run = factory.move(training, "running")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "1.jpg").write_bytes(b"\xff\xd8")
    (run.outputs / "samples").mkdir()
    (run.outputs / "samples" / "step-000010").symlink_to(elsewhere)
    (run.outputs / "samples" / "step-000020").write_text("a file")
    own = factory.training(alice, data=cells, name="own", code=code, start_file="train.py")

    assert images.strip(training) is None
    assert as_alice.get(f"/training/{training.pk}/images/").status_code == 200
    assert as_alice.get(f"/training/{own.pk}/images/").status_code == 404


def test_tab_of_images_is_there_for_presets_that_show_some(as_alice, alice, machine, cells):
    digits = factory.version(alice, "digits", task="classification")
    looked_at, plain = factory.training(alice, data=cells), factory.training(alice, data=digits, preset="hog_svm")

    pages = [as_alice.get(f"/training/{one.pk}/").content.decode() for one in (looked_at, plain)]

    assert [f"/training/{one.pk}/images/" in page for one, page in zip((looked_at, plain), pages, strict=True)] == [
        True,
        False,
    ]


def test_facts_of_a_training_name_its_parameters_as_the_form_does(as_alice, alice, machine, cells):
    training = factory.training(alice, data=cells, params={"show_steps": True, "lr": 0.01})

    page = as_alice.get(f"/training/{training.pk}/").content.decode()
    chinese = as_alice.get(f"/training/{training.pk}/", headers={"accept-language": "zh-CN"}).content.decode()

    assert "Log every step" in page
    assert re.search(r"show_steps</span></dt><dd[^>]*>yes\s*</dd>", page)
    assert re.search(r"日志记录每一步 <span[^>]*>show_steps</span></dt><dd[^>]*>是\s*</dd>", chinese)


def test_list_shows_trainings_and_looks_at_them_where_they_are_asked_for(as_alice, alice, trained):
    previews.layers(trained, by=alice)

    plain, whole = (as_alice.get(f"/training/{asked}").content.decode() for asked in ("", "?looks=1"))

    assert ("cells_layers" in plain, "cells_layers" in whole) == (False, True)
    assert f'id="training-{trained.pk}"' in plain
