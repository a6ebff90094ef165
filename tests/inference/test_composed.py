"""Composed models at work: their answers against those of their parts, run alone and joined by hand."""

from __future__ import annotations

import base64
import http.client
import io
import json
import time

import jsonschema
import numpy as np
import pytest
from PIL import Image

from inference.evaluation.evaluator.__main__ import evaluate
from inference.kit.model_io import decode
from inference.kit.model_io.spec import DecodeSpec
from inference.kit.models import boxes, model_json
from inference.kit.models.chains import cut_out
from inference.kit.models.standalone import Model
from inference.kit.speed.speed import measured
from inference.kit.task_kinds.classification import answer as classification
from inference.kit.task_kinds.detection import answer as detection
from inference.kit.task_kinds.segmentation import answer as segmentation
from inference.kit.task_kinds.tagging import answer as tagging
from inference.registry.composition.descriptions import Recipe
from inference.video.watcher.detect import Detector
from inference.video.watcher.pictures import Layout
from tests.cases import case_table
from tests.inference import pictures, tiny, versions
from tests.inference.parted import changed, folder_of, loaded
from tests.inference.running import a_run

SOME = np.random.default_rng(5)


def noise(width: int = 96, height: int = 72) -> Image.Image:
    return Image.fromarray(SOME.integers(0, 256, (height, width, 3), np.uint8))


def alone(folder, image):
    """Spec, outputs and placement of a model run by itself."""
    spec, engine = loaded(folder)
    sample, placement = decode.preprocess(image, spec.input)
    return spec, engine.run({spec.input.name: sample[None]}), placement


def boxes_of(corners, scores, classes=None):
    kinds = np.zeros(len(scores), np.int64) if classes is None else np.array(classes)
    return boxes.Boxes(np.array(corners, float).reshape(-1, 4), np.array(scores, float), kinds)


def test_fusion_of_boxes_is_that_of_the_paper_by_hand():
    first = boxes_of([[0, 0, 10, 10], [50, 50, 60, 60]], [0.9, 0.8])
    second = boxes_of([[0, 2, 10, 12]], [0.6])

    joined = boxes.fused([first, second], [1, 1], iou=0.55)

    # IoU 80 / 120; corners weighted 0.9 : 0.6, score (0.9 + 0.6) / 2; the other was found by one of two: 0.8 / 2
    assert joined.corners == pytest.approx(np.array([[0, 0.8, 10, 10.8], [50, 50, 60, 60]]))
    assert joined.scores == pytest.approx([0.75, 0.4])


def test_fusion_counts_a_model_by_its_weight():
    first, second = boxes_of([[0, 0, 10, 10]], [0.9]), boxes_of([[0, 2, 10, 12], [30, 30, 40, 40]], [0.6, 0.6])

    joined = boxes.fused([first, second], [3, 1], iou=0.55)

    # corners (3 · 0.9 · 0 + 0.6 · 2) / 3.3; score (3 · 0.9 + 0.6) / 4; one model of weight 1 of 4: 0.6 / 4
    assert joined.corners[0] == pytest.approx([0, 1.2 / 3.3, 10, 10 + 1.2 / 3.3])
    assert joined.scores == pytest.approx([0.825, 0.15])


def test_fusion_keeps_classes_apart_and_boxes_that_do_not_overlap_enough():
    first = boxes_of([[0, 0, 10, 10]], [0.9], [0])
    second = boxes_of([[0, 0, 10, 10], [6, 0, 16, 10]], [0.9, 0.5], [1, 0])

    joined = boxes.fused([first, second], [1, 1], iou=0.55)

    assert sorted(zip(joined.classes.tolist(), joined.scores.round(3).tolist(), strict=True)) == [
        (0, 0.25), (0, 0.45), (1, 0.45)
    ]  # fmt: skip


def test_two_boxes_of_one_model_never_raise_a_score_above_their_mean():
    joined = boxes.fused([boxes_of([[0, 0, 10, 10]] * 3, [0.9, 0.6, 0.3]), boxes_of([], [])], [1, 1], iou=0.5)

    assert joined.scores == pytest.approx([0.6])


