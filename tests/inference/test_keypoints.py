"""Keypoints at work: answers in a picture's own pixels, regions of a picture, figures from stored points."""

from __future__ import annotations

import json
import math
import time

import pytest
from django.urls import reverse

from inference.evaluation.evaluator.__main__ import evaluate
from inference.kit.model_io import decode
from inference.kit.model_io.engine import Engine
from inference.kit.model_io.refusals import BadRequest
from inference.kit.model_io.requested import Requested
from inference.kit.model_io.spec import InputSpec
from inference.kit.models import model_json
from inference.kit.samples import ground_truth
from inference.kit.task_kinds.keypoints import scoring
from inference.serving import endpoints
from inference.serving.server.service import Call, Service
from inference.serving.server.settings import Settings
from tests.factories import models as factory
from tests.inference import judged, pictures, tiny, versions
from tests.inference.running import a_run

TWO = {(20, 80, 40, 100): "red", (100, 20, 110, 30): "green"}


async def answer_of(folder, picture: bytes, **requested) -> dict:
    service = Service(Settings(model_dir=folder), model_json.load(folder), Engine(folder / "model.onnx"))
    service.start()
    try:
        options = Requested.from_query(requested)
        return await service.predict(picture, options, Call(time.monotonic() + 30), lambda: None)
    finally:
        await service.stop()


# ---- answers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("region", "name", "position"),
    [
        ({}, "red", (30, 90)),  # of the whole picture: what is most of it
        ({"region": "90,10,120,40"}, "green", (105, 25)),
        ({"region": "80,-10,140,40"}, "green", (105, 25)),  # partly beside the picture
    ],
    ids=["whole", "region", "beyond"],
)
async def test_keypoint_finder_answers_in_the_pixels_of_the_picture(tmp_path, region, name, position):
    answer = await answer_of(tiny.pointer(tmp_path), pictures.with_boxes(TWO), **region)

    [prediction] = answer["predictions"]
    assert prediction["name"] == name
    assert [point["name"] for point in prediction["keypoints"]] == [f"middle_of_{name}"]
    assert [prediction["keypoints"][0][axis] for axis in "xy"] == pytest.approx(position, abs=1.5)
    assert 0.9 < prediction["keypoints"][0]["score"] <= 1


async def test_keypoint_finder_leaves_out_points_it_is_less_sure_of_than_asked(tmp_path):
    answer = await answer_of(tiny.pointer(tmp_path), pictures.with_boxes({}), score_threshold="0.5")

    assert answer["predictions"][0]["keypoints"] == []


async def test_keypoint_finder_calls_points_by_number_where_their_names_do_not_fit(tmp_path):
    folder = tiny.pointer(tmp_path)
    description = json.loads((folder / "model.json").read_text())
    description["classes"][0]["keypoints"] = ["a", "b"]
    (folder / "model.json").write_text(json.dumps(description))

    answer = await answer_of(folder, pictures.with_boxes(TWO))

    assert [point["name"] for point in answer["predictions"][0]["keypoints"]] == ["1", "2", "3"]


@pytest.mark.parametrize("region", ["1,2,3", "5,5,1,9", "a,b,c,d", "nan,0,1,1"])
def test_region_that_is_none_is_refused(region):
    with pytest.raises(BadRequest, match="region must be four numbers"):
        Requested.from_query({"region": region})


async def test_region_is_refused_beside_the_picture_and_by_models_of_whole_pictures(tmp_path):
    picture = pictures.with_boxes(TWO)

    with pytest.raises(BadRequest, match="500, 500, 600, 600 shows nothing of the picture"):
        await answer_of(tiny.pointer(tmp_path / "points"), picture, region="500,500,600,600")
    with pytest.raises(BadRequest, match="looks at whole pictures"):
        await answer_of(tiny.classifier(tmp_path / "classes"), picture, region="0,0,9,9")


def test_region_is_cut_with_its_margin_and_grey_beyond_the_picture():
    spec = InputSpec("images", 40, 40, 3, (0, 0, 0), (1, 1, 1), "letterbox", "object", 0.5)
    picture = decode.open_image(pictures.plain("red"))  # smaller than the window

    sample, placement = decode.preprocess(picture, spec, (0, 0, 10, 10))

    assert sample[0, 30, 30] == 255
    assert sample[:, 5, 5].tolist() == [decode.LETTERBOX_GREY] * 3
    assert placement.to_points([[10, 10]]).tolist() == [[0, 0]]


