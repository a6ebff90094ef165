import contextlib
import io
import json
from types import SimpleNamespace

import numpy as np
import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from inference.evaluation.evaluator import preview
from inference.evaluation.evaluator.__main__ import evaluate, main
from inference.kit.model_io.spec import ModelClass
from inference.kit.prediction.predictor import Suspended
from inference.kit.samples import counts, ground_truth
from inference.kit.samples.run import Run
from inference.kit.task_kinds.detection import scoring as detection
from tests.inference import tiny, versions
from tests.inference.running import a_run


@pytest.fixture
def detecting(tmp_path):
    return a_run(tmp_path / "run", tiny.detector(tmp_path / "model"), versions.detection(tmp_path / "data"))


@pytest.fixture
def classifying(tmp_path):
    return a_run(tmp_path / "run", tiny.classifier(tmp_path / "model"), versions.classification(tmp_path / "data"))


def judged_by_pycocotools(run):
    results = json.loads((run.outputs / "predictions.json").read_text())
    coco = json.loads((run.dataset / "annotations.json").read_text())
    coco["images"] = [i for i in coco["images"] if i["split"] == "test"]
    ids = {i["id"] for i in coco["images"]}
    coco["annotations"] = [a for a in coco["annotations"] if a["image_id"] in ids]
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        truth.dataset = coco
        truth.createIndex()
        judge = COCOeval(truth, truth.loadRes(results), "bbox")
        judge.evaluate()
        judge.accumulate()
        judge.summarize()
    return judge


def test_evaluator_figures_equal_pycocotools(detecting):
    evaluation = evaluate(detecting)

    judge = judged_by_pycocotools(detecting)
    for name, expected in zip(detection.STATS, judge.stats, strict=False):
        ours = evaluation["summary"][name]
        assert (ours is None and expected == -1) or ours == pytest.approx(expected, abs=1e-9), name
    assert 0 < evaluation["summary"]["map"] < 1
    for index, entry in enumerate(evaluation["classes"]):
        own = judge.eval["precision"][:, :, index, 0, -1]
        assert entry["ap"] == pytest.approx(own[own > -1].mean(), abs=1e-9)
        assert entry["ap50"] == pytest.approx(own[0][own[0] > -1].mean(), abs=1e-9)


def test_evaluator_judges_only_the_chosen_split(detecting):
    evaluation = evaluate(detecting)

    assert (evaluation["images"], evaluation["images_total"], evaluation["complete"]) == (5, 5, True)
    assert sum(c["truths"] for c in evaluation["classes"]) == 25


def test_evaluator_counts_at_any_threshold_from_the_stored_answers(detecting):
    evaluation = evaluate(detecting)

    lines = [json.loads(line) for line in (detecting.outputs / "predictions.jsonl").read_text().splitlines()]
    at = counts.THRESHOLDS.index(0.6)
    for entry in evaluation["classes"]:
        boxes = [b for line in lines for b in line["boxes"] if b[0] == entry["id"] and b[1] >= 0.6]
        assert entry["tp"][at] + entry["fp"][at] == len(boxes)
        assert entry["tp"][at] <= entry["truths"]
    index = counts.THRESHOLDS.index(evaluation["summary"]["threshold"])
    assert evaluation["summary"]["f1"] == max(
        counts.mean_rates(evaluation["classes"], p)["f1"] for p in range(counts.STEPS)
    )
    assert evaluation["summary"]["f1"] == counts.mean_rates(evaluation["classes"], index)["f1"]


def test_evaluator_confusion_matrix_names_the_images_of_each_cell(detecting):
    evaluation = evaluate(detecting)

    images = [json.loads(line) for line in (detecting.outputs / "images.jsonl").read_text().splitlines()]
    matrix = np.array(evaluation["confusion"]["matrix"])
    filled = {f"{t},{a}" for t, a in zip(*np.nonzero(matrix), strict=True)}
    assert {cell for image in images for cell in image["cells"]} == filled
    assert matrix[:3].sum() == 25
    assert [i["badness"] for i in images] == sorted((i["badness"] for i in images), reverse=True)
    assert images[0]["fp"] + images[0]["fn"] > 0


def test_evaluator_scores_a_perfect_detector_one(tmp_path):
    data = versions.detection(tmp_path / "data")
    truth = ground_truth.read(data, "test")
    lines = [
        {"path": s.path, "id": s.id, "boxes": [[b.class_id, 0.9, *b.corners] for b in s.boxes]} for s in truth.samples
    ]

    evaluation, images = detection.evaluate(truth, lines)

    assert evaluation["summary"]["map"] == pytest.approx(1)
    assert evaluation["summary"]["f1"] == 1
    assert {image["badness"] for image in images} == {0}


def test_evaluator_scores_a_detector_that_finds_nothing_zero(tmp_path):
    truth = ground_truth.read(versions.detection(tmp_path / "data"), "test")

    evaluation, images = detection.evaluate(truth, [{"path": s.path, "id": s.id, "boxes": []} for s in truth.samples])

    assert evaluation["summary"]["map"] == 0
    assert images[0]["fn"] == 5


def test_evaluator_gives_classification_figures(classifying):
    evaluation = evaluate(classifying)

    summary = evaluation["summary"]
    assert summary["accuracy"] == pytest.approx(10 / 12)
    assert summary["recall_5"] == 1
    assert np.trace(np.array(evaluation["confusion"]["matrix"])) == 10
    assert summary["classification_loss"] > 1
    images = [json.loads(line) for line in (classifying.outputs / "images.jsonl").read_text().splitlines()]
    assert [i["right"] for i in images[:3]] == [False, False, True]
    assert images[0]["cells"] in (["1,0"], ["2,1"], ["0,2"])


