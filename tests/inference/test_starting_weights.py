"""Trainings that start from a version of the registry or from a file of one's own: what is named and handed over."""

from __future__ import annotations

from pathlib import Path

import pytest

from datasets.files import homes
from inference.registry.models import Model, ModelVersion, Visibility
from tests.conftest import signed_in
from tests.factories import training as factory
from tests.factories import work
from tests.training.preparing import prepared
from training.programs.start import CannotRun
from training.runs import jobs
from training.runs.drafts import TrainingRequest
from training.runs.models import TrainingJob
from training.runs.parameters import BadParameter
from workers.core.models import Attempt

pytestmark = pytest.mark.postgres
API = "/api/v1/training/jobs/"


@pytest.fixture
def machine(db):
    return work.node(cores=4)


@pytest.fixture
def cells(alice):
    return factory.version(alice, "cells")


def trained(owner, *, name: str = "cells", visibility: str = Visibility.PRIVATE, **fields) -> ModelVersion:
    """A version as a training leaves one, with a file for its weights."""
    model = Model.objects.create(owner=owner, name=name, visibility=visibility)
    files = fields.pop("files", ["model.safetensors"])
    version = ModelVersion.objects.create(
        model=model, number=1, source="training",
        **{"task": "detection", "preset": "detect", "files": [{"name": file, "size": 7} for file in files], **fields},
    )  # fmt: skip
    version.path.mkdir(parents=True)
    for file in files:
        (version.path / file).write_bytes(b"weights")
    return version


def submitted(user, version, preset="detect", **params) -> TrainingJob:
    request = TrainingRequest(name="fine", version=version, preset=preset, params=params, gpus_per_node=0)
    return jobs.submit(user=user, request=request)


def test_training_starts_from_a_registered_model_by_its_full_name_and_reads_its_folder(alice, machine, cells):
    version = trained(alice)

    training = submitted(alice, cells, weights="cells v1")
    launch, _run = prepared(training)

    assert training.params["weights"] == "alice/cells v1"
    assert launch.env["AIP_WEIGHTS"] == str(version.path / "model.safetensors")
    assert version.path in launch.read_only


def test_training_starts_from_models_of_others_only_where_they_are_shared(alice, bob, machine, cells):
    trained(bob, name="secret")
    trained(bob, name="open", visibility=Visibility.PUBLIC)

    assert submitted(alice, cells, weights="bob/open v1").params["weights"] == "bob/open v1"
    with pytest.raises(BadParameter, match=r"Model bob/secret v1 not found."):
        submitted(alice, cells, weights="bob/secret v1")


def test_training_takes_ones_own_model_where_others_have_the_same_name(alice, bob, machine, cells):
    trained(bob, visibility=Visibility.PUBLIC)
    trained(alice)

    assert submitted(alice, cells, weights="cells v1").params["weights"] == "alice/cells v1"


def test_training_page_and_api_refuse_weights_alike(api, as_alice, alice, machine, cells):
    trained(alice, files=["model.onnx"])

    page = as_alice.post(
        "/training/new/",
        {"name": "a", "version": cells.pk, "preset": "detect", "gpus_per_node": 0, "cpus": 1, "nodes": 1,
         "processes": 0, "priority": 0, "detect__weights": "cells v1"},
    )  # fmt: skip
    answer = api.post(API, {"version": cells.pk, "preset": "detect", "params": {"weights": "cells v1"}}, format="json")

    message = (
        "alice/cells v1 has only an ONNX file, which cannot be trained further. Choose a model that was trained here."
    )
    assert page.context["form"].errors["detect__weights"] == [message]
    assert (answer.status_code, answer.json()["code"], answer.json()["detail"]) == (400, "bad_parameter", message)


@pytest.mark.parametrize("name", ["cells", "../x v1", "/etc/passwd.pth", "../../secret.pth", "none.safetensors"])
def test_training_refuses_names_that_are_no_model_and_no_file_of_the_home(alice, machine, cells, name):
    with pytest.raises(BadParameter) as refused:
        submitted(alice, cells, weights=name)

    assert [error.blamed for error in refused.value.every] == ["param_weights"]


def test_training_copies_a_file_of_the_home_once_and_needs_it_no_longer_after_a_checkpoint(alice, machine, cells):
    own = homes.home_of(alice) / "models" / "mine.pth"
    own.parent.mkdir()
    own.write_bytes(b"mine")

    training = submitted(alice, cells, weights="models/mine.pth")
    launch, run = prepared(training)
    own.unlink()

    assert Path(launch.env["AIP_WEIGHTS"]).read_bytes() == b"mine"
    assert Path(launch.env["AIP_WEIGHTS"]).parent == run.inputs
    with pytest.raises(CannotRun, match=r"models/mine.pth is not available any more as initial weights."):
        prepared(training, 2)
    Attempt.objects.filter(job=training.job_id, number=2).update(checkpoint_in="/somewhere/step-000001")
    assert "AIP_WEIGHTS" not in prepared(training, 2)[0].env


