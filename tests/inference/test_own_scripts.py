"""Evaluations by somebody's own script: what is refused, how it runs, which figures it leaves and where they stand."""

from __future__ import annotations

import json
import os
import subprocess

import pytest
from django.urls import reverse

from datasets.models import DatasetVersion
from inference.evaluation import evaluations, requests, saved_parameters, script_metrics
from inference.evaluation.kind import EvaluationKind
from inference.evaluation.models import Evaluation, EvaluationSet
from inference.pipelines.kinds import KINDS, StepFailed
from inference.pipelines.models import StepRun
from inference.pipelines.steps import comparison
from tests.factories import models as factory
from tests.factories import training as codes
from tests.inference import judged
from tests.inference.running import set_state
from workers.core.models import Attempt
from workers.core.runs import RunDir
from workers.jobs import job_tabs

pytestmark = pytest.mark.django_db
ROUTE = "/api/v1/evaluations/"
kind = EvaluationKind()
SCRIPT = """
import json, os, sys
from pathlib import Path

params = json.loads(Path(os.environ["AIP_PARAMS"]).read_text())
rows = json.loads(Path(os.environ["AIP_DATA_DIR"], "annotations.json").read_text())["images"]
found = {"accuracy": params["k"] / 4, "images": len(rows), "recall": {"red": 1, "blue": 0.5}}
assert Path(os.environ["AIP_MODEL_DIR"], "model.json").is_file() and sys.argv[1] == os.environ["AIP_MODEL_DIR"]
Path(os.environ["AIP_OUTPUT_DIR"], "metrics.json").write_text(json.dumps(found))
"""


@pytest.fixture
def code(alice, tmp_path):
    return codes.code(alice, tmp_path / "mine", evaluate=SCRIPT)


@pytest.fixture
def model(alice, tmp_path):
    return factory.model_version(alice, tmp_path)


@pytest.fixture
def raw(alice, tmp_path):
    """Data without annotations, which our own evaluation refuses."""
    return judged.dataset_version(alice, tmp_path / "data", annotated=False)


@pytest.fixture
def begun(alice, model, raw, code):
    return evaluations.submit(
        user=alice, model_version=model, version=raw, code=code, start_file="evaluate.py",
        arguments="{model} --api-key s3cret-value", params={"k": 3}, split="auto",
    )  # fmt: skip


def ended(evaluation: Evaluation, text: str = '{"accuracy": 0.75}', *, state: str = "succeeded", **attempt: object):
    """Its job ended, with this in its outputs."""
    outputs = RunDir.for_attempt(evaluation.job_id, 1).outputs
    outputs.mkdir(parents=True, exist_ok=True)
    if text:
        (outputs / "metrics.json").write_text(text)
    set_state(evaluation.job, state)
    Attempt.objects.filter(job=evaluation.job).update(state=state, **attempt)
    kind.ended(evaluation.job, evaluation.job.attempts.get())
    return Evaluation.objects.get(pk=evaluation.pk)


def test_figures_are_numbers_by_name_and_all_that_is_wrong_is_said_at_once():
    good = script_metrics.read(b'{"b": 1, "a": {"cat": 0.5, "dog": 0}}')
    bad = script_metrics.read(
        b'{"": 1, "n": NaN, "t": true, "d": {"x": {"y": 1}}, "l": [1], "big": 1e999, "one": 1, "one": 2}'
    )
    long = script_metrics.read(json.dumps({"x" * 101: 1, "a\nb": 1}).encode())

    assert (good.problems, script_metrics.flat(good.rows)) == ([], {"b": 1.0, "a/cat": 0.5, "a/dog": 0.0})
    assert [problem.code.partition(".")[2] for problem in bad.problems] == [
        "odd_name", "no_number", "no_number", "too_deep", "too_deep", "no_number", "twice",
    ]  # fmt: skip
    assert [problem.code for problem in long.problems] == ["own_script.odd_name"] * 2
    for text, code in (
        (b"[1]", "no_table"), (b"{}", "empty"), (b"{", "no_json"), (b"[" * 100_000, "no_json"), (b"\xff", "no_json"),
        (b" " * (script_metrics.MAX_BYTES + 1), "too_large"), (b'{"a": {}}', "empty"),
        (json.dumps(dict.fromkeys(map(str, range(1001)), 1)).encode(), "too_many"),
    ):  # fmt: skip
        assert [problem.code for problem in script_metrics.read(text).problems] == [f"own_script.{code}"], text[:20]


