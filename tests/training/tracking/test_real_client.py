"""MLflow's own client, whole: what its users write runs against the platform and finds again what it reported."""

from __future__ import annotations

import json

import pytest

from tests.training.tracking import client
from tests.training.tracking.conftest import laptop_of
from training.experiments.models import Run, RunCurve
from training.tracking.models import LoggedModel, TrackedVersion

pytestmark = [pytest.mark.proof, pytest.mark.django_db(transaction=True)]

BEGIN = """\
import json, math, os
import mlflow
from mlflow import MlflowClient
client = MlflowClient()
def show(**found):
    print("FOUND", json.dumps(found))
"""
LOOP = """\
experiment = mlflow.set_experiment("digits")
with mlflow.start_run(run_name="plain", tags={"kind": "a"}, description="*Hm*") as run:
    mlflow.log_params({"lr": 0.1, "layers": 3})
    weight = 0.0
    for step in range(20):
        weight -= 0.1 * 2 * (weight - 3)
        mlflow.log_metric("loss", (weight - 3) ** 2, step=step)
    mlflow.log_metrics({"val/acc": 0.95, "odd: ä": 2.0}, step=20)
    mlflow.log_metric("broken", float("nan"))
    client.log_batch(run.info.run_id, metrics=[mlflow.entities.Metric("many", n, 1_700_000_000_000, n) for n in range(1000)])
    try:
        mlflow.log_param("lr", 0.2)
        refused = ""
    except mlflow.MlflowException as exc:
        refused = exc.error_code
    mlflow.log_text("hello", "notes/a.txt")
    mlflow.log_dict({"x": 1}, "d.json")
    import matplotlib.pyplot as plt
    mlflow.log_figure(plt.figure(), "figure.png")
    mlflow.log_table({"a": [1, 2]}, "table.json")
    with open("big.bin", "wb") as file:
        file.write(os.urandom(3_000_000))
    mlflow.log_artifact("big.bin", "weights")
    for rate in (0.1, 0.2):
        with mlflow.start_run(nested=True, run_name=f"rate {rate}"):
            mlflow.log_metric("accuracy", 1 - rate)
uid = run.info.run_id
read = client.get_run(uid)
fetched = mlflow.artifacts.download_artifacts(f"runs:/{uid}/weights/big.bin")
filter = "metrics.`val/acc` > 0.9 and params.lr = '0.1' and tags.kind = 'a' and attributes.status = 'FINISHED'"
trials = client.search_runs([experiment.experiment_id], f"tags.mlflow.parentRunId = '{uid}'", order_by=["metrics.accuracy"])
client.delete_run(trials[0].info.run_id)
left = len(client.search_runs([experiment.experiment_id]))
client.restore_run(trials[0].info.run_id)
show(
    status=read.info.status, params=read.data.params, kind=read.data.tags["kind"], note=read.data.tags["mlflow.note.content"],
    metrics={name: value for name, value in read.data.metrics.items() if value == value}, broken=repr(read.data.metrics["broken"]),
    steps=[one.step for one in client.get_metric_history(uid, "loss")], many=len(client.get_metric_history(uid, "many")),
    refused=refused, files=sorted(file.path for file in client.list_artifacts(uid)), size=os.path.getsize(fetched),
    same=open(fetched, "rb").read() == open("big.bin", "rb").read(), text=mlflow.artifacts.load_text(f"runs:/{uid}/notes/a.txt"),
    found=list(mlflow.search_runs(filter_string=filter)["run_id"]), uid=uid, trials=[one.info.run_name for one in trials],
    left=left, again=len(client.search_runs([experiment.experiment_id])),
    experiments=sorted(one.name for one in mlflow.search_experiments()),
)
"""
AUTOLOG = """\
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
data, labels = load_iris(return_X_y=True)
mlflow.set_experiment("auto")
mlflow.sklearn.autolog(silent=True)
uids = {}
for name, model in (
    ("linear", LogisticRegression(max_iter=500)), ("forest", RandomForestClassifier(n_estimators=5)),
    ("search", GridSearchCV(LogisticRegression(max_iter=500), {"C": [0.1, 1.0]}, cv=2)),
):
    with mlflow.start_run(run_name=name) as run:
        model.fit(data, labels)
    uids[name] = run.info.run_id
runs = {name: client.get_run(uid) for name, uid in uids.items()}
model = client.get_logged_model(runs["linear"].outputs.model_outputs[0].model_id)
version = mlflow.register_model(f"models:/{model.model_id}", "iris")
client.set_registered_model_alias("iris", "champion", version.version)
client.set_model_version_tag("iris", version.version, "checked", "yes")
loaded = mlflow.sklearn.load_model("models:/iris@champion")
show(
    scores={name: run.data.metrics["training_score"] for name, run in runs.items()},
    params={name: len(run.data.params) for name, run in runs.items()},
    inputs=[len(run.inputs.dataset_inputs) for run in runs.values()],
    models=[len(run.outputs.model_outputs) for run in runs.values()],
    trials=len(mlflow.search_runs(filter_string=f"tags.mlflow.parentRunId = '{uids['search']}'")),
    status=str(model.status), loaded=type(loaded).__name__, right=bool(loaded.score(data, labels) > 0.9),
    version=client.get_model_version_by_alias("iris", "champion").version, names=[one.name for one in client.search_registered_models()],
    tags=client.get_model_version("iris", "1").tags, by_name=[one.version for one in client.search_model_versions("name='iris'")],
    uri=client.get_model_version_download_uri("iris", "1"), model=model.model_id,
)
"""


