"""A script that nobody wrote for the platform reports by MLflow's client, told where by its environment alone."""

from __future__ import annotations

import json
import os
import re
import urllib.error
import urllib.request

import pytest

from tests.bench.scripts import INDEX
from tests.journeys.up import call, first_admin, running, until
from tests.training.tracking.client import PACKAGES, why_not_installed

pytestmark = pytest.mark.journey

SCRIPT = """\
import mlflow

mlflow.set_experiment("digits")
with mlflow.start_run(run_name="own"):
    mlflow.log_param("lr", 0.1)
    for step in range(5):
        mlflow.log_metric("loss", 1 / (step + 1), step=step)
    mlflow.log_text("kept", "notes/said.txt")
    for rate in (0.1, 0.2):
        with mlflow.start_run(nested=True, run_name=f"rate {rate}"):
            mlflow.log_metric("accuracy", 1 - rate)
import os
print("token", os.environ["MLFLOW_TRACKING_TOKEN"], "turned", os.environ["MLFLOW_TRACKING_TOKEN"][::-1])
"""
ENDS = ("succeeded", "failed", "stopped", "lost")


def mlflow(url: str, token: str, method: str, path: str, body: object = None) -> tuple[int, object]:
    """One call of MLflow's API: status, and the answer, or the code of the refusal."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    data = json.dumps(body).encode() if body is not None else None
    asked = urllib.request.Request(f"{url}/api/mlflow/api/2.0/mlflow/{path}", data=data, headers=headers, method=method)
    try:
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refusal:
        return refusal.code, json.load(refusal)["error_code"]


def job_token(log: str) -> str:
    """The secret as its script gave it away, in a way that no log can star out."""
    return re.search(r"turned (\S+)", log)[1][::-1]


def reported(url: str, token: str) -> dict[str, object]:
    """What the runs of the experiment reached, or were given, by name."""
    known = mlflow(url, token, "GET", "experiments/get-by-name?experiment_name=digits")[1]
    asked = {"experiment_ids": [known["experiment"]["experiment_id"]]}
    found = {}
    for run in mlflow(url, token, "POST", "runs/search", asked)[1]["runs"]:
        metrics = {metric["key"]: metric["value"] for metric in run["data"]["metrics"]}
        params = {param["key"]: param["value"] for param in run["data"]["params"]}
        found[run["info"]["run_name"]] = params.get("lr") or metrics["accuracy"]
    return found


@pytest.mark.long
def test_script_in_a_job_reports_by_its_environment_alone(tmp_path):
    if why := why_not_installed():
        pytest.skip(why)
    packages = f"pip install -q --target packages {PACKAGES[0]} && export PYTHONPATH=packages"
    body = {
        "name": "reports",
        "command": f"{packages} && python - <<'END'\n{SCRIPT}END\n",
        "cpus": 1.0,
        "variables": {name: os.environ[name] for name in INDEX if name in os.environ},
    }
    with running(tmp_path / "platform") as up:
        token = first_admin(up)
        status, made = call(up.url, token, "POST", "commands/", body)
        assert status == 201, made
        job = made["id"]

        def row() -> dict:
            return call(up.url, token, "GET", f"jobs/{job}/")[1]

        until(lambda: row()["state"] in ENDS, 300, "the end of the command")
        run = tmp_path / "platform" / "jobs" / str(job) / "1"
        log, ended = (run / "log.txt").read_text(), row()
        curves = call(up.url, token, "GET", f"jobs/{job}/metrics/")[1]
        uid = next((run / "outputs" / "mlflow").iterdir()).name
        said = (run / "outputs" / "mlflow" / uid / "notes" / "said.txt").read_text()
        found = reported(up.url, token)
        late = mlflow(up.url, job_token(log), "GET", f"runs/get?run_id={uid}")

    assert ended["state"] == "succeeded", log
    assert "token ****" in log
    assert curves["series"]["loss"] == [[step, 1 / (step + 1)] for step in range(5)]
    assert said == "kept"
    assert found == {"own": "0.1", "rate 0.1": 0.9, "rate 0.2": 0.8}
    assert late == (401, "UNAUTHENTICATED")