@pytest.mark.parametrize(("field", "value"), [("scope", "box"), ("margin", 2), ("margin", "wide")])
def test_model_json_names_what_is_wrong_with_its_scope(tmp_path, field, value):
    folder = tiny.pointer(tmp_path)
    description = json.loads((folder / "model.json").read_text())
    description["input"][field] = value

    with pytest.raises(model_json.BadModel, match=f"input.{field}"):
        model_json.parse(description)


# ---- figures -------------------------------------------------------------------------------------------------


@pytest.fixture
def finding(tmp_path):
    return a_run(tmp_path / "run", tiny.pointer(tmp_path / "model"), versions.keypoints(tmp_path / "data"))


def test_evaluator_figures_of_keypoints_are_those_counted_anew(finding):
    evaluation = evaluate(finding)

    truth = ground_truth.read(finding.dataset, "test")
    lines = [json.loads(line) for line in (finding.outputs / "predictions.jsonl").read_text().splitlines()]
    predicted = {line["id"]: line["objects"] for line in lines}
    errors = []
    for sample in truth.samples:
        own = [a for a in truth.coco["annotations"] if a["image_id"] == sample.id]
        for there, answer in zip(own, predicted[sample.id], strict=True):
            [point] = answer["points"][str(there["category_id"])].values()
            errors.append(math.dist(there["keypoints"][:2], point[:2]))
    assert len(errors) == 10
    assert evaluation["summary"]["nme"] == pytest.approx(sum(error / 40 for error in errors) / 10)
    assert evaluation["summary"]["pck05"] == pytest.approx(sum(error <= 2 for error in errors) / 10)
    assert evaluation["summary"]["pck05"] == pytest.approx(0.7, abs=0.11)  # every third is marked beside
    assert evaluation["summary"]["pck10"] < 1
    assert 0 < evaluation["summary"]["oks_ap"] < 1
    assert sum(entry["truths"] for entry in evaluation["classes"]) == 10
    assert {row["name"] for row in evaluation["points"]} <= {f"middle_of_{name}" for name in tiny.COLOURS}


def test_evaluator_shows_where_keypoints_are_wrong(finding):
    evaluate(finding)

    images = [json.loads(line) for line in (finding.outputs / "images.jsonl").read_text().splitlines()]
    assert [image["badness"] for image in images] == sorted((image["badness"] for image in images), reverse=True)
    assert images[0]["nme"] > 0.05
    assert images[0]["near"] < images[0]["points"] == 2
    assert all(point["truth"].startswith("M") and point["said"] for point in images[0]["objects"][0]["points"])


def posed(**fields) -> dict:
    person = dict(zip(scoring.PERSON, ((10.0 + 4 * n, 20.0 + 3 * n) for n in range(17)), strict=True))
    flat = [value for x, y in person.values() for value in (x, y, 2)]
    return {"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 100, 100], "area": 10_000, "iscrowd": 0,
            "keypoints": flat, "num_keypoints": 17, **fields}  # fmt: skip


def truth_of(annotations: list[dict], tmp_path, names=scoring.PERSON) -> ground_truth.Truth:
    sample = ground_truth.Sample(
        1, "1.png", 100, 100, None, [ground_truth.Box(1, (0, 0, 100, 100)) for _ in annotations]
    )
    category = {"id": 1, "name": "person", "keypoints": list(names), "skeleton": [[1, 2], [99, 1]]}
    coco = {"categories": [category], "annotations": annotations}
    return ground_truth.Truth(tmp_path, {}, "detection", (ground_truth.ModelClass(1, "person"),), [sample], coco)


def predicted_lines(shift: float = 0.0, *, boxed: bool = True, count: int = 1) -> list[dict]:
    flat = posed()["keypoints"]
    points = {n: [flat[3 * k] + shift, flat[3 * k + 1], 0.9] for k, n in enumerate(scoring.PERSON)}
    return [{"path": "1.png", "id": 1, "boxed": boxed,
             "objects": [{"class_id": 1, "score": 1.0, "points": {"1": points}}] * count}]  # fmt: skip


def test_evaluator_scores_points_that_are_the_truth_one(tmp_path):
    evaluation, [image] = scoring.evaluate(truth_of([posed()], tmp_path), predicted_lines())

    assert evaluation["summary"] == {"nme": 0, "pck05": 1, "pck10": 1, "class_accuracy": 1, "oks_ap": pytest.approx(1)}
    assert image["badness"] == 0


def test_evaluator_counts_every_object_of_a_crowded_image(tmp_path):
    crowd = [posed(id=number) for number in range(1, 41)]

    evaluation, _ = scoring.evaluate(truth_of(crowd, tmp_path), predicted_lines(count=40))

    assert evaluation["summary"]["oks_ap"] == pytest.approx(1)


