"""A new task is registered, and nothing else of the product changes; the tasks that are there keep to their files."""

from __future__ import annotations

import ast
import json
import re
import time
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.core.exceptions import ValidationError
from django.template.loader import get_template
from django.urls import reverse
from django.utils.module_loading import import_string
from onnx import TensorProto, helper, numpy_helper

from aiplatform.templatetags.ui import icon_names
from datasets.formats import neutral
from datasets.formats.annotation_kinds import LABELS
from inference.evaluation import evaluations
from inference.kit.contracts import served_task
from inference.kit.model_io.engine import Engine
from inference.kit.model_io.requested import Requested
from inference.kit.models import model_json
from inference.kit.samples import ground_truth
from inference.kit.task_kinds import TASKS as SERVED
from inference.registry import registration as registry
from inference.registry.formats.folder import RefusedModel, survey
from inference.registry.models import ModelVersion
from inference.serving import endpoints
from inference.serving.server.service import Call, Service
from inference.serving.server.settings import Settings
from tests.architecture import counting
from tests.architecture.code import APPS, ROOT, modules_with, tree, where
from tests.architecture.counting import scoring
from tests.factories import models as factory
from tests.factories import training as trainings
from tests.factories import work
from tests.inference import judged, pictures, tiny, versions
from training.catalog.task_kinds import TASKS, preset_for
from training.presets.catalog import PRESETS
from training.programs import data_checks
from training.runs import drafts, jobs
from training.runs.models import TrainingJob

API = "/api/v1/training/jobs/"


@pytest.fixture
def registered(monkeypatch, settings):
    """Its three lines: in training/task_kinds, in training/presets/catalog.py, in inference/kit/task_kinds."""
    first, *others = settings.TEMPLATES
    folder = Path(counting.__file__).parent / "templates"
    settings.TEMPLATES = [{**first, "DIRS": [*first["DIRS"], folder]}, *others]
    monkeypatch.setitem(PRESETS, counting.CARD.name, counting.CARD)
    monkeypatch.setitem(SERVED, counting.SERVED.name, counting.SERVED)
    with TASKS.temporarily(counting.TASK):
        yield


@pytest.fixture
def machine(db):
    return work.node(cores=4)


@pytest.fixture
def boxes(alice):
    return trainings.version(alice, "cells")


@pytest.fixture
def labels(alice):
    return trainings.version(alice, "digits", task=neutral.CLASSES)


def counter(folder: Path, size: int = 8, factor: float = 100.0) -> Path:
    """A model that counts by how bright the picture is: `factor` times the mean of its pixels (0..1)."""
    nodes = [
        helper.make_node("GlobalAveragePool", ["images"], ["means"]),
        helper.make_node("Flatten", ["means"], ["flat"], axis=1),
        helper.make_node("ReduceMean", ["flat"], ["mean"], axes=[1], keepdims=1),
        helper.make_node("Mul", ["mean", "factor"], ["count"]),
    ]
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, size, size])
    count = helper.make_tensor_value_info("count", TensorProto.FLOAT, ["n", 1])
    constant = numpy_helper.from_array(tiny.np.array([factor], "f4"), "factor")
    given = tiny.input_of(size, mean=[0, 0, 0], std=[255, 255, 255])
    tiny.describe(folder, task="counting", classes=tiny.COLOURS, input=given, output={"count": "count"})
    return tiny.write(folder, helper.make_graph(nodes, "counter", [images], [count], [constant]))


@pytest.fixture
def model(alice, tmp_path, registered):
    archive = factory.zipped(counter(tmp_path / "counter"), tmp_path / "counter.zip")
    return registry.register_upload(user=alice, archive=archive, filename=archive.name, name="counter")


# ---- training ------------------------------------------------------------------------------------------------


def test_new_task_stands_in_the_catalogue_of_page_and_api(registered, as_alice, api):
    page = as_alice.get("/training/presets/?q=counter").content.decode()
    answer = api.get("/api/v1/training/presets/count/").json()

    assert "Object counter" in page
    assert f"{counting.TASK.label}</span>" in page
    assert (answer["task"], answer["title"]) == ("counting", "Object counter")


def test_new_task_is_submitted_by_form_and_api(registered, machine, as_alice, api, boxes):
    offered = as_alice.get("/training/new/").content.decode()
    sent = {"name": "many", "version": boxes.pk, "preset": "count", "gpus_per_node": 0, "cpus": 1, "nodes": 1}
    page = as_alice.post("/training/new/", {**sent, "processes": 0, "priority": 0, "count__lr": "0.5"})
    answer = api.post(API, {"name": "more", "version": boxes.pk, "preset": "count"}, format="json")

    assert 'value="count"' in offered
    assert (page.status_code, answer.status_code) == (302, 201)
    assert list(TrainingJob.objects.order_by("pk").values_list("preset", flat=True)) == ["count", "count"]
    assert TrainingJob.objects.order_by("pk")[0].params["lr"] == 0.5


