"""Composed versions in the registry: made through the API and the page, refused in words, used like any version."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile

import pytest
from django.urls import reverse

from accounts.access import sharing
from aiplatform.lib.errors import DomainError
from inference.conversion import conversions
from inference.kit.models import model_json
from inference.kit.models.standalone import Model as Alone
from inference.registry import lineage, packages
from inference.registry import registration as registry
from inference.registry.composition import compatibility, composition
from inference.registry.composition.models import VersionPart
from inference.registry.formats import folder
from inference.registry.models import Model, ModelVersion, Stage
from inference.serving import endpoints
from tests.factories import models as factory
from tests.inference import judged, pictures, predicted
from tests.inference.parted import changed

pytestmark = pytest.mark.django_db
PICTURE = pictures.with_boxes({(0, 0, 16, 16): "red", (64, 32, 80, 48): "green"})


@pytest.fixture
def pair(alice, tmp_path):
    """Two detectors of Alice's."""
    return [factory.model_version(alice, tmp_path, name=name) for name in ("one", "two")]


@pytest.fixture
def data(alice, tmp_path):
    return judged.dataset_version(alice, tmp_path / "data")


def ensemble(alice, parts, **options) -> ModelVersion:
    return composition.compose(user=alice, kind="ensemble", parts=parts, **options)


def test_version_is_composed_by_the_api_and_answers(api, pair):
    sent = {"kind": "ensemble", "parts": ["one:1", pair[1].pk], "weights": [2, 1], "name": "both"}

    made = api.post("/api/v1/models/compose/", sent, format="json")

    assert made.status_code == 201, made.content
    version = ModelVersion.objects.get(pk=made.json()["id"])
    assert (str(version), version.task, version.source, version.architecture) == (
        "both v1", "detection", "compose", "ensemble"
    )  # fmt: skip
    assert [entry["name"] for entry in version.files] == ["model.json", "part1.onnx", "part2.onnx"]
    assert version.sha256 == version.files[0]["sha256"]
    assert [(part.place, part.source, part.source_label, part.weight) for part in version.parts.all()] == [
        (1, pair[0], "alice/one v1", 2.0), (2, pair[1], "alice/two v1", 1.0)
    ]  # fmt: skip
    graph = model_json.load(version.path).graph
    assert graph is not None
    assert (graph.method, graph.iou, [part.weight for part in graph.parts]) == ("wbf", 0.55, [2.0, 1.0])
    answers = [Alone(item.path).predict(PICTURE)["predictions"] for item in (pair[0], version)]
    assert [(item["name"], item["box"]) for item in answers[0]] == [(item["name"], item["box"]) for item in answers[1]]


def test_chain_takes_the_margin_that_its_second_part_learned(alice, pair, tmp_path):
    second = factory.model_version(alice, tmp_path, name="kinds", task="classification")
    changed(second.path, input={"scope": "object", "margin": 0.25})

    usual = composition.compose(user=alice, kind="chain", parts=[pair[0], second])
    own = composition.compose(user=alice, kind="chain", parts=[pair[0], second], margin=0.0, model=usual.model)

    assert (usual.model.name, own.number) == ("one_chain", 2)
    assert [model_json.load(item.path).graph.margin for item in (usual, own)] == [0.25, 0.0]
    assert usual.facts["graph"] == {"kind": "chain", "margin": 0.25, "min_score": 0.3, "only": []}


def test_everything_that_does_not_fit_is_refused_at_once(api, alice, pair, tmp_path):
    other = factory.model_version(alice, tmp_path, name="kinds", task="classification")
    ModelVersion.objects.filter(pk=pair[1].pk).update(stage=Stage.ARCHIVED)
    factory.model_version(alice, tmp_path, name="taken")
    sent = {
        "kind": "ensemble", "parts": [pair[0].pk, pair[1].pk, other.pk], "weights": [1, 0], "name": "taken",
        "way": "mean",
    }  # fmt: skip

    refused = api.post("/api/v1/models/compose/", sent, format="json")

    assert refused.status_code == 409
    content = refused.json()
    assert {"parts", "weights", "name", "way"} <= set(content["errors"])
    assert len(content["errors"]["parts"]) == 2  # archived; for another task
    assert len(content["errors"]["weights"]) == 2
    assert not ModelVersion.objects.filter(source="compose").exists()


@pytest.mark.parametrize(("kind", "tasks", "options", "why"), [
    ("ensemble", ["embedding", "embedding"], {}, "Predictions of the task “Similarity” cannot be combined."),
    ("ensemble", ["detection"], {}, "2 to 5 different parts"),
    ("chain", ["classification", "classification"], {}, "starts with a detector"),
    ("chain", ["detection", "segmentation"], {}, "classifier or a tagger"),
    ("chain", ["detection", "classification"], {"only": ["cat"]}, "no class cat"),
    ("loop", ["detection", "detection"], {}, "ensemble or a chain"),
])  # fmt: skip
def test_versions_that_do_not_answer_together_are_refused(alice, tmp_path, kind, tasks, options, why):
    parts = [factory.model_version(alice, tmp_path, name=f"m{n}", task=task) for n, task in enumerate(tasks)]

    with pytest.raises(DomainError, match=why):
        composition.compose(user=alice, kind=kind, parts=parts, **options)