def test_evaluator_oks_uses_the_sigmas_of_coco_for_its_person(tmp_path):
    """Four pixels of a hundred: OKS is the mean of exp(-16 / (2 · 10000 · (2σ)²)), which is above 0.9."""
    similarity = sum(math.exp(-16 / (2 * 10_000 * (2 * sigma) ** 2)) for sigma in scoring.SIGMAS) / 17

    evaluation, _ = scoring.evaluate(truth_of([posed()], tmp_path), predicted_lines(4.0))

    assert evaluation["summary"]["oks_ap"] == pytest.approx(math.floor((similarity - 0.45) / 0.05) / 10, abs=0.01)
    assert evaluation["summary"]["nme"] == pytest.approx(0.04)


def test_evaluator_leaves_out_points_nobody_marked_and_objects_without_any(tmp_path):
    half = posed()["keypoints"][:24] + [0] * 27
    there = truth_of([posed(keypoints=half, num_keypoints=8), posed(id=2, keypoints=[0] * 51)], tmp_path)

    evaluation, [image] = scoring.evaluate(there, predicted_lines(20.0, count=2))

    assert image["points"] == 8
    assert evaluation["classes"][0]["truths"] == 1
    assert evaluation["summary"]["pck10"] == 0


def test_evaluator_judges_a_model_of_whole_pictures_by_the_largest_object(tmp_path):
    small = posed(id=2, bbox=[0, 0, 10, 10], area=100, keypoints=[1, 1, 2] * 17)

    evaluation, _ = scoring.evaluate(truth_of([small, posed()], tmp_path), predicted_lines(boxed=False))

    assert (evaluation["summary"]["nme"], evaluation["classes"][0]["truths"]) == (0, 1)


def test_evaluator_refuses_versions_without_keypoints_or_with_others(tmp_path, finding):
    with pytest.raises(ground_truth.Unfit, match="names keypoints"):
        evaluate(a_run(tmp_path / "bare", finding.model, versions.detection(tmp_path / "boxes")))
    with pytest.raises(ground_truth.Unfit, match="share no keypoint"):
        scoring.evaluate(truth_of([posed()], tmp_path, names=[f"p{n}" for n in range(17)]), predicted_lines())


# ---- trainings and pages -------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_training_of_keypoints_is_submitted_where_a_version_has_them_and_refused_where_not(alice, api, tmp_path):
    made = versions.keypoints(tmp_path / "points")
    posed_version = judged.dataset_version(alice, tmp_path / "points", made=made)
    boxes = judged.dataset_version(alice, tmp_path / "boxes", number=2)
    address = "/api/v1/training/jobs/"

    taken = api.post(address, {"name": "poses", "version": posed_version.pk, "preset": "keypoints"}, format="json")
    refused = api.post(address, {"name": "poses2", "version": boxes.pk, "preset": "keypoints"}, format="json")

    assert taken.status_code == 201
    assert (refused.status_code, refused.json()["code"]) == (409, "wrong_task")
    assert "no class of colours_detection v2 has any. Import a COCO file" in refused.json()["detail"]


def test_evaluation_page_shows_keypoints(alice, as_alice, tmp_path):
    made = judged.evaluation(alice, tmp_path, task="keypoints")

    page = as_alice.get(reverse("inference:evaluation-detail", args=[made.pk])).content.decode()
    gallery = as_alice.get(reverse("inference:evaluation-images", args=[made.pk])).content.decode()
    listed = as_alice.get(reverse("inference:evaluation-list")).content.decode()

    assert f'<span class="label">NME</span><span class="big">{made.metrics["nme"]:.3f}</span>' in page
    assert "keypoints_evaluation.js" in page
    assert "<td>middle_of_red</td>" in page
    assert gallery.count('class="pose pose-dot pose-truth"') == 10
    value = f"{made.metrics['pck05']:.3f}"
    assert f'{value}<div class="small muted">PCK@0.05</div>' in listed


def test_service_page_lets_an_object_be_drawn(alice, as_alice, tmp_path):
    model = factory.model_version(alice, tmp_path, task="keypoints")
    service = endpoints.create(user=alice, name="demo", model_version=model)

    page = as_alice.get(reverse("inference:service-detail", args=[service.pk])).content.decode()

    assert "inference/task_kinds/keypoints.js" in page
    assert 'id="region-x1"' in page
    assert "region=x1,y1,x2,y2" in page
