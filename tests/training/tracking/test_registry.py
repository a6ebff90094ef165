"""Models that scripts log and register: to be found again by id, name, alias and stage."""

from __future__ import annotations

import pytest

from tests.training.tracking.conftest import said
from training.experiments.tracking.models import LoggedModel, TrackedModel

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


@pytest.fixture
def logged(laptop):
    """A model of a run with a file."""
    run = laptop.made()
    params = [{"key": "C", "value": "1"}]
    made = laptop.post("logged-models", experiment_id="0", name="model", source_run_id=run, params=params)["model"]
    uid = made["info"]["model_id"]
    said(laptop.put(f"models/{uid}/MLmodel", b"flavors: {}"))
    return uid


def test_logged_model_has_facts_files_and_an_end(laptop, logged):
    said(laptop.ask("PATCH", f"logged-models/{logged}", {"model_id": logged, "status": "LOGGED_MODEL_READY"}))
    said(laptop.ask("PATCH", f"logged-models/{logged}/tags", {"tags": [{"key": "a", "value": "b"}]}))
    laptop.post(f"logged-models/{logged}/params", params=[{"key": "D", "value": "2"}])

    model = laptop.get(f"logged-models/{logged}")["model"]
    assert (model["info"]["status"], model["info"]["name"]) == ("LOGGED_MODEL_READY", "model")
    assert model["info"]["tags"] == [{"key": "a", "value": "b"}]
    assert model["data"]["params"] == [{"key": "C", "value": "1"}, {"key": "D", "value": "2"}]
    assert model["info"]["artifact_uri"] == f"mlflow-artifacts:/models/{logged}"
    assert laptop.listed(f"models/{logged}") == {"MLmodel": 11}
    assert laptop.get(f"logged-models/{logged}/artifacts/directories")["files"][0]["path"] == "MLmodel"
    said(laptop.ask("DELETE", f"logged-models/{logged}/tags/a"))
    assert laptop.refused("DELETE", f"logged-models/{logged}/tags/a") == (404, "RESOURCE_DOES_NOT_EXIST")
    assert laptop.refused("PATCH", f"logged-models/{logged}", {"status": "DONE"}) == (400, "INVALID_PARAMETER_VALUE")
    said(laptop.ask("DELETE", f"logged-models/{logged}"))
    assert not LoggedModel.objects.exists()


def test_figures_of_a_logged_model_are_the_newest_of_each_name(laptop, logged):
    run = LoggedModel.objects.get().run.uid
    point = {"key": "acc", "model_id": logged, "timestamp": 1}

    laptop.post("runs/log-metric", run_id=run, value=0.5, step=1, **point)
    laptop.post("runs/log-batch", run_id=run, metrics=[point | {"value": 0.75, "step": 2}])

    metrics = laptop.get(f"logged-models/{logged}")["model"]["data"]["metrics"]
    assert [(metric["key"], metric["value"], metric["run_id"]) for metric in metrics] == [("acc", 0.75, run)]
    assert laptop.data(run)["metrics"] == {"acc": 0.75}
    for text, count in (("metrics.acc > 0.7 and name = 'model'", 1), ("metrics.acc > 0.8", 0), ("params.C = '1'", 1)):
        assert len(laptop.post("logged-models/search", experiment_ids=["0"], filter=text)["models"]) == count


def test_model_is_registered_found_and_let_go(laptop, logged):
    laptop.post("registered-models/create", name="iris", description="of flowers", tags=[{"key": "a", "value": "b"}])
    for _again in range(2):
        laptop.post("model-versions/create", name="iris", source=f"models:/{logged}", model_id=logged)
    laptop.post("registered-models/alias", name="iris", alias="champion", version="1")

    assert laptop.get("registered-models/alias", name="iris", alias="champion")["model_version"]["version"] == "1"
    uri = laptop.get("model-versions/get-download-uri", name="iris", version="1")["artifact_uri"]
    assert uri == f"mlflow-artifacts:/models/{logged}"
    versions = laptop.get("model-versions/search", filter="name='iris'")["model_versions"]
    assert [(one["version"], one["model_id"], one["aliases"]) for one in versions] == [
        ("2", logged, []), ("1", logged, ["champion"]),
    ]  # fmt: skip
    found = laptop.get("registered-models/search", filter="name ILIKE '%IR%'")["registered_models"]
    assert [(one["name"], one["description"], one["aliases"]) for one in found] == [
        ("iris", "of flowers", [{"alias": "champion", "version": "1"}])
    ]
    assert laptop.get("registered-models/search", filter="tags.a = 'c'")["registered_models"] == []
    said(laptop.ask("DELETE", "model-versions/delete", {"name": "iris", "version": "1"}))
    assert laptop.refused("GET", "registered-models/alias", {"name": "iris", "alias": "champion"})[0] == 404
    said(laptop.ask("DELETE", "registered-models/delete", {"name": "iris"}))
    assert not TrackedModel.objects.exists()


