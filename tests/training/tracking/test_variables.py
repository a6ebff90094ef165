"""What programs of jobs are told: the address where they reach it, a token, their run; nothing against their owner."""

from __future__ import annotations

import pytest

from aiplatform import env
from tests.factories import work
from training.experiments.models import Run
from training.experiments.tracking import tokens, variables
from workers.core.kinds import Launch
from workers.core.models import Attempt, Job
from workers.execution import tickets
from workers.supervisor import sandbox

pytestmark = pytest.mark.django_db


@pytest.fixture
def attempt(command) -> Attempt:
    Job.objects.filter(pk=command.pk).update(attempt_number=1)
    return Attempt.objects.create(job=Job.objects.get(pk=command.pk), number=1)


@pytest.fixture(autouse=True)
def _plain_tier(monkeypatch):
    monkeypatch.setattr(tickets, "tier", lambda: (sandbox.OWN_UID, ""))


def told(attempt, **launch) -> Launch:
    return variables.with_tracking(Launch(argv=[], **launch), attempt)


def test_job_is_told_where_to_report_and_its_token_is_hidden_in_its_log(attempt, monkeypatch):
    monkeypatch.setattr(env, "PORT", 8123)
    Run.objects.filter(job=attempt.job).update(experiment="digits")

    launch = told(attempt)

    run = Run.objects.get(job=attempt.job)
    secret = launch.env.pop("MLFLOW_TRACKING_TOKEN")
    assert launch.env == {
        "MLFLOW_TRACKING_URI": "http://127.0.0.1:8123/api/mlflow", "MLFLOW_RUN_ID": run.uid,
        "MLFLOW_EXPERIMENT_NAME": "digits", "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "6", "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    }  # fmt: skip
    assert launch.secrets == [secret]
    assert tokens.find(secret).attempt == attempt


def test_what_the_owner_set_goes_before(attempt):
    launch = told(attempt, env={"MLFLOW_EXPERIMENT_NAME": "mine", "MLFLOW_HTTP_REQUEST_TIMEOUT": "60"})

    assert (launch.env["MLFLOW_EXPERIMENT_NAME"], launch.env["MLFLOW_HTTP_REQUEST_TIMEOUT"]) == ("mine", "60")


def test_another_server_that_the_owner_named_sees_no_token_of_this_one(attempt):
    launch = told(attempt, env={"MLFLOW_TRACKING_URI": "https://elsewhere.example"})

    assert set(launch.env) == {"MLFLOW_TRACKING_URI", *variables.ALWAYS}
    assert launch.secrets == []


def test_job_of_the_platforms_own_kinds_is_told_nothing(alice, cluster):
    job = work.job(alice, cluster, kind="evaluation", state="running")

    assert told(job.attempts.get()) == Launch(argv=[])


def test_run_id_is_told_to_what_is_a_run(alice, cluster):
    job = work.job(alice, cluster, kind="environment", state="running")

    launch = told(job.attempts.get())

    assert "MLFLOW_TRACKING_TOKEN" in launch.env
    assert not {"MLFLOW_RUN_ID", "MLFLOW_EXPERIMENT_NAME"} & set(launch.env)


@pytest.mark.parametrize(
    ("settings_of", "launch", "tier", "address"),
    [
        ({"HOST": "0.0.0.0"}, {}, 3, "http://127.0.0.1:8000"),
        ({"HOST": "10.0.0.5"}, {}, 3, "http://10.0.0.5:8000"),
        ({"HOST": "::1"}, {}, 0, "http://[::1]:8000"),
        ({"NODE_JOINED": True, "SERVER": "http://10.0.0.1:8000/"}, {}, 3, "http://10.0.0.1:8000"),
        ({}, {"own_network": True}, 3, ""),  # nothing leads to 127.0.0.1 from there
        ({}, {"own_network": True}, 1, "http://127.0.0.1:8000"),  # too low a tier for a network of its own
        ({"BASE_URL": "http://10.0.0.1:8000"}, {"own_network": True}, 3, ""),
        ({"BASE_URL": "http://10.0.0.1:8000", "EGRESS_ALLOWED": ["*", "10.0.0.1:8000"]}, {"own_network": True}, 3,
         "http://10.0.0.1:8000"),
        ({"BASE_URL": "https://9.9.9.9"}, {"own_network": True}, 3, "https://9.9.9.9"),
        ({"BASE_URL": "https://9.9.9.9", "EGRESS_ALLOWED": ["none"]}, {"own_network": True}, 3, ""),
        ({"CONTAINER_NETWORK": "none"}, {}, 4, ""),
        ({"CONTAINER_NETWORK": "none"}, {"ports": 1}, 4, "http://127.0.0.1:8000"),
        ({"CONTAINER_NETWORK": "host"}, {}, 4, "http://127.0.0.1:8000"),
        ({"CONTAINER_NETWORK": "bridge"}, {}, 4, ""),
    ],
)  # fmt: skip
def test_address_is_one_that_the_jobs_network_leads_to(
    attempt, monkeypatch, settings, settings_of, launch, tier, address
):
    settings.SITE_URL = "http://127.0.0.1:8000"
    for name, value in ({"HOST": "127.0.0.1", "PORT": 8000, "EGRESS_ALLOWED": ["*"]} | settings_of).items():
        monkeypatch.setattr(env, name, value)
    monkeypatch.setattr(tickets, "tier", lambda: (tier, ""))

    found = told(attempt, **launch)

    assert found.env.get("MLFLOW_TRACKING_URI", "") == (f"{address}/api/mlflow" if address else "")
    assert ("MLFLOW_TRACKING_TOKEN" in found.env) == bool(address)
