"""Imports that wait for a confirmation: detection, edit, trial, version."""

import numpy as np
import pytest

from aiplatform.lib.files import remove_tree
from inference.registry.formats.declared import Declared, Files
from inference.registry.formats.foreign_metadata import FileFacts
from inference.registry.formats.onnx import Summary, Tensor
from inference.registry.import_trials import drafts
from inference.registry.inspector.detection import detect
from inference.registry.models import Model, ModelImport, ModelTask, ModelVersion
from tests.datasets.helpers import uploaded
from tests.factories import models as factory
from tests.inference import foreign, seeing, tiny, tried

pytestmark = pytest.mark.django_db


def begin(client, user, path, name="net"):
    """Post the import form with a completed upload; returns the response."""
    upload = uploaded(user, path.read_bytes(), path.name)
    return client.post("/models/new/", {"name": name, "upload_id": upload.pk})


def sources(row):
    return {value.field: value.source for value in drafts.detection_of(row).values}


def test_plain_onnx_is_guessed_and_the_guess_is_marked(as_alice, alice, tmp_path):
    answer = begin(as_alice, alice, seeing.model(tmp_path / "net.onnx", "yolo"))

    row = ModelImport.objects.get()
    assert answer.url == f"/models/imports/{row.pk}/"
    assert not Model.objects.exists()
    assert sources(row)["pixels"] == "guess"
    assert sources(row)["labels"] == "guess"
    assert sources(row)["size"] == "file"
    page = as_alice.get(answer.url).content.decode()
    assert "Some values are guesses." in page
    assert "Confirm the guess" in page

    confirmed = as_alice.post(f"{answer.url}confirm/", {"name": "finder", "visibility": "private"})

    version = ModelVersion.objects.get()
    assert confirmed.url == f"/models/{version.model_id}/?version=1"
    assert (version.model.name, version.task, version.source) == ("finder", "detection", "import")
    assert not ModelImport.objects.exists()
    assert not row.folder.exists()


def test_entered_values_replace_the_guess_and_wrong_ones_are_refused(as_alice, alice, tmp_path):
    page = begin(as_alice, alice, seeing.model(tmp_path / "net.onnx", "yolo")).url

    wrong = as_alice.post(f"{page}details/", {"task": "detection", "labels": "one\ntwo\nthree\nfour\nfive\nsix"})
    right = as_alice.post(
        f"{page}details/", {"task": "detection", "labels": "\n".join(seeing.CLASSES), "pixels": "bytes"}
    )

    row = ModelImport.objects.get()
    assert wrong.status_code == 422
    assert wrong.context["details"].errors["labels"] == [
        "The model predicts 7 classes; the labels name 6. Name all in order."
    ]
    assert right.url == page
    assert {sources(row)[field] for field in ("task", "labels", "pixels")} == {"entered"}
    assert not drafts.detection_of(row).is_guess
    as_alice.post(f"{page}confirm/", {"name": "net", "visibility": "private"})
    version = ModelVersion.objects.get()
    assert [item["name"] for item in version.classes] == list(seeing.CLASSES)
    assert {value["field"]: value["source"] for value in version.facts["detected"]}["pixels"] == "entered"


def test_model_that_describes_itself_is_confirmed_at_once(as_alice, alice, tmp_path):
    archive = factory.zipped(tiny.detector(tmp_path / "m"), tmp_path / "m.zip")
    page = begin(as_alice, alice, archive).url

    shown = as_alice.get(page).content.decode()
    as_alice.post(f"{page}confirm/", {"name": "cells", "visibility": "private", "description": "mine"})

    assert "from the file" in shown
    assert "h-try" not in shown
    assert ModelVersion.objects.get().task == "detection"
    assert Model.objects.get().description == "mine"


