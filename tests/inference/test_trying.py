"""A model from elsewhere is tried on pictures: the right way comes first. The real program, alone in its run."""

import json

import numpy as np
import pytest
from django.conf import settings
from django.test import Client

from aiplatform.lib.errors import DomainError, Invalid
from inference.registry import imports
from inference.registry.formats.declared import PIXELS, Declared
from inference.registry.import_trials import trials
from inference.registry.inspections import ModelRefused
from inference.registry.inspector import variants
from inference.registry.kind import ModelTaskKind
from inference.registry.models import Model, ModelTask, ModelVersion
from inference.registry.run_code import Vanished
from tests.factories import models as factory
from tests.inference import foreign, seeing, tiny, tried
from tests.inference.running import set_state
from tests.inference.seeing import annotated, labelled
from tests.inference.tried import load_results as results_of
from tests.long_form import first
from workers.core.models import Job
from workers.core.runs import RunDir

pytestmark = pytest.mark.django_db
PICTURES = [seeing.picture(), seeing.picture(seed=1)]


def trials_page(user, task: ModelTask) -> int:
    """How the page of the job answers."""
    browser = Client()
    browser.force_login(user)
    return browser.get(f"/jobs/{task.job_id}/").status_code


@pytest.mark.long
@pytest.mark.parametrize("layout", first(3, seeing.LAYOUTS))
def test_layout_pixels_and_resize_are_found_by_pictures_alone(alice, tmp_path, layout):
    pixels, resize = ("bytes", "letterbox") if layout == "yolox" else ("unit", "letterbox")
    path = seeing.model(tmp_path / "net.onnx", layout, pixels, resize)
    task = tried.submitted(alice, path, pictures=PICTURES, declared=Declared(labels=seeing.CLASSES))

    log = tried.ran(task)

    first = tried.best(task)[0]
    assert (first.task, first.layout, first.pixels, first.resize) == ("detection", layout, pixels, resize), log


@pytest.mark.parametrize("layout", first(2, reversed(seeing.LAYOUTS)))
def test_layout_pixels_and_resize_are_found_by_what_is_annotated(alice, tmp_path, layout):
    path = seeing.model(tmp_path / "net.onnx", layout, "imagenet", "stretch")
    task = tried.submitted(alice, path, version=annotated(alice), declared=Declared(labels=seeing.CLASSES))

    log = tried.ran(task)

    first = tried.best(task)[0]
    assert (first.layout, first.pixels, first.resize) == (layout, "imagenet", "stretch"), log
    assert task.figures["with_truth"]
    assert task.figures["best"][0]["score"] > 0.9
    assert len(task.figures["best"]) >= 3 or sum(task.figures["fallen"].values()) > 0


def test_model_that_takes_blue_first_is_found_and_served_so_behind_all_usual_ways(alice, tmp_path):
    path = seeing.model(tmp_path / "net.onnx", "yolo", "unit_bgr", "letterbox", first_alone=True)
    task = tried.submitted(alice, path, pictures=PICTURES, declared=Declared(labels=seeing.CLASSES))

    log = tried.ran(task)

    first = tried.best(task)[0]
    assert (first.layout, first.pixels, first.resize) == ("yolo", "unit_bgr", "letterbox"), log
    orders = [PIXELS[declaration.pixels].order for declaration in trials.ways_of(task)]
    assert orders == sorted(orders, reverse=True)  # RGB before BGR
    assert len(orders) <= variants.MAX_VARIANTS


def test_what_was_declared_is_the_same_in_all_ways(alice, tmp_path):
    path = seeing.model(tmp_path / "net.onnx", "yolo")
    declared = Declared(task="detection", labels=seeing.CLASSES, layout="yolo", pixels="bytes")

    task = tried.submitted(alice, path, pictures=PICTURES, declared=declared)

    assert {(declaration.layout, declaration.pixels) for declaration in trials.ways_of(task)} == {("yolo", "bytes")}
    assert [declaration.resize for declaration in trials.ways_of(task)] == ["letterbox", "stretch"]


@pytest.mark.parametrize(("pixels", "layout"), [("imagenet", "logits"), ("signed", "probabilities")])
def test_classifier_is_found_by_its_annotated_classes(alice, tmp_path, pixels, layout):
    path = seeing.classifier(tmp_path / "net.onnx", pixels, shares=layout == "probabilities")
    declared = Declared(task="classification", labels=("dark", "light"))
    task = tried.submitted(alice, path, version=labelled(alice), declared=declared)

    log = tried.ran(task)

    first = tried.best(task)[0]
    assert (first.layout, first.pixels) == (layout, pixels), log
    assert task.figures["best"][0]["score"] > 0.9


def test_classes_that_nobody_named_are_numbered(alice, tmp_path):
    path = seeing.model(tmp_path / "net.onnx", "yolo")
    task = tried.submitted(alice, path, pictures=PICTURES)

    log = tried.ran(task)
    version = trials.use(task=task, rank=1, by=alice)

    assert [entry["name"] for entry in version.classes] == [str(index) for index in range(len(seeing.CLASSES))], log
    assert tried.best(task)[0].layout == "yolo"