def test_script_runs_as_own_code_does_and_its_figures_stand_everywhere(api, client, alice, begun, raw, model):
    set_state(begun.job, "assigned")
    run = RunDir.for_attempt(begun.job_id, 1)
    run.outputs.mkdir(parents=True)
    launch = kind.prepare(begun.job, begun.job.attempts.get(), run)
    variables = {**os.environ, **launch.env, "AIP_OUTPUT_DIR": str(run.outputs)}
    subprocess.run(launch.argv, cwd=run.code, env=variables, check=True, timeout=60)
    row = ended(begun, "")
    api.force_authenticate(alice)
    client.force_login(alice)

    content = api.get(f"{ROUTE}{row.pk}/").json()
    page = client.get(reverse("inference:evaluation-detail", args=[row.pk])).content.decode()
    report = api.get(f"{ROUTE}{row.pk}/report/").content.decode()
    listed = client.get(reverse("inference:evaluation-list")).content.decode()
    refused = [api.get(f"{ROUTE}{row.pk}/{part}/") for part in ("slices", "calibration", "images")]

    assert row.metrics == {"accuracy": 0.75, "images": 6.0, "recall/red": 1.0, "recall/blue": 0.5}
    assert set(launch.read_only) >= {model.path, *raw.folders}
    assert "s3cret-value" in launch.secrets
    assert (content["metrics"], content["split"], content["script"]["problems"]) == (row.metrics, "test", [])
    assert "s3cret" not in json.dumps(content) + page + report
    assert [word for word in ("evaluate.py", "only metrics", "0.75") if word not in page] == []
    assert [word for word in ("recall", "only metrics") if word not in report] == []
    assert '0.750<div class="small muted">accuracy</div>' in listed
    assert [response.status_code for response in refused] == [400] * 3
    assert "custom script" in refused[0].json()["errors"]["evaluation"][0]


def test_scripts_and_ours_are_compared_by_name(api, client, alice, begun, model, raw, code):
    first = ended(begun, '{"accuracy": 0.5, "AP50": 0.25}')
    DatasetVersion.objects.filter(pk=raw.pk).update(annotated=True)
    raw.refresh_from_db()
    ours = judged.judged(alice, model, raw)
    api.force_authenticate(alice)
    client.force_login(alice)
    which = f"?evaluation={first.pk}&evaluation={ours.pk}"

    comparison = api.get(f"{ROUTE}comparison/{which}").json()
    page = client.get(reverse("inference:evaluation-compare") + which).content.decode()

    assert (comparison["figures"], comparison["only_told"][:2]) == ([], ["accuracy", "AP50"])
    assert [row["summary"].get("accuracy") for row in comparison["evaluations"]] == [0.5, None]
    assert set(comparison["only_told"]) >= set(first.metrics) | {"map"}
    assert "ap50" not in comparison["only_told"]  # it stands beside the script's AP50
    assert [word in page for word in ("0.250", "metrics by name", 'id="slices"')] == [True, True, False]


@pytest.mark.parametrize(
    ("left", "state", "attempt", "message"),
    [
        ("", "succeeded", {}, "AIP_OUTPUT_DIR"),
        ("nonsense", "succeeded", {}, "is not valid JSON"),
        ('{"accuracy": 1}', "failed", {"exit_code": 3}, "exited with code 3"),
    ],
)
def test_what_failed_is_said_with_a_way_to_the_console(client, alice, begun, left, state, attempt, message):
    row = ended(begun, left, state=state, **attempt)
    client.force_login(alice)

    page = client.get(reverse("inference:evaluation-detail", args=[row.pk])).content.decode()

    assert (row.metrics, row.published_attempt) == ({}, 0)
    assert message in page
    assert job_tabs.path(row.job_id, job_tabs.CONSOLE) in page
    if state == "succeeded":
        with pytest.raises(StepFailed, match=message):
            KINDS.get("evaluate").poll(StepRun(job=row.job, step="judge"))


def test_request_says_all_that_is_wrong_with_a_script_at_once(api, alice, model, raw, code):
    api.force_authenticate(alice)
    body = {"model_version": model.pk, "version": raw.pk, "code": code.pk, "cpus": 0.5}
    wrong = {"start_file": "../up.py", "arguments": "{resume}", "output_path": "/tmp", "split": "unseen"}

    errors = api.post(ROUTE, {**body, **wrong}, format="json").json()["errors"]
    no_code = api.post(ROUTE, {**body, "code": None, "start_file": "evaluate.py"}, format="json").json()
    ours = api.post(ROUTE, {**body, "code": None, "gpus_per_node": 2}, format="json").json()

    assert set(errors) == {"start_file", "arguments", "output_path", "split"}
    assert "Upload the code that contains the entry point." in json.dumps(no_code)
    assert {"version", "gpus_per_node"} <= set(ours["errors"])


