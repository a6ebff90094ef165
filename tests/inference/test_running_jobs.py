"""Pages of jobs on models while they run: phases with counters, and the first results."""

from __future__ import annotations

import json

import pytest
from django.urls import reverse

from inference.batch import presentation, results
from inference.evaluation import evaluations
from inference.evaluation.evaluator.preview import NAME as PREVIEW
from tests.factories import models as factory
from tests.inference import converted, judged, predicted
from tests.inference.running import set_state
from workers.core.models import Job
from workers.core.runs import RunDir
from workers.core.states import JobPhase
from workers.jobs import summaries

pytestmark = pytest.mark.django_db


@pytest.fixture
def model(alice, tmp_path):
    return factory.model_version(alice, tmp_path)


@pytest.fixture
def data(alice, tmp_path):
    return judged.dataset_version(alice, tmp_path / "data")


def runs(row, phase: str, done: int | None = None, total: int | None = None) -> None:
    set_state(row.job, "running")
    progress = done / total if done and total else None
    Job.objects.filter(pk=row.job_id).update(phase=phase, phase_done=done, phase_total=total, progress=progress)
    row.refresh_from_db()


def states(job: Job) -> list[tuple[str, str]]:
    return [(str(step.label), step.state) for step in summaries.phase_steps(job)]


def test_phases_of_a_running_evaluation_are_done_current_and_pending(alice, model, data):
    row = evaluations.submit(user=alice, model_version=model, version=data, split="test")
    before = states(row.job)
    runs(row, "predicting", 3, 5)

    during = states(row.job)
    Job.objects.filter(pk=row.job_id).update(phase=JobPhase.ALTERED)
    row.refresh_from_db()

    assert before == []
    assert during == [("Loading the model", "done"), ("Predicting", "current"), ("Computing metrics", "pending")]
    assert ("Evaluating altered images", "current") in states(row.job)  # only some evaluations have this phase


def test_page_of_a_running_evaluation_shows_its_phase_and_newest_images(as_alice, alice, model, data):
    done = judged.judged(alice, model, data)
    images = (RunDir.for_attempt(done.job_id, 1).outputs / "images.jsonl").read_text().splitlines()
    row = evaluations.submit(user=alice, model_version=model, version=data, split="test")
    runs(row, "predicting", 3, 5)
    page = reverse("inference:evaluation-detail", args=[row.pk])
    first = as_alice.get(page, headers={"HX-Request": "true"}).content.decode()
    outputs = RunDir.for_attempt(row.job_id, 1).outputs
    outputs.mkdir(parents=True, exist_ok=True)
    preview = {"summary": {"threshold": 0.5}, "classes": data.classes, "images": [json.loads(images[0])]}
    (outputs / PREVIEW).write_text(json.dumps(preview))

    live = as_alice.get(page, headers={"HX-Request": "true"}).content.decode()
    whole = as_alice.get(page).content.decode()

    assert "Newest images" not in first
    assert '<span class="num">3 / 5</span>' in live
    assert 'aria-current="step">Predicting' in live
    assert live.count('<figure class="judged">') == whole.count('<figure class="judged">') == 1
    assert json.loads(images[0])["path"] in live


def test_conversion_names_the_variant_that_is_being_made(as_alice, alice, model, data):
    row = converted.submitted(alice, model, data)
    runs(row, "converting", 0, 2)

    page = as_alice.get(reverse("inference:conversion-detail", args=[row.pk])).content.decode()
    html = " ".join(page.split())

    assert html.count("Waiting") == len(row.params["targets"])  # the original model is first
    assert html.count('<td colspan="8" class="muted"> Converting') == 1


def test_prediction_shows_its_first_images_before_their_chunk_is_complete(alice, model, data):
    row = predicted.submitted(alice, model, data)
    runs(row, "predicting", 2, 5)
    outputs = RunDir.for_attempt(row.job_id, 1).outputs
    outputs.mkdir(parents=True, exist_ok=True)
    lines = [{"path": f"{n}.png", "width": 8, "height": 8, "predictions": []} for n in range(2)]
    (outputs / "preview.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines) + '{"cut')

    context = presentation.build_context(row)

    assert [card["path"] for card in context["cards"]] == ["0.png", "1.png"]
    assert context["found"]["done"] == 2
    (outputs / "chunks").mkdir()
    (outputs / "chunks" / "0000000.jsonl").write_text("{}\n" + json.dumps(lines[0]) + "\n")
    assert [line["path"] for line in results.lines(row)] == ["0.png"]