def test_composed_and_tiled_versions_and_other_classes_are_no_parts(alice, pair, tmp_path):
    both = ensemble(alice, pair)
    tiled = factory.model_version(alice, tmp_path, name="tiled")
    ModelVersion.objects.filter(pk=tiled.pk).update(
        facts={"input": {"tile": {"overlap": 0.2}}}, classes=[{"id": 1, "name": "cat"}]
    )
    tiled.refresh_from_db()

    with pytest.raises(compatibility.CannotCompose) as refused:
        ensemble(alice, [pair[0], both, tiled])

    assert "is itself combined. Choose its parts." in refused.value.sentences
    assert "tiles" in refused.value.sentences
    assert "blue, cat, green, red" in refused.value.sentences


def test_files_that_fit_by_their_rows_alone_are_refused_by_what_they_say(alice, pair):
    changed(pair[1].path, input={"scope": "object"})

    with pytest.raises(compatibility.CannotCompose, match="all look at pictures"):
        ensemble(alice, pair)


def test_part_that_one_may_not_see_does_not_exist(api, alice, bob, client, pair, tmp_path):
    hidden = factory.model_version(bob, tmp_path, name="hidden")
    client.force_login(alice)

    answer = api.post("/api/v1/models/compose/", {"kind": "ensemble", "parts": [pair[0].pk, hidden.pk]}, format="json")
    page = client.post(reverse("inference:model-compose"), {
        "part1": pair[0].pk, "part2": hidden.pk, "iou": "0.55", "visibility": "private",
    })  # fmt: skip

    assert answer.status_code == 400
    assert "does not exist" in json.dumps(answer.json())
    assert page.status_code == 422
    assert "part2" in page.context["form"].errors
    assert b"hidden v1" not in client.get(reverse("inference:model-compose")).content


def test_version_is_added_to_own_models_only(api, alice, bob, pair, tmp_path):
    foreign = factory.model_version(bob, tmp_path, name="shared", visibility="public").model
    sent = {"kind": "ensemble", "parts": [part.pk for part in pair], "model": foreign.pk}

    refused = api.post("/api/v1/models/compose/", sent, format="json")
    added = api.post("/api/v1/models/compose/", sent | {"model": pair[0].model_id}, format="json")

    assert refused.status_code == 403
    assert (added.status_code, added.json()["number"]) == (201, 2)


def test_composed_version_outlives_its_parts_and_says_what_they_were(client, alice, pair):
    version = ensemble(alice, pair)
    before = Alone(version.path).predict(PICTURE)["predictions"]
    client.force_login(alice)
    page = reverse("inference:model-detail", args=[version.model_id])
    assert f'href="{reverse("inference:model-detail", args=[pair[0].model_id])}' in client.get(page).content.decode()
    assert {("one v1", "part"), ("two v1", "part")} == {
        (lineage.build_graph(version, alice).nodes[a].label, how)
        for a, _b, how in lineage.build_graph(version, alice).edges
    }
    assert str(version) in [node.label for node in lineage.build_graph(pair[0], alice).nodes.values()]

    for part in pair:
        registry.delete(model=part.model, by=alice)

    shown = client.get(page).content.decode()
    assert "alice/one v1" in shown
    assert "its files were copied" in shown
    assert Alone(version.path).predict(PICTURE)["predictions"] == before
    assert endpoints.create(user=alice, name="goes on", model_version=version).model_version == version
    graph = lineage.build_graph(version, alice)
    assert {node.label for node in graph.nodes.values() if node.kind == "file"} == {"alice/one v1", "alice/two v1"}


def test_who_may_see_the_composed_version_sees_no_link_to_a_hidden_part(client, alice, bob, pair):
    version = ensemble(alice, pair, visibility="public")
    client.force_login(bob)

    shown = client.get(reverse("inference:model-detail", args=[version.model_id])).content.decode()

    assert "alice/one v1" in shown
    assert reverse("inference:model-detail", args=[pair[0].model_id]) not in shown
    assert VersionPart.objects.visible_to(bob).count() == 2