def test_evaluator_goes_on_where_it_was_suspended(detecting, tmp_path, monkeypatch):
    expected = evaluate(detecting)
    commands = iter(["", "suspend"])
    first = a_run(tmp_path / "first", detecting.model, detecting.dataset, batch=2)
    monkeypatch.setattr(Run, "requested", lambda run: next(commands, ""))
    with pytest.raises(Suspended):
        evaluate(first)
    left = first.checkpoints / "latest"
    assert json.loads((left / "meta.json").read_text())["step"] == 4

    second = a_run(tmp_path / "second", detecting.model, detecting.dataset, batch=2)
    object.__setattr__(second, "resume_from", left)
    evaluation = evaluate(second)

    assert evaluation["summary"] == expected["summary"]
    lines = [json.loads(line) for line in second.metrics.read_text().splitlines()]
    assert [line["step"] for line in lines] == [0, 5, 5, 5]
    assert [line.get("phase") for line in lines] == ["loading", "predicting", "computing", None]
    assert (lines[1]["phase_done"], lines[1]["phase_total"]) == (5, 5)
    assert lines[2]["eta_s"] >= 1.0  # metrics take their time, too


def test_evaluator_leaves_pauses_out_of_its_rate(detecting, monkeypatch):
    detecting.control.with_name("paused").write_text("7.5")
    from_file = detecting.paused_s()
    moments, pauses, rates = iter(range(0, 10_000, 10)), iter([0.0]), []
    clock = SimpleNamespace(monotonic=lambda: float(next(moments)), perf_counter=lambda: 0.0)
    monkeypatch.setattr("inference.kit.prediction.predictor.time", clock)
    monkeypatch.setattr(Run, "paused_s", lambda _run: next(pauses, 5.0))
    monkeypatch.setattr(Run, "report", lambda _run, _step, **values: rates.append(values.get("images_per_s")))

    evaluate(detecting)

    assert from_file == 7.5
    assert next(filter(None, rates)) == pytest.approx(1.0)  # five images in ten seconds, five of them paused


def test_evaluator_finished_early_judges_what_is_there(detecting, monkeypatch):
    monkeypatch.setattr(Run, "requested", lambda run: "finish")
    object.__setattr__(detecting, "params", {"split": "test", "batch": 2})

    evaluation = evaluate(detecting)

    assert (evaluation["images"], evaluation["complete"]) == (2, False)


def test_evaluator_names_and_leaves_out_an_unreadable_image(detecting):
    (detecting.dataset / "images/003.png").write_bytes(b"not a picture")

    evaluation = evaluate(detecting)

    assert evaluation["images"] == 4
    assert evaluation["notes"] == ["003.png cannot be read and was skipped."]


def test_evaluator_matches_classes_by_name_and_names_unknown_ones():
    mapping, notes = ground_truth.match_classes(
        [ModelClass(0, "Red"), ModelClass(1, "pink")], [ModelClass(7, "red"), ModelClass(8, "blue")]
    )

    assert mapping == {0: 7}
    assert len(notes) == 2
    model_classes, unknown = [ModelClass(0, "good")], [ModelClass(1, "good"), ModelClass(2, "scratch")]
    assert ground_truth.match_classes(model_classes, unknown, strangers=True) == (
        {0: 1},
        [],
    )  # what is not good is what is sought
    with pytest.raises(ground_truth.Unfit):
        ground_truth.match_classes([ModelClass(0, "cat")], [ModelClass(0, "dog")])


def test_evaluator_ends_with_a_sentence_for_what_does_not_fit(classifying, tmp_path, monkeypatch, capsys):
    params = tmp_path / "params.json"
    params.write_text(json.dumps({"split": "nowhere"}))
    for name, value in {
        "AIP_PARAMS": params,
        "AIP_MODEL_DIR": classifying.model,
        "AIP_DATASET_DIR": classifying.dataset,
        "AIP_OUTPUT_DIR": classifying.outputs,
        "AIP_CHECKPOINT_DIR": classifying.checkpoints,
        "AIP_METRICS_FILE": classifying.metrics,
        "AIP_CONTROL_FILE": classifying.control,
    }.items():
        monkeypatch.setenv(name, str(value))

    assert main() == 1
    assert "no images in the split" in capsys.readouterr().out


def test_results_of_the_newest_images_are_there_while_the_others_are_predicted(detecting, tmp_path, monkeypatch):
    run = a_run(tmp_path / "run", detecting.model, detecting.dataset, batch=2)
    seen = []
    show = preview.Preview.show

    def shown(self, lines):
        show(self, lines)
        seen.append(json.loads(self.file.read_text()))

    monkeypatch.setattr(preview, "EVERY_S", 0.0)
    monkeypatch.setattr(preview, "MAX_SHARE", 1e9)
    monkeypatch.setattr(preview.Preview, "show", shown)
    evaluate(run)

    assert [len(part["images"]) for part in seen] == [2, 4, 5]
    final = [json.loads(line) for line in (run.outputs / "images.jsonl").read_text().splitlines()]
    assert {image["path"] for image in seen[-1]["images"]} == {image["path"] for image in final}
    assert seen[0]["images"][0].keys() == {key for key in final[0] if key != "about"}
    assert not (run.outputs / preview.NAME).exists()