def test_trial_of_an_import_shows_its_result_on_the_page_and_its_use_ends_the_import(as_alice, alice, tmp_path):
    page = begin(as_alice, alice, seeing.model(tmp_path / "net.onnx", "yolo")).url
    data = seeing.annotated(alice)

    nothing = as_alice.post(f"{page}try/", {})
    as_alice.post(f"{page}try/", {"dataset": data.pk})
    task = ModelTask.objects.get()
    waiting = as_alice.get(page).content.decode()
    tried.ran(task)
    polled = as_alice.get(page, headers={"HX-Request": "true"})
    shown = as_alice.get(page).content.decode()
    used = as_alice.post(f"/models/tries/{task.pk}/use/", {"rank": "1", "name": "finder"})

    assert nothing.context["examples"].errors["pictures"] == ["Choose images, or a dataset, to try the model on."]
    assert 'hx-trigger="every 2s"' in waiting
    assert 'class="box-answer"' in shown
    assert polled["HX-Refresh"] == "true"
    assert 'hx-trigger="every 2s"' not in shown
    assert shown.count("btn-primary") == 1
    assert used.url == f"/models/{ModelVersion.objects.get().model_id}/?version=1"
    assert not ModelImport.objects.exists()


def test_outputs_that_nobody_can_read_become_a_model_of_tensors(as_alice, alice, tmp_path):
    path = foreign.net(tmp_path / "odd.onnx", {"answer": np.zeros((1, 2, 3, 4, 5))})
    page = begin(as_alice, alice, path).url

    shown = as_alice.get(page).content.decode()
    as_alice.post(f"{page}confirm/", {"name": "odd", "visibility": "private"})

    assert "the model accepts and returns tensors only" in shown
    assert ModelVersion.objects.get().task == "tensor"


def test_form_without_a_file_marks_the_file_field(as_alice):
    answer = as_alice.post("/models/new/", {"name": "net"})

    assert answer.status_code == 422
    assert answer.context["form"].errors["upload_id"] == ["Choose a file, or enter the path of the model."]


def test_import_of_another_user_is_not_found(as_alice, alice, as_bob, as_anna, tmp_path):
    page = begin(as_alice, alice, seeing.model(tmp_path / "net.onnx", "yolo")).url

    assert as_bob.get(page).status_code == 404
    assert as_bob.post(f"{page}confirm/", {"name": "x"}).status_code == 404
    assert as_anna.get(page).status_code == 403


def test_import_is_discarded_by_its_owner_and_by_time(as_alice, alice, tmp_path):
    path = seeing.model(tmp_path / "net.onnx", "yolo")
    page = begin(as_alice, alice, path).url
    row = ModelImport.objects.get()

    as_alice.post(f"{page}discard/")
    assert not row.folder.exists()

    begin(as_alice, alice, path)
    ModelImport.objects.update(created_at="2020-01-01T00:00Z")
    drafts.remove_old()
    assert not ModelImport.objects.exists()


def test_api_import_reports_what_was_detected(api, alice, tmp_path):
    upload = uploaded(alice, seeing.model(tmp_path / "net.onnx", "yolo").read_bytes(), "net.onnx")

    row = api.post("/api/v1/models/", {"name": "net", "upload": upload.pk}, format="json").json()

    assert row["task"] == "tensor"
    detected = {value["field"]: (value["value"], value["source"]) for value in row["facts"]["detected"]}
    assert detected["task"][0] == "detection"
    assert detected["pixels"] == ("unit", "guess")


def test_import_whose_files_are_gone_says_so(as_alice, alice, tmp_path):
    page = begin(as_alice, alice, seeing.model(tmp_path / "net.onnx", "yolo")).url
    remove_tree(ModelImport.objects.get().folder)

    tried_again = as_alice.post(f"{page}try/", {})
    confirmed = as_alice.post(f"{page}confirm/", {"name": "net", "visibility": "private"})

    assert (tried_again.status_code, confirmed.status_code) == (422, 422)
    assert "no longer" in confirmed.context["form"].non_field_errors()[0]


def test_class_count_that_no_shape_defines_is_a_missing_value():
    tensors = {"inputs": [Tensor("images", 1, [1, 3, 64, 64])], "outputs": [Tensor("logits", 1, [1, -1])]}
    files = Files(FileFacts(), Summary(**tensors))

    unknown = detect(files, Declared(task="classification"))
    named = detect(files, Declared(task="classification", labels=("cat", "dog")))

    assert unknown.declaration is None
    assert {row.field: row.source for row in unknown.values} == {"task": "entered", "labels": "missing"}
    assert named.declaration.labels == ("cat", "dog")
    assert named.is_guess