def test_way_that_is_used_makes_what_an_import_with_it_declared_makes(alice, tmp_path):
    path = seeing.model(tmp_path / "net.onnx", "yolo")
    fields = {"description": "finds", "visibility": "public"}
    task = tried.submitted(alice, path, pictures=PICTURES, declared=Declared(labels=seeing.CLASSES), **fields)
    tried.ran(task)

    version = trials.use(task=task, rank=1, by=alice)

    same = tried.best(task)[0]
    brought = imports.from_upload(path, path.name, same)
    other = imports.import_model(user=alice, brought=brought, declared=same, name="other")
    assert (version.path / "model.json").read_text() == (other.path / "model.json").read_text()
    assert {entry["name"]: entry["sha256"] for entry in version.files} == {
        entry["name"]: entry["sha256"] for entry in other.files
    }
    assert (version.source, version.code_label) == (other.source, other.code_label) == ("import", "net.onnx")
    assert (version.model.name, version.model.description, version.model.visibility) == ("net", "finds", "public")
    assert task.made == version
    assert not trials.home(task.job).exists()


def test_way_becomes_a_further_version_of_a_model(alice, tmp_path):
    first = foreign.import_file(
        alice, seeing.model(tmp_path / "net.onnx", "yolo"), task="detection", labels=seeing.CLASSES, pixels="unit"
    )
    path = seeing.model(tmp_path / "better.onnx", "end2end")
    task = tried.submitted(
        alice, path, pictures=PICTURES, declared=Declared(labels=seeing.CLASSES), name="", model=first.model
    )
    tried.ran(task)

    version = trials.use(task=task, rank=1, by=alice)

    assert (version.model, version.number) == (first.model, 2)


def test_trial_is_used_once(alice, tmp_path):
    task = tried.submitted(alice, seeing.model(tmp_path / "net.onnx", "yolo"), pictures=PICTURES)
    tried.ran(task)
    stale = ModelTask.objects.get(pk=task.pk)
    trials.use(task=task, rank=1, by=alice)

    with pytest.raises(trials.AlreadyUsed, match=r"net v1 was already created from this test.") as refused:
        trials.use(task=task, rank=2, by=alice)
    with pytest.raises(DomainError):  # of two at once one wins
        trials.use(task=stale, rank=2, by=alice, name="another")

    assert refused.value.facts == {"version": task.made.pk}
    assert ModelVersion.objects.count() == 1


def test_two_who_use_at_once_make_one_version(alice, tmp_path, monkeypatch):
    task = tried.submitted(alice, seeing.model(tmp_path / "net.onnx", "yolo"), pictures=PICTURES)
    tried.ran(task)
    stale = ModelTask.objects.get(pk=task.pk)
    keep = monkeypatch.setattr(trials.disk_files, "remove_tree", lambda _path: None)
    trials.use(task=task, rank=1, by=alice)

    with pytest.raises(trials.AlreadyUsed, match="net v1"):
        trials.use(task=stale, rank=1, by=alice, name="another")

    assert keep is None
    assert not Model.objects.filter(name="another").exists()


def test_nothing_that_makes_sense_is_said_with_what_to_do(alice, tmp_path):
    path = foreign.net(tmp_path / "net.onnx", {"output0": np.zeros((1, 11, 336))}, size=128)
    task = tried.submitted(alice, path, pictures=PICTURES)

    tried.ran(task)

    assert task.message.code == "model_task.nothing_works"
    assert not task.figures.get("works")


def test_free_input_is_tried_with_a_usual_size(alice, tmp_path):
    path = seeing.free(tmp_path / "net.onnx")

    task = tried.submitted(alice, path, pictures=PICTURES)

    assert {
        (declaration.width, declaration.height)
        for declaration in trials.ways_of(task)
        if declaration.task == "detection"
    } == {(640, 640)}


# what is refused


def test_all_that_is_wrong_is_said_at_once(alice, tmp_path):
    path = seeing.model(tmp_path / "net.onnx", "yolo")

    with pytest.raises(DomainError) as refused:
        tried.submitted(alice, path, declared=Declared(pixels="odd"), name="a/b\0")

    assert {error.blamed for error in refused.value.every} == {"name", "pixels", "pictures"}
    assert not ModelTask.objects.exists()
    assert not list((settings.DATA_ROOT / "models").glob(".*"))


def test_too_many_pictures_are_refused(alice, tmp_path):
    path = seeing.model(tmp_path / "net.onnx", "yolo")

    with pytest.raises(Invalid, match="Choose at most 6 images:"):
        tried.submitted(alice, path, pictures=[seeing.picture()] * 7)


def test_archive_of_torch_and_a_model_that_describes_itself_are_not_tried(alice, tmp_path):
    (tmp_path / "net.pt").write_bytes(b"x")
    own = factory.zipped(tiny.detector(tmp_path / "own"), tmp_path / "own.zip")

    with pytest.raises(trials.CannotTry, match="Export the model as ONNX"):
        tried.submitted(alice, tmp_path / "net.pt", pictures=PICTURES)
    with pytest.raises(trials.CannotTry, match=r"The model.json already defines everything that could be tested."):
        tried.submitted(alice, own, pictures=PICTURES)


