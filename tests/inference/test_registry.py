from pathlib import Path

import pytest

from aiplatform.lib.archive_refusals import ArchiveRefused
from aiplatform.lib.errors import Invalid, StillInUse
from inference.registry import inspections
from inference.registry import registration as registry
from inference.registry.inspections import ModelRefused
from inference.registry.models import Model, ModelVersion
from inference.serving.models import Service
from tests.factories import models as factory
from tests.inference import judged, tiny
from tests.inference.running import set_state
from training.runs import publishers
from training.runs.models import TrainingJob
from workers.core.runs import RunDir

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


def register(job, folder, attempt=1):
    return registry.register_training(
        job=job, attempt=attempt, folder=folder, dataset_version=None, dataset_label="cells v1", code_label="detect"
    )


def test_model_registry_makes_a_version_of_an_uploaded_archive(alice, tmp_path):
    version = factory.model_version(alice, tmp_path)

    assert (version.model.name, version.number, version.task) == ("cells", 1, "detection")
    assert {f["name"] for f in version.files} == {"model.onnx", "model.json"}
    assert (version.path / "model.onnx").stat().st_size == next(
        f["size"] for f in version.files if f["name"] == "model.onnx"
    )
    assert version.sha256 == next(f["sha256"] for f in version.files if f["name"] == "model.onnx")
    assert [p.name for p in version.model.folder.parent.iterdir() if p.name.startswith(".")] == []


def test_model_registry_accepts_a_bare_onnx_file(alice, tmp_path):
    tiny.identity(tmp_path)

    version = registry.register_upload(user=alice, archive=tmp_path / "model.onnx", filename="net.onnx", name="net")

    assert version.task == "tensor"


@pytest.mark.parametrize("filename", ["model.pt", "model.pkl", "model.joblib", "weights.pth"])
def test_model_registry_refuses_pickles_in_plain_words(alice, tmp_path, filename):
    folder = tmp_path / "x"
    tiny.identity(folder)
    archive = factory.zipped(folder, tmp_path / "x.zip")  # a .pt is a zip

    with pytest.raises(ModelRefused, match="can execute code when it is opened"):
        registry.register_upload(user=alice, archive=archive, filename=filename, name="net")
    assert not Model.objects.exists()


def test_model_registry_refuses_a_damaged_archive(alice, tmp_path):
    archive = tmp_path / "x.zip"
    archive.write_bytes(b"PK\x03\x04 no archive at all")

    with pytest.raises(ArchiveRefused):
        registry.register_upload(user=alice, archive=archive, filename="x.zip", name="net")


@pytest.mark.parametrize("name", ["", " ", "with space ", "a/b", "a:1", "-x", "x" * 101])
def test_model_registry_refuses_names_that_are_no_words(alice, tmp_path, name):
    with pytest.raises(Invalid):
        factory.model_version(alice, tmp_path, name=name or "")


def test_model_registry_holds_one_model_of_a_name_per_person(alice, bob, tmp_path):
    factory.model_version(alice, tmp_path)
    factory.model_version(bob, tmp_path)

    with pytest.raises(registry.NameTaken):
        factory.model_version(alice, tmp_path)


def test_model_registry_registers_a_training_once_per_attempt(alice, tmp_path):
    job = factory.training_job(alice)
    folder = tiny.detector(tmp_path / "outputs/model")

    first, again, second = register(job, folder), register(job, folder), register(job, folder, attempt=2)

    assert first == again
    assert (first.number, second.number) == (1, 2)
    assert first.model == second.model
    assert (first.job, first.dataset_label, first.code_label) == (job, "cells v1", "detect")


def test_model_registry_registers_nothing_without_a_model(alice, tmp_path):
    assert register(factory.training_job(alice), tmp_path / "outputs/model") is None


def test_model_registry_logs_a_refused_model_of_a_training(alice, tmp_path, caplog):
    folder = tmp_path / "outputs/model"
    folder.mkdir(parents=True)
    (folder / "model.pt").write_bytes(b"x")

    assert register(factory.training_job(alice), folder) is None
    assert "can execute code when it is opened (a pickle or an archive with" in caplog.text


def test_model_registry_follows_no_model_folder_that_is_a_link(alice, tmp_path):
    tiny.detector(tmp_path / "secret")
    (tmp_path / "outputs").mkdir()
    (tmp_path / "outputs/model").symlink_to(tmp_path / "secret")

    assert register(factory.training_job(alice), tmp_path / "outputs/model") is None


def test_model_registry_reads_no_description_that_is_a_link(alice, tmp_path, caplog):
    tiny.detector(tmp_path / "secret")
    tiny.detector(tmp_path / "outputs/model")
    (tmp_path / "outputs/model/model.json").unlink()
    (tmp_path / "outputs/model/model.json").symlink_to(tmp_path / "secret/model.json")

    assert register(factory.training_job(alice), tmp_path / "outputs/model") is None
    assert "is a link" in caplog.text


@pytest.mark.parametrize("swap", ["folder", "file"])
def test_model_registry_copies_nothing_that_became_a_link_after_it_was_looked_at(alice, tmp_path, monkeypatch, swap):
    tiny.detector(tmp_path / "secret")
    tiny.detector(tmp_path / "outputs/model")

    inspected = inspections.of_outputs

    def looked_at(folder: Path):
        result = inspected(folder)
        swapped = folder if swap == "folder" else folder / "model.onnx"
        swapped.rename(tmp_path / "away")
        swapped.symlink_to(tmp_path / "secret" / ("" if swap == "folder" else "model.onnx"))
        return result

    monkeypatch.setattr(inspections, "of_outputs", looked_at)

    assert register(factory.training_job(alice), tmp_path / "outputs/model") is None


def test_model_registry_does_not_delete_what_a_service_uses(alice, tmp_path):
    version = factory.model_version(alice, tmp_path)
    service = Service.objects.create(name="demo", slug="demo-1", owner=alice, model_version=version)

    with pytest.raises(StillInUse, match="endpoint demo"):
        registry.delete(model=version.model)

    service.delete()
    folder = version.model.folder
    registry.delete(model=version.model)
    assert not folder.exists()


def test_model_registry_deletes_the_model_with_its_last_version(alice, tmp_path):
    version = factory.model_version(alice, tmp_path)
    second = factory.model_version(alice, tmp_path, model=version.model)

    registry.delete_version(version=second)
    assert Model.objects.count() == 1
    registry.delete_version(version=version)

    assert not Model.objects.exists()
    assert not ModelVersion.objects.exists()


def test_model_registry_shows_strangers_public_models_only(alice, bob, tmp_path):
    own = factory.model_version(alice, tmp_path, name="mine")
    public = factory.model_version(alice, tmp_path, name="ours", visibility="public")

    assert list(ModelVersion.objects.visible_to(bob)) == [public]
    assert set(ModelVersion.objects.visible_to(alice)) == {own, public}
    assert not ModelVersion.objects.editable_by(bob)


def test_model_registry_takes_a_finished_training_with_its_lineage(alice, tmp_path):
    data = judged.dataset_version(alice, tmp_path / "data")
    job = set_state(factory.training_job(alice), "succeeded")
    training = TrainingJob.objects.create(job=job, preset="detect", version=data, version_label=str(data))
    tiny.detector(RunDir.for_attempt(job.pk, 1).outputs / "model")

    publishers.publish(training)
    publishers.publish(training)

    version = ModelVersion.objects.get()
    assert (version.model.name, version.source, version.attempt) == ("cells", "training", 1)
    assert (version.job, version.dataset_version, version.code_label) == (job, data, "detect")
