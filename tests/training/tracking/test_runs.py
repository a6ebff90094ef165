"""Runs by MLflow's calls: made, reported to, read, deleted."""

from __future__ import annotations

import pytest
from django.utils.timezone import now

from tests.training.tracking.conftest import Script
from training.experiments.models import Run, RunCurve
from training.experiments.tracking import runs, tokens
from training.experiments.tracking.models import OddPoint
from workers.core.models import Attempt, Curve, Job
from workers.jobs.output import metric_names, metrics, point_files

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


def test_run_from_a_laptop_is_its_persons_and_ends_as_its_script_says(laptop, alice):
    uid = laptop.made(tags=[{"key": "kind", "value": "a"}, {"key": "mlflow.note.content", "value": "*Hm*"}])

    laptop.post("runs/update", run_id=uid, status="FINISHED", end_time=1_700_000_000_000, run_name="second")

    run = Run.objects.get(uid=uid)
    assert (run.owner, run.job, run.name, run.state, run.notes) == (alice, None, "second", "succeeded", "*Hm*")
    assert run.ended_at.timestamp() == 1_700_000_000
    info = laptop.get("runs/get", run_id=uid)["run"]["info"]
    assert (info["status"], info["user_id"]) == ("FINISHED", "alice")
    assert info["artifact_uri"] == f"mlflow-artifacts:/runs/{uid}"
    assert laptop.data(uid)["tags"] == {
        "kind": "a", "mlflow.note.content": "*Hm*", "mlflow.runName": "second", "mlflow.user": "alice",
    }  # fmt: skip


def test_metrics_of_a_run_without_a_job_are_curves_of_its_own_with_step_and_time(laptop):
    uid = laptop.made()
    for step in range(3):
        at = 1_700_000_000_500 + step
        laptop.post("runs/log-metric", run_id=uid, key="loss", value=1 / (step + 1), step=step, timestamp=at)

    run = Run.objects.get(uid=uid)
    curve = RunCurve.objects.get(run=run)
    assert (curve.key, curve.count, curve.lowest, curve.lowest_step, curve.highest) == ("loss", 3, 1 / 3, 2, 1.0)
    points = point_files.read(point_files.path(f"run-{run.pk}", 1, "loss"), 3)
    assert points["at"].tolist() == [1_700_000_000.5, 1_700_000_000.501, 1_700_000_000.502]
    assert laptop.get("metrics/get-history", run_id=uid, metric_key="loss")["metrics"][1] == {
        "key": "loss", "value": 0.5, "step": 1, "timestamp": 1_700_000_000_501,
    }  # fmt: skip


def test_metrics_of_a_jobs_run_are_curves_of_its_running_attempt(script, command):
    uid = script.run.uid
    both = [
        {"key": "loss", "value": value, "step": step, "timestamp": 1_700_000_000_000}
        for step, value in enumerate([3, 2])
    ]

    script.post("runs/log-batch", run_id=uid, metrics=both)
    metrics.add(command.job.attempts.get(), [("loss", 2, 1.0, now())])

    assert metrics.curves(command.job).series == {"loss": [(0, 3.0), (1, 2.0), (2, 1.0)]}
    assert script.data(uid)["metrics"] == {"loss": 1.0}
    assert not RunCurve.objects.exists()


def test_metric_that_is_reported_again_counts_once(script, laptop):
    """A client whose answer was lost sends it again."""
    point = {"key": "loss", "value": 1.5, "step": 3, "timestamp": 1_700_000_000_123}

    for who, uid in ((script, script.run.uid), (laptop, laptop.made())):
        for _again in range(3):
            who.post("runs/log-metric", run_id=uid, **point)
        who.post("runs/log-batch", run_id=uid, metrics=[point, point, point | {"step": 4}])

        history = who.get("metrics/get-history", run_id=uid, metric_key="loss")["metrics"]
        assert [one["step"] for one in history] == [3, 4]


