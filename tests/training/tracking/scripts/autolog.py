"""Models of scikit-learn, logged by themselves and registered; prints what it finds again."""

import json

import mlflow
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

client = mlflow.MlflowClient()
data, labels = load_iris(return_X_y=True)
mlflow.set_experiment("auto")
mlflow.sklearn.autolog(silent=True)
uids = {}
for name, model in (
    ("linear", LogisticRegression(max_iter=500)),
    ("forest", RandomForestClassifier(n_estimators=5)),
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
found = {
    "scores": {name: run.data.metrics["training_score"] for name, run in runs.items()},
    "params": {name: len(run.data.params) for name, run in runs.items()},
    "inputs": [len(run.inputs.dataset_inputs) for run in runs.values()],
    "models": [len(run.outputs.model_outputs) for run in runs.values()],
    "trials": len(mlflow.search_runs(filter_string=f"tags.mlflow.parentRunId = '{uids['search']}'")),
    "status": str(model.status),
    "loaded": type(loaded).__name__,
    "right": bool(loaded.score(data, labels) > 0.9),
    "version": client.get_model_version_by_alias("iris", "champion").version,
    "names": [one.name for one in client.search_registered_models()],
    "tags": client.get_model_version("iris", "1").tags,
    "by_name": [one.version for one in client.search_model_versions("name='iris'")],
    "uri": client.get_model_version_download_uri("iris", "1"),
    "model": model.model_id,
}
print("FOUND", json.dumps(found))