def test_stages_tags_and_descriptions_of_versions_change(laptop, logged):
    laptop.post("registered-models/create", name="iris")
    laptop.post("registered-models/create", name="other")
    for _again in range(2):
        laptop.post("model-versions/create", name="iris", source=f"models:/{logged}")
    moved = {"name": "iris", "stage": "production", "archive_existing_versions": True}

    laptop.post("model-versions/transition-stage", version="1", **moved)
    laptop.post("model-versions/transition-stage", version="2", **moved)
    laptop.post("model-versions/set-tag", name="iris", version="2", key="ok", value="yes")
    said(laptop.ask("PATCH", "model-versions/update", {"name": "iris", "version": "2", "description": "better"}))

    found = laptop.post("registered-models/get-latest-versions", name="iris", stages=["Production"])["model_versions"]
    assert [(one["version"], one["current_stage"], one["description"]) for one in found] == [
        ("2", "Production", "better")
    ]
    assert found[0]["tags"] == [{"key": "ok", "value": "yes"}]
    assert laptop.get("model-versions/get", name="iris", version="1")["model_version"]["current_stage"] == "Archived"
    said(laptop.ask("DELETE", "model-versions/delete-tag", {"name": "iris", "version": "2", "key": "ok"}))
    laptop.post("registered-models/set-tag", name="iris", key="team", value="a")
    said(laptop.ask("PATCH", "registered-models/update", {"name": "iris", "description": "flowers"}))
    laptop.post("registered-models/rename", name="iris", new_name="flowers")
    kept = laptop.get("registered-models/get", name="flowers")["registered_model"]
    assert (kept["description"], kept["tags"]) == ("flowers", [{"key": "team", "value": "a"}])
    said(laptop.ask("DELETE", "registered-models/delete-tag", {"name": "flowers", "key": "team"}))
    said(laptop.ask("DELETE", "registered-models/alias", {"name": "flowers", "alias": "none"}))
    refused = [
        laptop.refused("POST", "registered-models/rename", {"name": "flowers", "new_name": "other"}),
        laptop.refused("POST", "registered-models/create", {"name": "other"}),
        laptop.refused("POST", "registered-models/create", {"name": "a/b"}),
        laptop.refused("POST", "registered-models/alias", {"name": "flowers", "alias": "v1", "version": "1"}),
        laptop.refused("POST", "registered-models/alias", {"name": "flowers", "alias": "a", "version": "9"}),
        laptop.refused("POST", "model-versions/transition-stage", {"name": "flowers", "version": "1", "stage": "x"}),
    ]
    assert [status for status, _code in refused] == [400, 400, 400, 400, 404, 400]


def test_version_of_files_of_a_run_is_fetched_from_there(laptop):
    run = laptop.made()
    laptop.post("registered-models/create", name="iris")
    laptop.post("model-versions/create", name="iris", source=f"runs:/{run}/model", run_id=run)

    uri = laptop.get("model-versions/get-download-uri", name="iris", version="1")["artifact_uri"]

    assert uri == f"mlflow-artifacts:/runs/{run}/model"


def test_model_that_a_jobs_script_logs_lies_below_the_outputs_of_the_job(script, command):
    uid = script.post("logged-models", experiment_id="0", name="m", source_run_id=script.run.uid)["model"]["info"][
        "model_id"
    ]

    said(script.put(f"models/{uid}/MLmodel", b"x"))

    from workers.core.runs import RunDir

    assert (RunDir.for_attempt(command.pk, 1).outputs / "mlflow" / uid / "MLmodel").read_bytes() == b"x"