def test_suppression_leaves_the_best_of_the_union():
    first = boxes_of([[0, 0, 10, 10]], [0.7])
    second = boxes_of([[0, 1, 10, 11], [40, 40, 50, 50]], [0.8, 0.6])

    joined = boxes.suppressed([first, second], [1, 0.5], iou=0.5)

    assert joined.corners.tolist() == [[0, 0, 10, 10], [40, 40, 50, 50]]
    assert joined.scores == pytest.approx([0.7, 0.3])


@pytest.mark.parametrize(("make", "read"), [
    (tiny.classifier, classification.probabilities), (tiny.tagger, tagging.scores_of),
])  # fmt: skip
def test_ensemble_answers_the_weighted_mean_of_its_parts(tmp_path, make, read):
    first = make(tmp_path / "first")
    second = changed(make(tmp_path / "second", 12), input={"resize": "letterbox", "mean": [9.0, 20.0, 3.0]})
    description = json.loads((second / "model.json").read_text())
    changed(second, classes=[{"id": 7 + n, "name": name} for n, name in enumerate(("green", "blue", "red"))])
    joint = folder_of(tmp_path / "joint", Recipe("ensemble", (1, 3), "mean"), first, second)
    image = noise()

    spec, outputs, _placement = alone(joint, image)
    alone_first, alone_second = (read(*alone(folder, image)[:2])[0] for folder in (first, second))

    assert description["classes"][0]["name"] == "red"
    # the second says of its first channel "green": its place 2 is red, 0 green, 1 blue
    expected = (alone_first.astype(float) + 3 * alone_second.astype(float)[[2, 0, 1]]) / 4
    assert np.abs(read(spec, outputs)[0] - expected).max() < 1e-6
    assert [model_class.name for model_class in spec.classes] == list(tiny.COLOURS)


def test_ensemble_of_segmenters_answers_the_mean_of_their_probabilities(tmp_path):
    first, second = tiny.segmenter(tmp_path / "first"), tiny.segmenter(tmp_path / "second")
    changed(second, input={"mean": [30.0, 0.0, 60.0]})
    joint = folder_of(tmp_path / "joint", Recipe("ensemble", (2, 1), "mean"), first, second)
    image = noise()

    _spec, outputs, placement = alone(joint, image)

    def shares(logits):
        return np.moveaxis(decode.probabilities(np.moveaxis(logits[0], 0, -1)), -1, 0)

    parts = [shares(alone(folder, image)[1]["logits"]) for folder in (first, second)]
    assert np.abs(shares(outputs["logits"]) - (2 * parts[0] + parts[1]) / 3).max() < 1e-6
    assert placement == alone(first, image)[2]


def test_segmenters_that_see_a_picture_in_other_frames_agree_on_where_things_are(tmp_path):
    first = tiny.segmenter(tmp_path / "first", cell=2)
    second = tiny.segmenter(tmp_path / "second", size=96, cell=2, resize="letterbox")
    joint = folder_of(tmp_path / "joint", Recipe("ensemble", (1, 1), "mean"), first, second)
    image = Image.open(io.BytesIO(pictures.with_boxes({(20, 10, 60, 40): "red"}, size=(128, 64))))

    spec, outputs, placement = alone(joint, image)
    predicted = segmentation.segments(spec, outputs, 0, placement).places

    truth = np.full((64, 128), -1)
    truth[10:40, 20:60] = 0
    assert (predicted == truth).mean() > 0.97


def test_ensemble_of_detectors_fuses_what_each_found_alone(tmp_path):
    first = tiny.detector(tmp_path / "first")
    second = changed(tiny.detector(tmp_path / "second", 128, 16), input={"resize": "letterbox"})
    changed(second, classes=[{"id": n, "name": name} for n, name in enumerate(("blue", "red", "green"))])
    joint = folder_of(tmp_path / "joint", Recipe("ensemble", (1, 1), "wbf", 0.55), first, second)
    picture = pictures.with_boxes({(0, 0, 16, 16): "red", (64, 32, 80, 48): "green"})

    answers = {folder.name: Model(folder).predict(picture)["predictions"] for folder in (first, second, joint)}

    # both find both squares, the second under names of its own for the same channels
    assert [(row["name"], row["box"], row["score"]) for row in answers["second"]] == [
        ("blue", [0.0, 0.0, 16.0, 16.0], 1.0), ("red", [64.0, 32.0, 80.0, 48.0], 1.0)
    ]  # fmt: skip
    apart = [*answers["first"], *answers["second"]]  # no two of one class overlap: each was found by one of two
    halved = {(row["name"], tuple(row["box"])): row["score"] / 2 for row in apart}
    joined = {(row["name"], tuple(row["box"])): row["score"] for row in answers["joint"]}
    assert len(joined) == 4
    assert joined == pytest.approx(halved, abs=2e-6)