def test_heads_that_are_not_decoded_are_refused_with_what_to_do(alice, tmp_path):
    path = foreign.net(tmp_path / "net.onnx", {f"o{s}": np.zeros((1, 3, s, s, 12)) for s in (16, 8, 4)}, size=128)

    with pytest.raises(trials.CannotTry, match="with its head decoded"):
        tried.submitted(alice, path, pictures=PICTURES)


def test_end_to_end_without_names_asks_for_them(alice, tmp_path):
    path = seeing.model(tmp_path / "net.onnx", "ssd")

    with pytest.raises(Invalid, match="Name the classes of the model"):
        tried.submitted(alice, path, pictures=PICTURES, declared=Declared(task="detection", layout="ssd"))


@pytest.mark.parametrize("evil", ["external", "custom", "text"])
def test_unsafe_and_broken_files_are_refused_before_any_job(alice, tmp_path, evil):
    path = seeing.evil(tmp_path / "net.onnx", evil)

    with pytest.raises(ModelRefused):
        tried.submitted(alice, path, pictures=PICTURES)

    assert not Job.objects.exists()


def test_huge_outputs_fall_out_and_end_nothing_else(alice, tmp_path):
    path = seeing.huge(tmp_path / "net.onnx")
    task = tried.submitted(alice, path, pictures=PICTURES)

    log = tried.ran(task)

    assert task.job.state == "succeeded", log
    assert set(results_of(task).fallen.values()) == {"does_not_run"}


def test_model_that_never_ends_is_ended_and_said_so(alice, tmp_path, monkeypatch):
    monkeypatch.setattr(trials, "SECONDS", 1)
    task = tried.submitted(alice, seeing.endless(tmp_path / "net.onnx"), pictures=PICTURES)

    tried.ran(task)

    assert task.job.max_runtime == trials.MAX_DURATION
    assert task.job.state == "failed"
    assert (task.message.code, task.message.facts) == ("model_task.too_long", {"seconds": 2})


def test_pictures_that_are_none_and_bombs_are_left_out(alice, tmp_path):
    path = seeing.model(tmp_path / "net.onnx", "yolo")
    bomb = seeing.bomb()
    bad = tried.submitted(alice, path, pictures=[b"no picture", bomb], name="bad")
    good = tried.submitted(alice, path, pictures=[b"no picture", bomb, seeing.picture()], name="good")

    tried.ran(bad)
    log = tried.ran(good)

    assert bad.message.code == "model_task.no_pictures"
    assert good.figures["pictures"] == 1
    assert "1.png is left out" in log
    assert results_of(good).pictures[0]["name"] == "2.png"


def test_large_picture_is_shown_small(alice, tmp_path):
    task = tried.submitted(
        alice,
        seeing.model(tmp_path / "net.onnx", "yolo"),
        pictures=[seeing.picture(3000, 1800, (900, 360, 2100, 1440))],
    )

    tried.ran(task)

    (shown,) = results_of(task).pictures
    assert (shown["width"], shown["height"]) == (1280, 768)
    assert (RunDir.for_attempt(task.job_id, 1).outputs / "pictures" / "0.jpg").stat().st_size < 1 << 20


def test_forged_outputs_are_cut_down(alice, tmp_path):
    task = tried.submitted(alice, seeing.model(tmp_path / "net.onnx", "yolo"), pictures=PICTURES)
    outputs = RunDir.for_attempt(task.job_id, 1).outputs
    outputs.mkdir(parents=True)
    forged = {
        "pictures": [{"name": "\0", "width": 1e12, "height": -4, "truth": [{"box": "x"}]}] * 40, "with_truth": "yes",
        "best": [{"n": 999, "score": 7}, {"n": 0, "score": "1", "answers": [[{"box": [1, 2]}, 4], "x"]},
                 {"n": 0, "score": 1}, 5],
        "fallen": [{"n": 1, "code": "<b>"}, {"n": -5, "code": "same"}],
    }  # fmt: skip
    (outputs / "tried.json").write_text(json.dumps(forged))

    results_ = results_of(task)

    assert [row.number for row in results_.best] == [0]
    assert (len(results_.pictures), results_.pictures[0]["width"], results_.pictures[0]["height"]) == (6, 1280, 1)
    assert (results_.best[0].score, results_.fallen, results_.with_truth) == (0.0, {}, False)
    assert trials_page(alice, task) == 200


def test_data_that_is_withdrawn_is_not_shown_to_the_model(alice, bob, tmp_path):
    version = annotated(bob)
    path = seeing.model(tmp_path / "net.onnx", "yolo")
    task = tried.submitted(alice, path, version=version)
    set_state(task.job, "running")

    with pytest.raises(Vanished):
        ModelTaskKind().prepare(task.job, task.job.attempts.get(), RunDir.for_attempt(task.job_id, 1))