def test_values_that_are_no_numbers_are_kept_beside_the_curve(laptop):
    uid = laptop.made()
    for step, value in enumerate([1.0, "NaN", "Infinity", "-Infinity", "inf"]):
        laptop.post(
            "runs/log-metric", run_id=uid, key="loss", value=value, step=step, timestamp=1_700_000_000_000 + step
        )

    history = laptop.get("metrics/get-history", run_id=uid, metric_key="loss")["metrics"]
    assert [one["value"] for one in history] == [1.0, "NaN", "Infinity", "-Infinity", "Infinity"]
    assert laptop.data(uid)["metrics"] == {"loss": "Infinity"}
    assert RunCurve.objects.get().count == 1
    assert OddPoint.objects.count() == 4


def test_number_that_json_has_no_word_for_is_understood(laptop):
    uid = laptop.made()

    answer = laptop.ask("POST", "runs/log-metric", f'{{"run_id": "{uid}", "key": "loss", "value": NaN, "step": "2"}}')

    assert answer.status_code == 200
    assert laptop.data(uid)["metrics"] == {"loss": "NaN"}


@pytest.mark.parametrize("name", ["odd: ä name", "a" * 200, "system/cpu", "val/acc (top 5)", "-dash"])
def test_metric_keeps_its_name_where_no_curve_can_have_it(script, name):
    uid = script.run.uid

    script.post("runs/log-metric", run_id=uid, key=name, value=1, step=0)
    script.post("runs/log-metric", run_id=uid, key=name, value=2, step=1)

    assert script.data(uid)["metrics"] == {name: 2.0}
    assert len(script.get("metrics/get-history", run_id=uid, metric_key=name)["metrics"]) == 2
    curve = Curve.objects.get()
    assert metric_names.is_name(curve.key)
    assert not curve.key.startswith("system/")


def test_history_comes_in_pages(laptop):
    uid = laptop.made()
    laptop.post(
        "runs/log-batch",
        run_id=uid,
        metrics=[{"key": "a", "value": n, "step": n, "timestamp": 1 + n} for n in range(7)],
    )
    asked, steps = {"run_id": uid, "metric_key": "a", "max_results": 3}, []

    answer = laptop.get("metrics/get-history", **asked)
    while True:
        steps.append([one["step"] for one in answer["metrics"]])
        if "next_page_token" not in answer:
            break
        answer = laptop.get("metrics/get-history", **asked, page_token=answer["next_page_token"])

    assert steps == [[0, 1, 2], [3, 4, 5], [6]]


def test_params_never_change(laptop):
    uid = laptop.made()
    laptop.post("runs/log-parameter", run_id=uid, key="lr", value="0.1")
    laptop.post("runs/log-parameter", run_id=uid, key="lr", value="0.1")

    answer = laptop.ask("POST", "runs/log-batch", {"run_id": uid, "params": [{"key": "lr", "value": "0.2"}]})

    assert (answer.status_code, answer.json()["error_code"]) == (400, "INVALID_PARAMETER_VALUE")
    assert answer.json()["message"].startswith(
        "Changing param values is not allowed. Param with key='lr' was already logged with value='0.1'"
    )
    assert (
        laptop.refused("POST", "runs/log-batch", {"run_id": uid, "params": [{"key": "a", "value": x} for x in "12"]})[0]
        == 400
    )
    assert laptop.data(uid)["params"] == {"lr": "0.1"}


def test_params_of_the_platform_yield_to_those_of_the_script(trained):
    attempt = Attempt.objects.create(job=trained.job, number=1, state="running")
    Job.objects.filter(pk=trained.job_id).update(state="running", attempt_number=1)
    script = Script(tokens.issue(attempt), Run.objects.get(job=trained.job))

    script.post("runs/log-parameter", run_id=script.run.uid, key="lr", value="0.10")

    assert script.data(script.run.uid)["params"]["lr"] == "0.10"


def test_secret_params_are_hidden_and_may_be_repeated(laptop):
    uid = laptop.made()
    for _again in range(2):
        laptop.post("runs/log-parameter", run_id=uid, key="api_key", value="verysecretvalue")

    assert "verysecret" not in laptop.data(uid)["params"]["api_key"]