def test_training_follows_no_link_of_the_home(alice, machine, cells, tmp_path):
    outside = tmp_path / "other.pth"
    outside.write_bytes(b"not hers")
    (homes.home_of(alice) / "link.pth").symlink_to(outside)

    with pytest.raises(BadParameter, match="Links are not followed"):
        submitted(alice, cells, weights="link.pth")


def test_restore_keeps_weights_that_are_gone_and_refuses_new_ones_that_are(alice, machine, cells):
    version = trained(alice)
    training = submitted(alice, cells, weights="cells v1")
    version.delete()

    assert jobs._changed(alice, training, {**training.params, "lr": 0.01})["weights"] == "alice/cells v1"
    with pytest.raises(BadParameter, match="Model"):
        jobs._changed(alice, training, {**training.params, "weights": "alice/cells v2"})


def test_model_page_begins_a_training_of_the_same_network(as_alice, alice, bob, machine, cells):
    network = {"architecture": "lite0-scratch", "head_width": 48}
    version = trained(alice, params={**network, "lr": 0.5, "train_splits": "all"})
    page = as_alice.get(f"/models/{version.model_id}/").content.decode()
    url = "/training/new/?weights=alice/cells%20v1"

    form = as_alice.get(url).context["form"]

    assert url in page
    assert form["preset"].value() == "detect"
    begun = {name: form[f"detect__{name}"].value() for name in (*network, "weights", "train_splits")}
    assert begun == {**network, "weights": "alice/cells v1", "train_splits": "train"}
    assert '<option value="alice/cells v1">' in as_alice.get("/training/new/").content.decode()
    assert signed_in(bob).get(url).status_code == 404


def test_teacher_that_pretends_to_be_a_known_network_is_refused_to_others(alice, bob, machine):
    """Its model.json may say anything: that its architecture is own is what has the job run its text."""
    data = factory.version(bob, "shades", task="classification")
    fields = {"architecture": "own", "params": {"architecture": "resnet9", "network": "import os"}}
    trained(alice, name="nice", preset="classify", task="classification", visibility=Visibility.PUBLIC, **fields)

    with pytest.raises(BadParameter, match=r"Another user wrote the network of alice/nice v1."):
        submitted(bob, data, "classify", teacher="alice/nice v1")


@pytest.fixture
def taught(alice, machine):
    """A stopped training of a classifier that began with one model and learns after another; and those two."""
    data = factory.version(alice, "shades", task="classification")
    models = [trained(alice, name=name, preset="classify", task="classification") for name in ("small", "large")]
    training = submitted(alice, data, "classify", weights="small v1", teacher="large v1", distill=0.7)
    factory.checkpoint(factory.move(training, "stopped"), 5)
    return training, *models


@pytest.mark.parametrize("gone", [False, True])
def test_clone_keeps_weights_and_teacher_and_says_which_are_gone(as_alice, taught, gone):
    training, *models = taught
    for version in models if gone else ():
        version.model.delete()

    form = as_alice.get(f"/training/new/?clone={training.pk}").context["form"]
    names = [f"classify__{name}" for name in ("weights", "teacher", "distill")]
    filled = {name: form[name].value() for name in names}
    sent = {"name": "again", "version": training.version_id, "preset": "classify", "gpus_per_node": 0, "cpus": 1}
    answer = as_alice.post("/training/new/", sent | {"nodes": 1, "processes": 0, "priority": 0} | filled)

    assert filled == dict(zip(names, ("alice/small v1", "alice/large v1", 0.7), strict=True))
    if not gone:
        assert answer.status_code == 302, answer.context["form"].errors
        made = TrainingJob.objects.latest("pk").params
        assert (made["weights"], made["teacher"], made["distill"]) == ("alice/small v1", "alice/large v1", 0.7)
        return
    assert answer.context["form"].errors == {
        "classify__weights": ["Model alice/small v1 not found."],
        "classify__teacher": ["Model alice/large v1 not found."],
    }


def test_restore_goes_on_without_its_weights_but_not_without_its_teacher(api, as_alice, taught):
    training, small, large = taught
    route, page = f"{API}{training.pk}/restore/", f"/training/{training.pk}/restore/"
    before = training.params
    small.model.delete()
    assert api.post(route, {}, format="json").status_code == 202
    factory.checkpoint(factory.move(training, "stopped", attempt=2), 9)
    large.model.delete()

    refused = api.post(route, {}, format="json")
    form = as_alice.get(page).context["form"]
    values = {name: form[name].value() for name in form.fields}
    filled = {name: value for name, value in values.items() if value is not None and value is not False}
    shown = as_alice.post(page, filled)

    message = (
        "The teacher alice/large v1 no longer exists, so the training cannot continue with it: Model "
        "alice/large v1 not found. Choose another teacher, or none."
    )
    assert (refused.status_code, refused.json()["detail"]) == (400, message)
    assert shown.context["form"].errors == {"classify__teacher": [message]}
    training.refresh_from_db()
    assert (training.params, training.job.state) == (before, "stopped")
    assert api.post(route, {"params": {"teacher": ""}}, format="json").status_code == 202