@pytest.fixture
def ran(alice, live_server, tmp_path):
    """`ran(script)`: what a script on Alice's laptop says it found."""
    if why := client.why_not_installed():
        pytest.skip(why)

    def run(script: str) -> dict:
        secret = laptop_of(alice).secret
        done = client.run(BEGIN + script, address=f"{live_server.url}/api/mlflow", token=secret, folder=tmp_path)
        told = [line.removeprefix("FOUND ") for line in done.stdout.splitlines() if line.startswith("FOUND ")]
        assert done.returncode == 0, done.stderr[-4000:]
        return json.loads(told[0])

    return run


def test_real_client_reports_a_loop_by_hand_and_finds_it_again(ran):
    found = ran(LOOP)

    uid = found.pop("uid")
    final = found.pop("metrics")
    assert found == {
        "status": "FINISHED", "params": {"lr": "0.1", "layers": "3"}, "kind": "a", "note": "*Hm*", "broken": "nan",
        "steps": list(range(20)), "many": 1000, "refused": "INVALID_PARAMETER_VALUE",
        "files": ["d.json", "figure.png", "notes", "table.json", "weights"], "size": 3_000_000, "same": True,
        "text": "hello", "found": [uid], "trials": ["rate 0.2", "rate 0.1"], "left": 2, "again": 3,
        "experiments": ["Default", "digits"],
    }  # fmt: skip
    assert (final["val/acc"], final["odd: ä"], final["many"]) == (0.95, 2.0, 999)
    run = Run.objects.get(uid=uid)
    assert (run.name, run.state, run.experiment, run.children.count()) == ("plain", "succeeded", "digits", 2)
    assert RunCurve.objects.get(run=run, key="loss").count == 20


def test_real_client_logs_what_scikit_learn_fits_and_registers_it(ran):
    found = ran(AUTOLOG)

    assert all(score > 0.9 for score in found.pop("scores").values())
    assert all(count > 5 for count in found.pop("params").values())
    model = found.pop("model")
    assert found == {
        "inputs": [1, 1, 1], "models": [1, 1, 2], "trials": 2, "status": "READY", "loaded": "LogisticRegression",
        "right": True, "version": "1", "names": ["iris"], "tags": {"checked": "yes"}, "by_name": ["1"],
        "uri": f"mlflow-artifacts:/models/{model}",
    }  # fmt: skip
    assert LoggedModel.objects.filter(status="LOGGED_MODEL_READY").count() == 4
    assert TrackedVersion.objects.get().logged.uid == model
