import json
import os

import pytest
from django.urls import reverse

from accounts.access import sharing
from aiplatform.lib.errors import Invalid
from datasets.services import usage
from inference.batch import predictions
from inference.evaluation import evaluations, results
from inference.evaluation.kind import EvaluationKind
from inference.registry.run_code import Vanished
from tests.factories import models as factory
from tests.inference import conftest, judged
from tests.inference.running import set_state
from workers.core.runs import RunDir

pytestmark = pytest.mark.django_db


@pytest.fixture
def model(alice, tmp_path):
    return factory.model_version(alice, tmp_path)


@pytest.fixture
def data(alice, tmp_path):
    return judged.dataset_version(alice, tmp_path / "data")


def test_evaluation_is_queued_with_its_defaults(alice, model, data):
    made = evaluations.submit(user=alice, model_version=model, version=data, split="test")

    assert (made.job.kind, made.job.state) == ("evaluation", "queued")
    assert made.job.name == "cells_v1_on_colours_detection_v1"
    assert made.params == {
        "score_threshold": 0.01,
        "iou_threshold": 0.5,
        "max_detections": 100,
        "batch": 8,
        "altered_images": 0,
    }


def test_evaluation_without_a_name_keeps_the_words_of_model_and_data(alice, model, data):
    data.dataset.name = "细胞 (neu)"

    assert evaluations.name_for(model, data) == "cells_v1_on_细胞_neu_v1"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"split": "nowhere"}, "invalid"),
        ({"params": {"score_threshold": 2}}, "invalid"),
        ({"params": {"speed": 2}}, "invalid"),
        ({"params": {"batch": "many"}}, "invalid"),
        ({"name": "two/words"}, "invalid"),
    ],
)
def test_evaluation_submit_refuses_wrong_values(alice, model, data, change, code):
    with pytest.raises(Invalid) as refused:
        evaluations.submit(user=alice, **{"model_version": model, "version": data, **change})
    assert refused.value.code == code


def test_evaluation_submit_wants_model_and_data_that_fit(alice, model, tmp_path):
    classes = judged.dataset_version(alice, tmp_path / "c", task="classification")
    plain = judged.dataset_version(alice, tmp_path / "p", number=2, annotated=False)
    strange = judged.dataset_version(alice, tmp_path / "s", number=3, classes=[{"id": 1, "name": "cat"}])
    tensor = factory.model_version(alice, tmp_path, name="net", task="tensor")

    for model_version, version in ((model, classes), (model, plain), (model, strange), (tensor, strange)):
        with pytest.raises(evaluations.CannotEvaluate):
            evaluations.submit(user=alice, model_version=model_version, version=version)


def test_evaluation_run_is_judged_by_the_copied_program(alice, model, data, tmp_path):
    """What `prepare` puts into the run is all the program needs."""
    made = evaluations.submit(user=alice, model_version=model, version=data, split="test")
    set_state(made.job, "running")
    run = RunDir.for_attempt(made.job_id, 1)
    run.code.mkdir(parents=True, exist_ok=True)

    launch = EvaluationKind().prepare(made.job, made.job.attempts.get(), run)
    output = conftest.run(
        launch.argv,
        run.code,
        {
            **launch.env,
            "AIP_PARAMS": str(run.params),
            "AIP_OUTPUT_DIR": str(run.outputs),
            "AIP_CHECKPOINT_DIR": str(run.checkpoints),
            "AIP_METRICS_FILE": str(run.metrics),
            "AIP_CONTROL_FILE": str(run.control),
        },
    )
    assert "map 0." in output
    EvaluationKind().ended(made.job, made.job.attempts.get())

    made.refresh_from_db()
    assert made.published_attempt == 1
    assert 0 < made.metrics["ap50"] <= 1
    assert set(launch.read_only) >= {model.path, data.path}
    assert results.load(made)["images"] == 5


def test_evaluation_publish_again_or_late_changes_nothing(alice, tmp_path):
    made = judged.evaluation(alice, tmp_path)
    attempt = made.job.attempts.get()
    made.published_attempt = 2
    made.metrics = {"map": 1.0}
    made.save()

    evaluations.publish(made.job, attempt)

    made.refresh_from_db()
    assert (made.published_attempt, made.metrics) == (2, {"map": 1.0})