def test_runs_below_one_another_are_children(laptop):
    above = laptop.made("search")
    below = laptop.made("trial", tags=[{"key": "mlflow.parentRunId", "value": above}])

    assert Run.objects.get(uid=below).parent.uid == above
    assert laptop.data(below)["tags"]["mlflow.parentRunId"] == above
    uid = below
    for _level in range(runs.MAX_DEPTH - 1):
        uid = laptop.made(tags=[{"key": "mlflow.parentRunId", "value": uid}])
    fields = {"experiment_id": "0", "tags": [{"key": "mlflow.parentRunId", "value": uid}]}
    assert laptop.refused("POST", "runs/create", fields) == (400, "INVALID_PARAMETER_VALUE")


def test_what_a_jobs_script_makes_belongs_below_the_run_of_the_job(script):
    uid = script.made("trial")
    script.post("runs/log-metric", run_id=uid, key="accuracy", value=0.5)

    child = Run.objects.get(uid=uid)
    assert (child.parent, child.job, child.reported.job) == (script.run, None, script.run.job)
    assert RunCurve.objects.get(run=child).value == 0.5


def test_state_of_a_jobs_run_is_the_jobs(script, command):
    script.post("runs/update", run_id=script.run.uid, status="FAILED", run_name="mine")

    info = script.get("runs/get", run_id=script.run.uid)["run"]["info"]
    assert (info["status"], info["run_name"]) == ("RUNNING", "mine")
    command.job.refresh_from_db()
    assert (command.job.state, command.job.name) == ("running", "learn")


def test_runs_that_a_job_left_running_end_with_it(script, command):
    uid = script.made("trial")
    assert runs.close_left() == 0

    Job.objects.filter(pk=command.pk).update(state="failed", ended_at=now())

    assert runs.close_left() == 1
    assert Run.objects.get(uid=uid).state == "stopped"


def test_deleted_run_is_restored_and_takes_nothing_meanwhile(laptop):
    uid, other = laptop.made("a"), laptop.made("b")
    laptop.post("runs/delete", run_id=uid)

    asked = {"experiment_ids": ["0"]}
    found = {
        view: [run["info"]["run_id"] for run in laptop.post("runs/search", **asked, run_view_type=view)["runs"]]
        for view in ("ACTIVE_ONLY", "DELETED_ONLY", "ALL")
    }
    assert found == {"ACTIVE_ONLY": [other], "DELETED_ONLY": [uid], "ALL": [other, uid]}
    for call, fields in (("log-metric", {"value": 1}), ("log-parameter", {"value": "1"}), ("set-tag", {"value": "1"})):
        assert laptop.refused("POST", f"runs/{call}", {"run_id": uid, "key": "a"} | fields)[0] == 400
    laptop.post("runs/restore", run_id=uid)
    laptop.post("runs/set-tag", run_id=uid, key="a", value="b")


def test_tags_change_and_go(laptop):
    uid = laptop.made()
    laptop.post("runs/set-tag", run_id=uid, key="a", value="1")
    laptop.post("runs/set-tag", run_id=uid, key="a", value="2")
    laptop.post("runs/set-tag", run_id=uid, key="mlflow.note.content", value="said")
    assert laptop.data(uid)["tags"]["a"] == "2"

    laptop.post("runs/delete-tag", run_id=uid, key="a")
    laptop.post("runs/delete-tag", run_id=uid, key="mlflow.note.content")

    assert set(laptop.data(uid)["tags"]) == {"mlflow.runName", "mlflow.user"}
    assert laptop.refused("POST", "runs/delete-tag", {"run_id": uid, "key": "a"}) == (404, "RESOURCE_DOES_NOT_EXIST")


def test_data_and_models_of_a_run_are_kept_once(laptop):
    uid = laptop.made()
    given = {"dataset": {"name": "iris", "digest": "d1", "source_type": "code", "source": "{}"}, "tags": []}
    for _again in range(2):
        laptop.post("runs/log-inputs", run_id=uid, datasets=[given])
        laptop.post("runs/outputs", run_id=uid, models=[{"model_id": "m-1", "step": 0}])

    found = laptop.get("runs/get", run_id=uid)["run"]
    assert [row["dataset"]["name"] for row in found["inputs"]["dataset_inputs"]] == ["iris"]
    assert found["outputs"] == {"model_outputs": [{"model_id": "m-1", "step": 0}]}