def test_new_task_refuses_other_data_with_its_own_sentence(registered, machine, alice, as_alice, api, labels):
    said = "Object counter counts boxes; digits v1 has: One class per image."
    sent = {"name": "many", "version": labels.pk, "preset": "count", "gpus_per_node": 0, "cpus": 1, "nodes": 1}
    page = as_alice.post("/training/new/", {**sent, "processes": 0, "priority": 0})
    answer = api.post(API, {"name": "many", "version": labels.pk, "preset": "count"}, format="json")

    assert page.context["form"].errors["version"] == [said]
    assert (answer.status_code, answer.json()["code"], answer.json()["detail"]) == (409, "wrong_task", said)
    with pytest.raises(data_checks.WrongTask, match="counts boxes"):
        jobs.submit(user=alice, request=drafts.TrainingRequest(name="many", version=labels, preset="count"))
    assert not TrainingJob.objects.exists()


def test_preset_for_data_is_that_of_the_first_task_that_accepts_it(registered, boxes, labels):
    with TASKS.temporarily(counting.TASK, alone=True):
        assert (preset_for(boxes), preset_for(labels)) == ("count", "")
    assert preset_for(boxes) != "count"


# ---- models at work ------------------------------------------------------------------------------------------


def test_new_task_of_a_model_is_read_from_its_files_and_shown(model, as_alice):
    page = as_alice.get(reverse("inference:model-detail", args=[model.model_id])).content.decode()
    listed = as_alice.get(reverse("inference:model-list")).content.decode()

    assert ModelVersion._meta.get_field("task").clean("counting", model) == "counting"
    assert (model.task, model.can_be_evaluated, model.can_serve) == ("counting", True, True)
    assert f"<dd>{counting.TASK.label}</dd>" in page
    assert f"<td>{counting.TASK.label}</td>" in listed


def test_unregistered_task_of_a_model_is_refused_and_the_tasks_there_are_named(tmp_path):
    with pytest.raises(RefusedModel, match="'counting'; known are detection, classification, segmentation"):
        survey(counter(tmp_path))
    with pytest.raises(ValidationError, match="counting"):
        ModelVersion._meta.get_field("task").clean("counting", None)


def test_new_task_scores_recorded_answers_by_its_scorer(registered, tmp_path):
    known = ground_truth.read(versions.detection(tmp_path), "test")  # five objects on each image
    kept = [{"path": s.path, "id": s.id, "count": 3 + place} for place, s in enumerate(known.samples)]

    found, images = scoring.evaluate(known, kept)

    assert found["summary"] == {"mae": (2 + 1 + 0 + 1 + 2) / 5}
    assert [image["badness"] for image in images] == [2, 2, 1, 1, 0]


def test_new_task_evaluation_runs_and_is_shown(model, alice, as_alice, tmp_path):
    made = judged.judged(alice, model, judged.dataset_version(alice, tmp_path / "data", task=neutral.SHAPES))

    outputs = judged.RunDir.for_attempt(made.job_id, 1).outputs
    images = [json.loads(line) for line in (outputs / "images.jsonl").read_text().splitlines()]
    figure = sum(abs(image["there"] - image["said"]) for image in images) / 5
    page = as_alice.get(reverse("inference:evaluation-detail", args=[made.pk])).content.decode()
    gallery = as_alice.get(reverse("inference:evaluation-images", args=[made.pk])).content.decode()
    listed = as_alice.get(reverse("inference:evaluation-list")).content.decode()

    assert made.metrics == {"mae": pytest.approx(figure)}
    assert len((outputs / "counts.csv").read_text().splitlines()) == 5
    assert f'<span class="label">MAE</span><span class="big">{figure:.3f}</span>' in page
    assert 'id="gallery"' in page
    assert 'id="threshold"' not in page
    assert "evaluation.js" not in page
    assert f"{images[0]['said']} of 5" in gallery
    assert f'{figure:.3f}<div class="small muted">MAE</div>' in listed


def test_new_task_evaluation_refuses_other_data(model, alice, labels):
    with pytest.raises(
        evaluations.CannotEvaluate, match="counting model cannot be evaluated on a dataset for one class"
    ):
        evaluations.submit(user=alice, model_version=model, version=labels)


async def test_new_task_is_answered_by_the_model_server(registered, tmp_path):
    folder = counter(tmp_path)
    service = Service(Settings(model_dir=folder), model_json.load(folder), Engine(folder / "model.onnx"))
    service.start()
    try:
        call = Call(time.monotonic() + 30)
        answer = await service.predict(pictures.plain("green"), Requested(), call, lambda: None)
    finally:
        await service.stop()

    assert (answer["task"], answer["predictions"]) == ("counting", [{"count": 33.33}])