def test_evaluation_results_give_the_images_behind_a_cell(alice, tmp_path):
    made = judged.evaluation(alice, tmp_path)
    content = results.load(made)
    matrix = content["confusion"]["matrix"]
    cell = next((t, a) for t, row in enumerate(matrix) for a, n in enumerate(row) if n and t != a)

    images, more = results.images(made, cell=f"{cell[0]},{cell[1]}")

    assert images
    assert not more
    assert all(f"{cell[0]},{cell[1]}" in image["cells"] for image in images)
    assert len(results.images(made, count=2)[0]) == 2
    assert results.images(made, cell="9,9") == ([], False)


def test_evaluation_results_give_the_images_behind_a_row_and_a_column_of_the_matrix(alice, as_alice, tmp_path):
    made = judged.evaluation(alice, tmp_path)
    every = [set(image["cells"]) for image in results.images(made, count=100)[0]]

    row, column = (results.images(made, cell=cell, count=100)[0] for cell in ("0,", ",1"))
    page = as_alice.get(reverse("inference:evaluation-images", args=[made.pk]) + "?cell=0,").content.decode()

    assert 0 < len(row) == sum(any(cell.startswith("0,") for cell in cells) for cells in every)
    assert 0 < len(column) == sum(any(cell.endswith(",1") for cell in cells) for cells in every)
    assert f"Images with ground truth {results.load(made)['confusion']['labels'][0]}." in page


def test_evaluation_results_follow_no_links(alice, tmp_path):
    made = judged.evaluation(alice, tmp_path)
    folder = results.folder(made)
    secret = tmp_path / "secret"
    secret.write_text(json.dumps({"cells": [], "path": "secret"}))
    (folder / "images.jsonl").unlink()
    (folder / "images.jsonl").symlink_to(secret)

    assert results.images(made) == ([], False)


@pytest.mark.parametrize("trap", ["link", "pipe"])
def test_evaluation_publishes_no_figures_of_what_is_no_file_of_its_own(alice, tmp_path, trap):
    made = judged.evaluation(alice, tmp_path)
    figures = results.folder(made) / "evaluation.json"
    secret = tmp_path / "secret"
    secret.write_text(json.dumps({"summary": {"secret": 7}}))
    figures.unlink()
    if trap == "link":
        figures.symlink_to(secret)
    else:
        os.mkfifo(figures)
    before = made.metrics

    evaluations.publish(made.job, made.job.attempts.get())

    made.refresh_from_db()
    assert made.metrics == before
    assert "secret" not in made.metrics


def test_evaluation_that_runs_keeps_its_data(alice, model, data):
    made = evaluations.submit(user=alice, model_version=model, version=data)
    assert usage.users_of(data) == [f"evaluation {made.job.name}"]

    set_state(made.job, "succeeded")
    assert usage.users_of(data) == []


def test_service_page_begins_at_the_best_threshold_of_an_evaluation(alice, bob, tmp_path, as_alice):
    from inference.evaluation import thresholds
    from inference.registry.models import ModelVersion
    from inference.serving import endpoints
    from tests.inference import judged

    evaluation = judged.evaluation(alice, tmp_path)
    evaluation.metrics = {**evaluation.metrics, "threshold": 0.07}
    evaluation.save()
    version = evaluation.model_version
    service = endpoints.create(user=alice, name="weak", model_version=version)

    page = as_alice.get(f"/services/{service.pk}/")

    assert page.context["score_percent"] == 7
    calls = page.context["snippets"]
    assert all('/predict?score_threshold=0.07"' in calls[name] for name in ("curl", "python"))
    assert 'parameters={"score_threshold": 0.07}' in calls["triton"]
    assert thresholds.for_version(version, by=bob) is None
    assert f'href="/evaluations/{evaluation.pk}/"' in page.content.decode().split('id="score-origin"')[1]
    assert as_alice.get(f"/api/v1/services/{service.pk}/").json()["best_score"] == 0.07
    data = evaluation.version
    assert predictions.submit(user=alice, model_version=version, version=data).params["score_threshold"] == 0.07
    converted = ModelVersion(pk=2**31, model=version.model, number=2, source="convert", parent=version)
    assert thresholds.for_version(converted, by=alice).evaluation == evaluation
    chosen = predictions.submit(user=alice, model_version=version, version=data, score_threshold=0.5)
    assert chosen.params["score_threshold"] == 0.5


def test_c05_evaluation_restore_needs_the_right_to_use_its_data(alice, bob, model, data):
    sharing.set_level(model.model, bob, "use")
    sharing.set_level(data.dataset, bob, "use")
    made = evaluations.submit(user=bob, model_version=model, version=data)
    sharing.set_level(model.model, bob, "view")

    with pytest.raises(Vanished):
        EvaluationKind().check_restore(made.job)