def test_h06_set_keeps_the_script_and_whoever_may_use_it_runs_a_copy_without_secrets(
    api, client, alice, bob, begun, model, raw
):
    saved = saved_parameters.save(
        user=alice, name="mine", visibility="public", **saved_parameters.from_evaluation(begun)
    )
    theirs = evaluations_model(bob, model)
    DatasetVersion.objects.filter(pk=raw.pk).update(state="ready")
    raw.dataset.visibility = "public"
    raw.dataset.save()
    api.force_authenticate(bob)

    made = api.post(ROUTE, {"model_version": theirs.pk, "parameter_set": saved.pk, "params": {"k": 4}}, format="json")
    shown = api.get(f"/api/v1/evaluation-sets/{saved.pk}/").json()
    EvaluationSet.objects.update(arguments="--token t0ken-of-alice", params={"api_key": "k3y-of-alice", "k": 1})
    body = {"model_version": theirs.pk, "parameter_set": saved.pk, "start_file": "evaluate.py"}
    bare = Evaluation.objects.get(pk=api.post(ROUTE, body, format="json").json()["id"])
    client.force_login(bob)
    forms = [client.get(f"{reverse(name)}?set={saved.pk}") for name in (
        "inference:evaluation-new", "inference:evaluation-set-new")]  # fmt: skip

    row = Evaluation.objects.select_related("script__code").get(pk=made.json()["id"])
    assert (row.script.start_file, row.script.code.owner, row.params, row.split) == (
        "evaluate.py", bob, {"k": 4}, "test",
    )  # fmt: skip
    assert (row.script.code.path / "evaluate.py").read_text() == SCRIPT
    assert (shown["start_file"], "s3cret" in json.dumps(shown)) == ("evaluate.py", False)
    assert (bare.params, bare.script.arguments) == ({"api_key": "", "k": 1}, "--token")
    assert [(response.status_code, "of-alice" in response.content.decode()) for response in forms] == [(200, False)] * 2


def test_champion_is_judged_by_the_script_that_judged_the_candidate(alice, bob, begun):
    mine, theirs = comparison._judge_of(begun, alice), comparison._judge_of(begun, bob)

    assert (mine["code"], mine["start_file"], mine["params"]) == (begun.script.code, "evaluate.py", {"k": 3})
    assert ("s3cret-value" in mine["arguments"], "s3cret" in str(theirs)) == (True, False)


def evaluations_model(owner, model):
    """A version that this person may use as well."""
    model.model.visibility = "public"
    model.model.save()
    return model


def test_form_runs_a_folder_of_the_home_and_begins_again_with_all_of_it(client, alice, begun, model, raw):
    client.force_login(alice)
    new = reverse("inference:evaluation-new")
    again = client.get(f"{new}?evaluation={begun.pk}").context["form"]
    values = {name: again[name].value() for name in again.fields}
    fields = {name: value for name, value in values.items() if value is not None and value is not False}

    half = client.post(new, {**fields, "snapshot": "", "home_path": "mine", "start_file": "", "arguments": ""})
    sent = client.post(new, {**fields, "snapshot": "", "home_path": "mine", "pairs": "k = 2"})
    copied = client.post(new, {**fields, "pairs": "k = 1"})

    rows = list(Evaluation.objects.exclude(pk=begun.pk).order_by("pk"))
    assert (half.status_code, "start_file" in half.context["form"].errors) == (422, True)
    assert (sent.status_code, copied.status_code) == (302, 302), sent.context["form"].errors
    assert [row.params for row in rows] == [{"k": 2}, {"k": 1}]
    assert rows[1].script.code == begun.script.code
    assert rows[1].script.arguments == "{model} --api-key"  # secrets are given anew


def test_step_takes_the_fields_of_a_script_and_never_an_earlier_result(alice, begun, model, raw):
    step = KINDS.get("evaluate")
    params = step.checked({"home_path": "mine", "start_file": "evaluate.py", "params": {"k": 1}})
    body = {"model_version": model.pk, "version": raw.pk, "name": "step", "params": {"k": 1}, "cpus": 1}

    made = requests.submit(alice, {**body, "home_path": "mine", "start_file": "evaluate.py"})

    assert step.content(type("Call", (), {"params": params})()) is None
    assert step.content(type("Call", (), {"params": step.checked({})})()) == {}
    assert (made.is_scripted, made.params, made.script.code.origin) == (True, {"k": 1}, "mine")
