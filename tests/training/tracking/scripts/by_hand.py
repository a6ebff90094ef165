"""A loop that somebody wrote, with figures, files and runs within a run; prints what it finds again."""

import json
import math
import os
from pathlib import Path

import matplotlib.pyplot as plt
import mlflow

client = mlflow.MlflowClient()
experiment = mlflow.set_experiment("digits")
with mlflow.start_run(run_name="plain", tags={"kind": "a"}, description="*Hm*") as run:
    mlflow.log_params({"lr": 0.1, "layers": 3})
    weight = 0.0
    for step in range(20):
        weight -= 0.1 * 2 * (weight - 3)
        mlflow.log_metric("loss", (weight - 3) ** 2, step=step)
    mlflow.log_metrics({"val/acc": 0.95, "odd: ä": 2.0}, step=20)
    mlflow.log_metric("broken", float("nan"))
    points = [mlflow.entities.Metric("many", n, 1_700_000_000_000, n) for n in range(1000)]
    client.log_batch(run.info.run_id, metrics=points)
    try:
        mlflow.log_param("lr", 0.2)
        refused = ""
    except mlflow.MlflowException as exc:
        refused = exc.error_code
    mlflow.log_text("hello", "notes/a.txt")
    mlflow.log_dict({"x": 1}, "d.json")
    mlflow.log_figure(plt.figure(), "figure.png")
    mlflow.log_table({"a": [1, 2]}, "table.json")
    big = Path("big.bin")
    big.write_bytes(os.urandom(3_000_000))
    mlflow.log_artifact("big.bin", "weights")
    for rate in (0.1, 0.2):
        with mlflow.start_run(nested=True, run_name=f"rate {rate}"):
            mlflow.log_metric("accuracy", 1 - rate)
uid = run.info.run_id
read = client.get_run(uid)
fetched = Path(mlflow.artifacts.download_artifacts(f"runs:/{uid}/weights/big.bin"))
wanted = "metrics.`val/acc` > 0.9 and params.lr = '0.1' and tags.kind = 'a' and attributes.status = 'FINISHED'"
below = f"tags.mlflow.parentRunId = '{uid}'"
trials = client.search_runs([experiment.experiment_id], below, order_by=["metrics.accuracy"])
client.delete_run(trials[0].info.run_id)
left = len(client.search_runs([experiment.experiment_id]))
client.restore_run(trials[0].info.run_id)
found = {
    "status": read.info.status,
    "params": read.data.params,
    "kind": read.data.tags["kind"],
    "note": read.data.tags["mlflow.note.content"],
    "metrics": {name: value for name, value in read.data.metrics.items() if math.isfinite(value)},
    "broken": repr(read.data.metrics["broken"]),
    "steps": [one.step for one in client.get_metric_history(uid, "loss")],
    "many": len(client.get_metric_history(uid, "many")),
    "refused": refused,
    "files": sorted(file.path for file in client.list_artifacts(uid)),
    "size": fetched.stat().st_size,
    "same": fetched.read_bytes() == big.read_bytes(),
    "text": mlflow.artifacts.load_text(f"runs:/{uid}/notes/a.txt"),
    "found": list(mlflow.search_runs(filter_string=wanted)["run_id"]),
    "uid": uid,
    "trials": [one.info.run_name for one in trials],
    "left": left,
    "again": len(client.search_runs([experiment.experiment_id])),
    "experiments": sorted(one.name for one in mlflow.search_experiments()),
}
print("FOUND", json.dumps(found))