def test_limits_are_mlflows_and_the_platforms(laptop, monkeypatch):
    uid = laptop.made()
    many = [{"key": f"k{n}", "value": "1"} for n in range(101)]
    points = [{"key": "a", "value": n, "step": n, "timestamp": 1} for n in range(1001)]
    monkeypatch.setattr(metrics, "MAX_KEYS", 3)

    refused = [
        laptop.refused("POST", "runs/log-batch", {"run_id": uid} | fields)
        for fields in ({"params": many}, {"metrics": points}, {"tags": many},
                       {"metrics": [{"key": f"m{n}", "value": 1} for n in range(4)]},
                       {"params": [{"key": "k" * 251, "value": "1"}]}, {"params": [{"key": "k", "value": "v" * 6001}]},
                       {"tags": [{"key": "k", "value": "v" * 8001}]})
    ]  # fmt: skip

    assert refused == [(400, "INVALID_PARAMETER_VALUE")] * 7
    assert laptop.data(uid)["metrics"] == laptop.data(uid)["params"] == {}


def test_experiment_that_a_jobs_script_names_is_that_of_its_run_until_it_opens_the_run(script, laptop):
    """A client refuses to report to a run of another experiment than the one it was set to."""
    number = script.post("experiments/create", name="digits")["experiment_id"]
    assert script.get("runs/get", run_id=script.run.uid)["run"]["info"]["experiment_id"] == number

    laptop.post("experiments/create", name="other")
    fresh = Script(script.secret)
    fresh.get("experiments/get-by-name", experiment_name="other")

    script.run.refresh_from_db()
    assert script.run.experiment == "digits"


def test_experiments_are_known_by_id_and_name(laptop, alice):
    number = laptop.post("experiments/create", name="digits", tags=[{"key": "a", "value": "b"}])["experiment_id"]
    Run.objects.create(owner=alice, experiment="by hand")

    assert laptop.get("experiments/get", experiment_id=number)["experiment"]["name"] == "digits"
    assert laptop.get("experiments/get-by-name", experiment_name="by hand")["experiment"]["experiment_id"]
    assert laptop.get("experiments/get", experiment_id="0")["experiment"]["name"] == "Default"
    assert laptop.refused("POST", "experiments/create", {"name": "digits"}) == (400, "RESOURCE_ALREADY_EXISTS")
    assert laptop.refused("GET", "experiments/get-by-name", {"experiment_name": "no"}) == (
        404,
        "RESOURCE_DOES_NOT_EXIST",
    )
    names = [
        row["name"] for row in laptop.post("experiments/search", filter="name LIKE 'd%'", max_results=5)["experiments"]
    ]
    assert names == ["digits"]
    laptop.post("experiments/update", experiment_id=number, new_name="letters")
    laptop.post("experiments/set-experiment-tag", experiment_id=number, key="c", value="d")
    laptop.post("experiments/delete", experiment_id=number)
    found = laptop.post("experiments/search", view_type="DELETED_ONLY")["experiments"]
    assert [(row["name"], {tag["key"] for tag in row["tags"]}) for row in found] == [("letters", {"a", "c"})]
    assert laptop.refused("POST", "runs/create", {"experiment_id": number})[0] == 400
    laptop.post("experiments/restore", experiment_id=number)
    laptop.made(experiment=number)


def test_unknown_call_is_refused_in_mlflows_form(laptop):
    assert laptop.refused("POST", "traces/search", {}) == (501, "NOT_IMPLEMENTED")
    assert laptop.refused("GET", "runs/create") == (501, "NOT_IMPLEMENTED")
    answer = laptop.ask("GET", "", base="/api/mlflow/api/3.0/mlflow/server-info")
    assert answer.json()["workspaces_enabled"] is False


def test_log_model_of_older_clients_is_kept_as_their_tag(laptop):
    uid = laptop.made()
    for name in ("a", "b"):
        laptop.post("runs/log-model", run_id=uid, model_json=f'{{"artifact_path": "{name}"}}')

    said = laptop.data(uid)["tags"]["mlflow.log-model.history"]
    assert said == '[{"artifact_path": "a"}, {"artifact_path": "b"}]'
