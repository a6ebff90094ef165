"""Environments on the expert page and as templates: their request as a form and as text."""

from __future__ import annotations

from datetime import timedelta

import pytest

from training.environments import services
from training.environments.models import Environment
from training.environments.request_schema import SCHEMA
from training.environments.services import EnvironmentRequest
from training.programs import request_text
from workers.core.models import Job

pytestmark = pytest.mark.postgres


def test_expert_page_starts_an_environment_from_its_text(as_alice, machine):
    text = "folder: work\ncpus: 2\nidle_hours: 1.5\nvariables:\n  A: '1'\n"

    answer = as_alice.post("/expert/", {"kind": "environment", "text": text, "act": "submit"})

    row = Environment.objects.get()
    assert answer["Location"] == f"/jobs/{row.pk}/"
    assert (row.folder, row.idle_hours, row.variables, row.job.cpus) == ("work", 1.5, {"A": "1"}, 2.0)


def test_expert_page_refuses_an_environment_by_line(as_alice, machine):
    answer = as_alice.post("/expert/", {"kind": "environment", "text": "cpus: 1\nfolder: ../up\nnodes: 2\n"})

    assert answer.status_code == 422
    assert {(2, "folder"), (3, "nodes")} <= {(note.line, note.field) for note in answer.context["reading"].notes}
    assert not Environment.objects.exists()


def test_expert_page_writes_the_form_of_an_environment_as_text(as_alice, machine):
    fields = {"kind": "environment", "folder": "work", "gpus_per_node": 0, "cpus": 1, "priority": 0, "variables": "A=1"}

    answer = as_alice.post("/expert/text/", fields)

    assert request_text.read(answer.context["text"]) == {"folder": "work", "cpus": 1.0, "variables": {"A": "1"}}


def test_request_of_an_environment_makes_it_again_but_for_its_secrets(submitted, alice, cells):
    row = submitted(
        name="Mine", folder="work", datasets=[cells], variables={"A": "1"}, secrets={"HUB": "open-sesame"},
        max_runtime=timedelta(hours=3),
    )  # fmt: skip

    request = SCHEMA.of_job(Job.objects.get(pk=row.pk))

    assert (request["name"], request["folder"], request["datasets"]) == ("Mine", "work", [cells.pk])
    assert request["secrets"] == {"HUB": ""}
    assert request["max_runtime_s"] == 3 * 3600
    assert SCHEMA.initial(alice, request)["max_runtime_min"] == 180
    assert services.check(alice, EnvironmentRequest(folder=request["folder"], cpus=request["cpus"]))


def test_environment_form_begins_a_template(as_alice, machine):
    page = as_alice.get("/environments/new/").content.decode()

    assert 'formaction="/templates/new/"' in page
