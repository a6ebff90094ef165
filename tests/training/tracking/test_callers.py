"""Who reaches what: people by their tokens, programs of jobs by the job's own."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils.timezone import now

from accounts.models import AuditEntry
from aiplatform.web import bodies
from tests.factories import work
from tests.training.tracking.conftest import TRACKING, Script, begun, laptop_of, said
from training.commands import services as commands
from training.commands.services import CommandRequest
from training.experiments.models import Run
from training.experiments.tracking import tokens
from training.experiments.tracking.models import JobToken
from workers.core.models import Attempt, Job

pytestmark = pytest.mark.django_db

MISSING, CLOSED, STRANGER = (404, "RESOURCE_DOES_NOT_EXIST"), (403, "PERMISSION_DENIED"), (401, "UNAUTHENTICATED")
CHANGES = [
    ("runs/log-metric", {"key": "a", "value": 1}), ("runs/log-parameter", {"key": "a", "value": "1"}),
    ("runs/log-batch", {"metrics": [{"key": "a", "value": 1}]}), ("runs/set-tag", {"key": "a", "value": "1"}),
    ("runs/delete-tag", {"key": "a"}), ("runs/update", {"status": "FAILED"}), ("runs/delete", {}), ("runs/restore", {}),
    ("runs/log-inputs", {"datasets": []}), ("runs/outputs", {"models": []}), ("runs/log-model", {"model_json": "{}"}),
]  # fmt: skip


def test_run_of_somebody_else_is_answered_like_one_that_is_not_there(laptop, bobs):
    uid = laptop.made()
    nothing = "f" * 32

    for path, fields in CHANGES:
        mine = bobs.ask("POST", path, {"run_id": uid} | fields)
        none = bobs.ask("POST", path, {"run_id": nothing} | fields)
        assert (mine.status_code, mine.json()["error_code"]) == MISSING, path
        assert mine.json()["message"].replace(uid, "?") == none.json()["message"].replace(nothing, "?")
    assert bobs.refused("GET", "runs/get", {"run_id": uid}) == MISSING
    assert bobs.refused("GET", "metrics/get-history", {"run_id": uid, "metric_key": "a"}) == MISSING
    assert bobs.refused("GET", "artifacts/list", {"run_id": uid}) == MISSING
    assert bobs.put(f"runs/{uid}/a", b"x").status_code == bobs.fetched(f"runs/{uid}/a").status_code == 404
    parent = {"experiment_id": "0", "tags": [{"key": "mlflow.parentRunId", "value": uid}]}
    assert bobs.refused("POST", "runs/create", parent) == MISSING
    assert bobs.post("runs/search", experiment_ids=["0"])["runs"] == []
    assert Run.objects.get(uid=uid).name == "first"


def test_experiments_and_models_of_somebody_else_are_not_there(laptop, bobs):
    number = laptop.post("experiments/create", name="digits")["experiment_id"]
    laptop.post("registered-models/create", name="iris")
    laptop.post("model-versions/create", name="iris", source="models:/m-1")
    model = laptop.post("logged-models", experiment_id=number, name="m")["model"]["info"]["model_id"]

    refused = [
        bobs.refused("GET", "experiments/get", {"experiment_id": number}),
        bobs.refused("GET", "experiments/get-by-name", {"experiment_name": "digits"}),
        bobs.refused("POST", "experiments/update", {"experiment_id": number, "new_name": "x"}),
        bobs.refused("POST", "runs/create", {"experiment_id": number}),
        bobs.refused("POST", "runs/search", {"experiment_ids": [number]}),
        bobs.refused("GET", "registered-models/get", {"name": "iris"}),
        bobs.refused("GET", "model-versions/get", {"name": "iris", "version": "1"}),
        bobs.refused("GET", f"logged-models/{model}"),
        bobs.refused("PATCH", f"logged-models/{model}", {"status": "LOGGED_MODEL_READY"}),
        bobs.refused("POST", "logged-models/search", {"experiment_ids": [number]}),
    ]
    assert refused == [MISSING] * len(refused)
    assert bobs.put(f"models/{model}/a", b"x").status_code == 404
    assert bobs.get("registered-models/search") == {"registered_models": []}
    assert bobs.get("model-versions/search") == {"model_versions": []}


def test_public_run_is_for_reading(laptop, bobs):
    uid = laptop.made()
    Run.objects.filter(uid=uid).update(visibility="public")

    assert bobs.get("runs/get", run_id=uid)["run"]["info"]["run_name"] == "first"
    for path, fields in CHANGES:
        assert bobs.refused("POST", path, {"run_id": uid} | fields) == CLOSED, path
    assert bobs.put(f"runs/{uid}/a", b"x").status_code == 403


def test_token_of_a_job_reaches_its_run_and_those_that_it_made_and_reads_its_owners(script, laptop, bobs):
    child, other, foreign = script.made("trial"), laptop.made("other"), bobs.made("bobs")

    script.post("runs/set-tag", run_id=script.run.uid, key="a", value="1")
    script.post("runs/set-tag", run_id=child, key="a", value="1")
    assert {row["info"]["run_name"] for row in script.post("runs/search", experiment_ids=["0"])["runs"]} == {
        "learn", "trial", "other",
    }  # fmt: skip
    assert script.get("runs/get", run_id=other)["run"]["info"]["run_name"] == "other"
    for path, fields in CHANGES:
        assert script.refused("POST", path, {"run_id": other} | fields) == CLOSED, path
        assert script.refused("POST", path, {"run_id": foreign} | fields) == MISSING, path
    assert script.put(f"runs/{other}/a", b"x").status_code == 403


def test_token_of_a_job_ends_with_its_attempt(script, command):
    asked = {"run_id": script.run.uid}
    assert script.ask("GET", "runs/get", asked).status_code == 200
    Attempt.objects.filter(job=command.job).update(ended_at=now())
    assert script.refused("GET", "runs/get", asked) == STRANGER

    Job.objects.filter(pk=command.pk).update(attempt_number=2)
    second = Script(tokens.issue(Attempt.objects.create(job=command.job, number=2, state="running")))

    assert script.refused("GET", "runs/get", asked) == STRANGER
    assert second.ask("GET", "runs/get", asked).status_code == 200


def test_tokens_of_a_job_end_with_its_owners_account(script, command, alice):
    again = Script(tokens.issue(command.job.attempts.get()))
    asked = {"run_id": script.run.uid}
    assert script.ask("GET", "runs/get", asked).status_code == 200
    assert again.ask("GET", "runs/get", asked).status_code == 200

    alice.is_active = False
    alice.save()

    assert again.refused("GET", "runs/get", asked) == STRANGER
    assert script.refused("GET", "runs/get", asked) == STRANGER


def test_token_of_a_job_is_kept_as_a_digest_and_opens_no_other_door(script):
    kept = JobToken.objects.values_list("digest", flat=True).get()

    assert script.secret not in kept
    assert len(kept) == 64
    browser = Client(headers={"Authorization": f"Bearer {script.secret}"})
    for path in ("/api/v1/jobs/", "/api/v1/me/", "/api/v1/datasets/"):
        assert browser.get(path).status_code == 401
    assert browser.get("/training/").status_code == 302


def test_token_of_a_job_deletes_no_models(script):
    script.post("registered-models/create", name="iris")
    script.post("model-versions/create", name="iris", source=f"runs:/{script.run.uid}/model")

    assert script.refused("DELETE", "registered-models/delete", {"name": "iris"}) == CLOSED
    assert script.refused("DELETE", "model-versions/delete", {"name": "iris", "version": "1"}) == CLOSED


def test_without_a_token_nothing_is_answered(laptop, as_alice):
    uid = laptop.made()
    for secret in ("", "aip_" + "x" * 43, "aipjob_" + "x" * 43):
        assert Script(secret).refused("GET", "runs/get", {"run_id": uid}) == STRANGER
    assert Script("").refused("POST", "traces/search", {}) == STRANGER
    answer = as_alice.get(f"{TRACKING}runs/get", {"run_id": uid})  # a cookie opens nothing here
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"] == "Bearer"


def test_token_for_reading_reads_and_searches(alice, laptop):
    uid = laptop.made()
    reader = laptop_of(alice, scope="read")

    assert reader.get("runs/get", run_id=uid)
    assert len(reader.post("runs/search", experiment_ids=["0"])["runs"]) == 1
    assert reader.post("experiments/search")["experiments"]
    for path, fields in CHANGES:
        assert reader.refused("POST", path, {"run_id": uid} | fields) == CLOSED, path
    assert reader.refused("POST", "runs/create", {"experiment_id": "0"}) == CLOSED


def test_token_that_expired_or_of_somebody_without_the_right_is_refused(alice, anna):
    assert laptop_of(alice, expires_in=timedelta(seconds=-1)).refused("GET", "runs/get", {"run_id": "x"}) == STRANGER
    assert laptop_of(anna).refused("GET", "runs/get", {"run_id": "x"}) == CLOSED
    assert laptop_of(anna).refused("POST", "runs/create", {"experiment_id": "0"}) == CLOSED
    alice.must_change_password = True
    alice.save()
    assert laptop_of(alice).refused("GET", "runs/get", {"run_id": "x"}) == CLOSED


def test_look_for_runs_of_others_stands_in_the_trail_and_a_new_experiment_does_not_count(laptop, bobs, bob):
    uid = laptop.made()

    bobs.refused("GET", "runs/get", {"run_id": uid})

    assert AuditEntry.objects.filter(verb="denied", actor="bob").count() == 1
    bobs.refused("GET", "experiments/get-by-name", {"experiment_name": "new"})
    assert AuditEntry.objects.filter(verb="denied", actor="bob").count() == 1


def test_who_tries_many_tokens_has_to_wait_and_who_has_one_does_not(laptop):
    statuses = [Script(f"aip_{number}").ask("GET", "runs/get").status_code for number in range(9)]

    assert (statuses[0], statuses[-1]) == (401, 429)
    assert laptop.made()


def test_large_body_is_taken_from_the_program_of_a_job_alone_and_for_this_door(script, monkeypatch):
    monkeypatch.setattr(bodies, "close_old_connections", lambda: None)

    def scope(path, secret):
        return {"path": path, "method": "PUT", "headers": [(b"authorization", f"Bearer {secret}".encode())]}

    assert bodies._sender(scope("/api/mlflow/x", script.secret)) is not None
    assert bodies._sender(scope("/api/v1/x", script.secret)) is None
    assert bodies._sender(scope("/api/mlflow/x", "aipjob_x")) is None


def test_runs_of_an_environment_are_its_owners_own(alice, cluster):
    work.node(cores=4)
    job = work.job(alice, cluster, kind="environment", state="queued")
    notebook = Script(tokens.issue(begun(job)))

    uid = notebook.made("tried")
    said(notebook.put(f"runs/{uid}/a", b"x"))

    run = Run.objects.get(uid=uid)
    assert (run.parent, run.job, run.owner) == (None, None, alice)
    notebook.post("runs/log-metric", run_id=uid, key="a", value=1)


def test_two_jobs_of_one_person_do_not_write_into_each_others_runs(script, alice):
    other = commands.submit(user=alice, request=CommandRequest(command="true", cpus=1.0, name="other"))
    second = Script(tokens.issue(begun(other.job)), Run.objects.get(job=other.job))

    assert second.refused("POST", "runs/set-tag", {"run_id": script.run.uid, "key": "a", "value": "b"}) == CLOSED
    assert second.refused("POST", "runs/log-metric", {"run_id": script.made(), "key": "a", "value": 1}) == CLOSED