def test_new_task_is_tried_on_the_service_page_by_its_own_script(model, alice, as_alice):
    service = endpoints.create(user=alice, name="demo", model_version=model)

    page = as_alice.get(reverse("inference:service-detail", args=[service.pk])).content.decode()

    assert "inference/task_kinds/counting.js" in page
    assert 'id="drop"' in page
    assert 'id="score"' not in page
    assert "[&quot;count&quot;])" in page


# ---- the tasks that are there --------------------------------------------------------------------------------

#: Besides the tasks' own files these may say the name of one, and why.
ALSO = {
    "datasets/formats/neutral.py": "words of rows and files for what images carry, older than tasks of their own",
    "inference/kit/contracts/served_task.py": "the same words where the datasets are not: inside a run",
}
#: Fields of COCO's annotations are called like tasks; these read and write such files and know no task.
COCO_FIELDS = {"segmentation", "keypoints", "instances"}
COCO_ROOMS = (
    *("datasets/", "annotation/", "aiplatform/cli/demo/", "inference/registry/prediction_shapes.py"),
    *(f"training/presets/{name}.py" for name in ("masks", "skeletons", "keypoints", "instances")),
)
#: Where the tasks are listed: a new one is a line in each, and its texts one entry in the translations.
LISTED = {
    "training/catalog/task_kinds/__init__.py",
    "training/presets/catalog.py",
    "inference/kit/task_kinds/__init__.py",
}


def is_own(path: Path) -> bool:
    """Whether a file belongs to one task: in a room of task kinds and called after it, or the card of a preset."""
    parts = {part.split(".")[0] for part in path.relative_to(ROOT).parts}
    named = "task_kinds" in parts and parts & set(TASKS.names())
    return bool(named) or path in {ROOT / f"training/presets/{name}_card.py" for name in PRESETS}


def names_said_in_code() -> list[str]:
    said = set(TASKS.names())
    return [
        where(path, node.lineno)
        for path in modules_with("|".join(said), "aiplatform", *APPS)
        if not is_own(path)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Constant) and node.value in said and not is_coco_field(path, node.value)
    ]


def is_coco_field(path: Path, word: str) -> bool:
    return word in COCO_FIELDS and str(path.relative_to(ROOT)).startswith(COCO_ROOMS)


def names_said_in_pages() -> list[str]:
    word = re.compile("[\"'`](" + "|".join(TASKS.names()) + ")[\"'`]")
    files = [*(ROOT / "templates").rglob("*.html"), *ROOT.glob("*/static/**/*.js")]
    return [
        where(path, number)
        for path in files
        if not is_own(path)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if word.search(line)
    ]


def test_task_names_stand_only_in_their_own_files():
    found = [*names_said_in_code(), *names_said_in_pages()]

    assert len(ALSO) <= 4
    assert {place.rsplit(":", 1)[0] for place in found} == set(ALSO), found


def test_task_files_are_imported_only_where_tasks_are_listed():
    own = re.compile(rf"task_kinds\.({'|'.join(TASKS.names())})\b|({'|'.join(PRESETS)})_card\b")
    importers = {
        str(path.relative_to(ROOT))
        for path in modules_with(r"task_kinds|_card\b", "aiplatform", *APPS)
        if not is_own(path) and not (path.parent.name == "presets" and path.stem in PRESETS)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
        if own.search(f"{getattr(node, 'module', '') or ''}.{alias.name}")
    }

    assert importers == LISTED
    assert len(LISTED) <= 4


def test_tasks_and_their_data_are_the_same_on_both_sides():
    assert {task.name: task.data for task in TASKS} == {task.name: task.data for task in SERVED.values()}
    assert (served_task.SHAPES, served_task.CLASSES) == (neutral.SHAPES, neutral.CLASSES)
    assert set(LABELS) == {neutral.NONE, neutral.SHAPES, neutral.CLASSES}
    for task in TASKS:
        assert len(task.name) <= 15
        assert task.icon in icon_names()
        assert set(task.data) <= set(LABELS)
        assert PRESETS[task.preset].task == task.name
    assert {preset.task for preset in PRESETS.values()} <= set(TASKS.names())


@pytest.mark.parametrize("task", SERVED.values(), ids=list(SERVED))
def test_task_names_only_things_that_are_there(task):
    pages = task.pages
    for template in (*pages.sections, pages.caption, pages.overlay, pages.legend, pages.try_controls):
        assert not template or get_template(template)
    for script in (pages.script, pages.try_script):
        assert not script or finders.find(script)
    for function in ("lines", "evaluate", "files"):
        assert callable(import_string(f"{task.scoring}.{function}"))
    assert set(pages.headline) <= {figure.key for figure in pages.figures}