def by_hand(first, second, image, *, margin, min_score):
    """Detector, then classifier on each cut-out, joined in this test."""
    spec, outputs, placement = alone(first, image)
    detected = detection.detections(spec, outputs, 0, placement, DecodeSpec(min_score, 0.5, 100))
    answers = []
    for box, score, kind in zip(detected.boxes, detected.scores, detected.classes, strict=True):
        wide, high = (box[2] - box[0]) * margin, (box[3] - box[1]) * margin
        cut = image.crop((
            max(0, int(np.floor(box[0] - wide))), max(0, int(np.floor(box[1] - high))),
            min(image.width, int(np.ceil(box[2] + wide))), min(image.height, int(np.ceil(box[3] + high))),
        ))  # fmt: skip
        shares = classification.probabilities(*alone(second, cut)[:2])[0]
        answers.append((int(kind), float(score), int(shares.argmax()), float(shares.max()), box))
    return answers


def test_chain_answers_as_detector_and_classifier_by_hand_on_cut_outs(tmp_path):
    first, second = tiny.detector(tmp_path / "first"), tiny.classifier(tmp_path / "second")
    changed(second, classes=[{"id": n, "name": name} for n, name in enumerate(("cherry", "lime", "sky"))])
    joint = folder_of(tmp_path / "joint", Recipe("chain", margin=0.2, min_score=0.4), first, second)
    image = noise(64, 64)

    answer = Model(joint).predict(pictures.encoded(image))["predictions"]
    hand = by_hand(first, second, image, margin=0.2, min_score=0.4)

    assert len(hand) > 40  # more than one batch of cut-outs
    names = ("cherry", "lime", "sky")
    expected = {}
    for kind, score, best, sure, box in hand:
        key = (names[best], tuple(round(float(edge), 2) for edge in box))
        row = (round(score * sure, 6), tiny.COLOURS[kind], round(score, 6), round(sure, 6))
        expected[key] = max(expected.get(key, (0.0,)), row)  # boxes of two colours become one where they agree
    assert len(answer) == len(expected)
    for prediction in answer:
        score, kind, detected, sure = expected[prediction["name"], tuple(prediction["box"])]
        assert prediction["detected"]["name"] == kind
        assert (prediction["score"], prediction["detected"]["score"], prediction["class_score"]) == pytest.approx(
            (score, detected, sure), abs=2e-6
        )


def test_chain_leaves_other_classes_of_the_detector_as_they_are(tmp_path):
    first, second = tiny.detector(tmp_path / "first"), tiny.tagger(tmp_path / "second")
    changed(second, classes=[{"id": n, "name": name} for n, name in enumerate(("cherry", "lime", "sky"), 3)])
    joint = folder_of(tmp_path / "joint", Recipe("chain", only=("red",)), first, second)
    picture = pictures.with_boxes({(0, 0, 16, 16): "red", (64, 32, 80, 48): "green"})

    answer = {prediction["name"]: prediction for prediction in Model(joint).predict(picture)["predictions"]}

    assert set(answer) == {"cherry", "green"}
    assert answer["green"]["class_score"] is None
    assert answer["green"]["score"] == answer["green"]["detected"]["score"] > 0.9
    assert answer["green"]["detected"]["name"] == "green"
    assert answer["cherry"]["detected"]["name"] == "red"
    assert answer["cherry"]["class_score"] > 0.9
    assert [entry.name for entry in model_json.load(joint).classes] == ["cherry", "lime", "sky", "green", "blue"]