def test_page_composes_a_chain(client, alice, pair, tmp_path):
    second = factory.model_version(alice, tmp_path, name="kinds", task="tagging")
    client.force_login(alice)
    page = f"{reverse('inference:model-compose')}?kind=chain"
    sent = {
        "first": pair[0].pk, "second": second.pk, "min_score": "0.5", "margin": "0.1", "only": "red, blue",
        "name": "reader", "visibility": "private",
    }  # fmt: skip

    wrong = client.post(page, sent | {"only": "cat", "min_score": "2"})
    odd = client.post(page, sent | {"only": "cat"})
    made = client.post(page, sent)

    assert (wrong.status_code, odd.status_code) == (422, 422)
    assert "min_score" in wrong.context["form"].errors
    assert "only" in odd.context["form"].errors
    version = ModelVersion.objects.get(model__name="reader")
    assert made.headers["Location"] == f"{reverse('inference:model-detail', args=[version.model_id])}?version=1"
    assert [model_class["name"] for model_class in version.classes] == ["red", "green", "blue"]
    shown = client.get(made.headers["Location"]).content.decode()
    assert "Only objects of red, blue are classified." in shown


def test_conversion_of_a_composed_version_is_refused_with_what_to_do(client, alice, pair, data):
    version = ensemble(alice, pair)
    client.force_login(alice)

    with pytest.raises(
        conversions.CannotConvert, match=r"is combined from other versions. Convert those, and combine the"
    ):
        conversions.submit(user=alice, model_version=version, version=data)
    form = client.get(reverse("inference:conversion-new")).content.decode()
    assert str(version) not in form
    assert str(pair[0]) in form


def test_composed_files_do_not_come_back_as_an_upload(alice, pair, tmp_path):
    version = ensemble(alice, pair)
    lone = tmp_path / "lone"
    lone.mkdir()
    (lone / "model.json").write_bytes((version.path / "model.json").read_bytes())
    (lone / "model.onnx").write_bytes((version.path / "part1.onnx").read_bytes())

    with pytest.raises(folder.RefusedModel, match="describes a combined model"):
        folder.survey(lone)
    with pytest.raises(folder.RefusedModel, match=r"more than one \.onnx"):
        folder.survey(version.path)


def test_evaluation_judges_a_composed_version(alice, pair, data):
    version = ensemble(alice, pair)

    evaluations = [judged.judged(alice, item, data) for item in (pair[0], version)]

    assert evaluations[1].metrics["map"] == pytest.approx(evaluations[0].metrics["map"], abs=1e-9)
    assert evaluations[1].metrics["map"] > 0


def test_prediction_answers_with_a_chain_as_its_service_does(alice, pair, data, tmp_path):
    second = factory.model_version(alice, tmp_path, name="kinds", task="classification")
    version = composition.compose(user=alice, kind="chain", parts=[pair[0], second])
    prediction = predicted.submitted(alice, version, data)

    log = predicted.ran(prediction)

    lines = predicted.answers(prediction)
    assert prediction.summary["complete"], log
    assert prediction.summary["predictions"] > 0
    assert {"detected", "class_score"} <= set(lines[0]["predictions"][0])
    first = next((data.path / "images").rglob(lines[0]["path"]), None) or next(data.path.rglob(lines[0]["path"]))
    assert lines[0]["predictions"] == predicted.served(version.path, [first.read_bytes()])[0]


def test_package_of_a_composed_version_answers_by_one_command(api, alice, pair, tmp_path):
    version = ensemble(alice, pair)
    answer = api.get(f"/api/v1/model-versions/{version.pk}/package/")
    (tmp_path / "package.zip").write_bytes(b"".join(answer.streaming_content))
    with zipfile.ZipFile(tmp_path / "package.zip") as archive:
        archive.extractall(tmp_path / "package")
        names = set(archive.namelist())
    (tmp_path / "one.png").write_bytes(PICTURE)

    done = subprocess.run(
        [sys.executable, "-P", str(tmp_path / "package" / "run.py"), str(tmp_path / "one.png")],
        cwd=tmp_path, env={"PATH": "/usr/bin"}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["predictions"] == Alone(version.path).predict(PICTURE)["predictions"]
    assert {"model/part1.onnx", "model/part2.onnx", "model/model.json"} <= names
    assert not [name for name in names if name.startswith("use/")]  # those lines know one network
    assert "inference/kit/models/composed.py" in packages.code()


def test_row_goes_with_its_version_and_files_are_gone(alice, pair):
    version = ensemble(alice, pair)
    path = version.path

    registry.delete(model=version.model, by=alice)

    assert not VersionPart.objects.exists()
    assert not path.exists()
    assert Model.objects.filter(pk=pair[0].model_id).exists()


def test_version_shared_for_looking_alone_is_no_part(api, alice, bob, pair, tmp_path):
    shared = factory.model_version(bob, tmp_path, name="seen")
    sent = {"kind": "ensemble", "parts": [pair[0].pk, shared.pk], "name": "both"}
    sharing.set_level(shared.model, alice, sharing.VIEW)
    looked = api.post("/api/v1/models/compose/", sent, format="json")
    sharing.set_level(shared.model, alice, sharing.USE)
    used = api.post("/api/v1/models/compose/", sent, format="json")

    assert (looked.status_code, used.status_code) == (400, 201)