def test_chain_shows_objects_to_a_model_of_objects_as_it_learned_them(tmp_path):
    first, second = tiny.detector(tmp_path / "first"), tiny.classifier(tmp_path / "second")
    changed(second, input={"scope": "object", "margin": 0.25})
    joint = folder_of(tmp_path / "joint", Recipe("chain", margin=0.25), first, second)
    image = Image.open(io.BytesIO(pictures.with_boxes({(16, 16, 32, 32): "red"})))

    (prediction,) = Model(joint).predict(pictures.encoded(image))["predictions"]
    spec, engine = loaded(second)
    sample, _placement = decode.preprocess(image, spec.input, (16.0, 16.0, 32.0, 32.0))
    shares = classification.probabilities(spec, engine.run({"images": sample[None]}))[0]

    assert prediction["class_score"] == pytest.approx(float(shares.max()), abs=1e-6)
    assert prediction["class_score"] < 0.99  # the black around the square is seen as well


def test_boxes_without_extent_are_looked_at_as_a_pixel():
    spec = model_json.parse(DESCRIBED).input

    for box in ((5.0, 5.0, 5.0, 5.0), (64.0, 64.0, 64.0, 64.0), (0.0, 3.0, 9.0, 3.0)):
        assert cut_out(noise(64, 64), spec, box).shape == (3, 8, 8)


DESCRIBED = {
    "format": 1,
    "task": "classification",
    "classes": [{"id": 1, "name": "one"}],
    "input": tiny.input_of(8, mean=[0, 0, 0], std=[255, 255, 255]),
    "output": {"logits": "logits"},
}


def graph(**changes):
    parts = [{"file": f"part{n}.onnx", "model": DESCRIBED} for n in (1, 2)]
    return {
        "format": 1, "task": "classification", "graph": {"kind": "ensemble", "way": "mean", "parts": parts, **changes}
    }  # fmt: skip


@case_table(("changes", "message"), [
    ({"kind": "loop"}, "graph.kind"),
    ({"parts": []}, "graph.parts"),
    ({"parts": [{"file": "part1.onnx", "model": DESCRIBED}] * 2}, "part2.onnx"),
    ({"parts": [{"file": "../x.onnx", "model": DESCRIBED}] * 2}, "part1.onnx"),
    ({"parts": [{"file": "part1.onnx", "model": {"graph": {}}}] * 2}, "composed itself"),
    ({"parts": [{"file": "part1.onnx", "model": DESCRIBED, "weight": -1}] * 2}, "weight"),
    ({"parts": [{"file": "part1.onnx", "model": DESCRIBED, "weight": float("nan")}] * 2}, "weight"),
    ({"way": "wbf"}, "graph.way"),
    ({"iou": 2}, "graph.iou"),
    ({"only": "red"}, "graph.only"),
    ({"kind": "chain"}, "a detector and then"),
])  # fmt: skip
def test_description_of_a_broken_graph_is_refused_by_name(changes, message):
    with pytest.raises(model_json.BadModel, match=message):
        model_json.parse(graph(**changes))
    assert model_json.parse(graph()).graph is not None


def test_parts_with_other_classes_are_no_ensemble():
    other = DESCRIBED | {"classes": [{"id": 1, "name": "two"}]}
    parts = [{"file": "part1.onnx", "model": DESCRIBED}, {"file": "part2.onnx", "model": other}]

    with pytest.raises(model_json.BadModel, match="same classes"):
        model_json.parse(graph(parts=parts))


def send_request(port, method, path, body=None, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


@pytest.mark.sockets("a model server of its own")
def test_service_of_a_chain_answers_as_its_description_says(serve, tmp_path):
    first, second = tiny.detector(tmp_path / "first"), tiny.classifier(tmp_path / "second")
    joint = folder_of(tmp_path / "joint", Recipe("chain", only=("red", "blue")), first, second)
    port = serve(joint)
    picture = pictures.with_boxes({(0, 0, 16, 16): "red", (64, 32, 80, 48): "green"})

    _status, document = send_request(port, "GET", "/openapi.json")
    status, answer = send_request(port, "POST", "/predict", picture)

    schema = document["paths"]["/predict"]["post"]["responses"]["200"]["content"]["application/json"]["schema"]
    jsonschema.validate(answer, {**schema, "components": document["components"]})
    assert status == 200
    assert {prediction["name"] for prediction in answer["predictions"]} == {"green", "red"}
    assert {"detected", "class_score"} <= set(schema["properties"]["predictions"]["items"]["properties"])


@pytest.mark.sockets("a model server of its own")
def test_service_of_an_ensemble_answers_pictures_by_both_protocols_and_refuses_tensors(serve, tmp_path):
    parts = tiny.classifier(tmp_path / "first"), tiny.classifier(tmp_path / "second", 12)
    joint = folder_of(tmp_path / "joint", Recipe("ensemble", (), "mean"), *parts)
    port = serve(joint)
    sent = [pictures.plain(colour) for colour in ("red", "green", "blue")]
    texts = [base64.b64encode(data).decode() for data in sent]
    content = {"inputs": [{"name": "images", "shape": [3], "datatype": "BYTES", "data": texts}]}
    tensor = {"inputs": [{"name": "images", "shape": [1, 1], "datatype": "FP32", "data": [0.0]}]}

    status, answer = send_request(port, "POST", "/v2/models/tiny/infer", json.dumps(content))
    refused, why = send_request(port, "POST", "/v2/models/tiny/infer", json.dumps(tensor))
    _status, metadata = send_request(port, "GET", "/v2/models/tiny")
    single = [send_request(port, "POST", "/predict", data)[1]["predictions"] for data in sent]

    assert status == 200
    read = [json.loads(text) for text in answer["outputs"][0]["data"]]
    assert read == single
    assert [rows[0]["name"] for rows in read] == ["red", "green", "blue"]
    assert (refused, "composed" in why["detail"]) == (400, True)
    assert metadata["inputs"] == [{"name": "images", "datatype": "BYTES", "shape": [-1]}]
    until, counted = time.monotonic() + 60, 0
    while counted < 6 and time.monotonic() < until:  # they are counted after the answer was sent
        _status, statistics = send_request(port, "GET", "/statistics")
        counted = sum(tally["images"] for tally in statistics.values())
    assert counted == 6


def test_evaluation_of_an_ensemble_has_the_figures_of_its_parts_where_they_are_alike(tmp_path):
    data = versions.detection(tmp_path / "data")
    first, second = tiny.detector(tmp_path / "first"), tiny.detector(tmp_path / "second")
    joint = folder_of(tmp_path / "joint", Recipe("ensemble", (), "wbf"), first, second)

    single = evaluate(a_run(tmp_path / "run1", first, data))["summary"]
    both = evaluate(a_run(tmp_path / "run2", joint, data))["summary"]

    assert both["map"] == pytest.approx(single["map"], abs=1e-9)
    assert both["map"] > 0


def test_evaluation_of_a_chain_knows_the_classes_of_its_second_part(tmp_path):
    data = versions.detection(tmp_path / "data")
    first, second = tiny.detector(tmp_path / "first"), tiny.classifier(tmp_path / "second")
    changed(first, classes=[{"id": n, "name": f"thing {n}"} for n in range(3)])
    joint = folder_of(tmp_path / "joint", Recipe("chain", min_score=0.1), first, second)

    evaluation = evaluate(a_run(tmp_path / "run", joint, data))

    assert [entry["name"] for entry in evaluation["classes"]] == list(tiny.COLOURS)
    assert evaluation["summary"]["ap50"] > 0.3


@pytest.mark.long
def test_speed_of_a_composed_model_is_measured_on_pictures(tmp_path):
    first, second = tiny.detector(tmp_path / "first"), tiny.classifier(tmp_path / "second")
    joint = folder_of(tmp_path / "joint", Recipe("chain"), first, second)

    figures = measured(joint, threads=1)

    assert figures["p50_ms"] > 0
    assert figures["batch"] == 8


def test_detector_of_videos_looks_with_all_parts(tmp_path):
    first, second = tiny.detector(tmp_path / "first"), tiny.detector(tmp_path / "second", 128, 16)
    joint = folder_of(tmp_path / "joint", Recipe("ensemble", (), "nms"), first, second)
    watching = Detector(joint, threads=1, lowest=0.3)
    frame = np.asarray(Image.open(io.BytesIO(pictures.with_boxes({(16, 32, 32, 48): "blue"}))))

    detected = watching.find(frame, Layout(128, 128, (128, 128, 3), (128, 128, 3), 1))

    assert watching.frame_format()["whole"]
    assert detected.boxes.tolist() == [[16, 32, 32, 48]]
    assert detected.kinds.tolist() == [3]
