"""Requests as pages show them: no secret in them for anybody, and none in a copy but the owner's."""

from __future__ import annotations

import pytest

from tests.factories import work
from training.commands import services as commands
from training.commands.models import Command
from training.commands.services import CommandRequest
from training.environments import services as environments
from training.environments.services import EnvironmentRequest
from training.job_templates import services as templates
from training.programs import request_secrets, script

pytestmark = pytest.mark.django_db

IN_LINE, IN_VARIABLE = "sk_live_0123456789", "hf_0123456789"


@pytest.fixture
def machine(db):
    return [work.node(name, cores=8) for name in ("one", "two")]


@pytest.fixture
def command(alice, machine):
    request = CommandRequest(
        command=f"train --api-key {IN_LINE}", cpus=1.0, variables={"HUB_TOKEN": IN_VARIABLE, "MODE": "fast"},
        nodes=2, launcher="processes", processes=1, worker_command=f"help --token={IN_LINE}",
    )  # fmt: skip
    return commands.submit(user=alice, request=request).job


@pytest.fixture
def environment(alice, machine):
    request = EnvironmentRequest(cpus=1.0, variables={"HUB_TOKEN": IN_VARIABLE, "MODE": "fast"})
    return environments.submit(user=alice, request=request).job


def has_secret(answer):
    page = answer.content.decode()
    return IN_LINE in page or IN_VARIABLE in page


@pytest.mark.parametrize("kind", ["command", "environment"])
def test_request_on_the_page_of_a_job_has_no_secret_whoever_reads_it(kind, request, as_alice, as_olga):
    job = request.getfixturevalue(kind)

    pages = [client.get(f"/jobs/{job.pk}/?tab=spec") for client in (as_alice, as_olga)]

    assert ["Request as text" in page.content.decode() for page in pages] == [True, True]
    assert ["MODE: fast" in page.content.decode() for page in pages] == [True, True]
    assert [has_secret(page) for page in pages] == [False, False]


@pytest.mark.parametrize(
    ("kind", "address"),
    [
        ("command", "/expert/?kind=command&job={pk}"),
        ("command", "/commands/new/?clone={pk}"),
        ("command", "/templates/new/?job={pk}"),
        ("environment", "/expert/?kind=environment&job={pk}"),
        ("environment", "/environments/new/?clone={pk}"),
        ("environment", "/templates/new/?job={pk}"),
    ],
)
def test_request_is_copied_with_its_secrets_by_nobody_but_its_owner(kind, address, request, as_olga):
    answer = as_olga.get(address.format(pk=request.getfixturevalue(kind).pk))

    assert answer.status_code == 200
    assert "fast" in answer.content.decode()
    assert not has_secret(answer)


def test_request_is_copied_whole_by_its_owner(command, as_alice):
    page = as_alice.get(f"/expert/?kind=command&job={command.pk}").content.decode()

    assert IN_LINE in page
    assert IN_VARIABLE in page


def test_request_of_which_nobody_is_known_to_read_it_is_hidden(command):
    assert IN_LINE not in str(templates.from_job(command))


def test_copy_without_its_secrets_is_refused_by_line_until_they_are_given(command, as_olga):
    text = as_olga.get(f"/expert/?kind=command&job={command.pk}").context["text"]
    answer = as_olga.post("/expert/", {"kind": "command", "text": text, "act": "submit"})

    notes = [note for note in answer.context["reading"].notes if "Enter the secret value" in note.sentence]
    assert answer.status_code == 422
    assert sorted(note.field for note in notes) == ["command", "variables", "worker_command"]
    assert all(note.line for note in notes)
    assert Command.objects.count() == 1


def test_hidden_request_keeps_what_is_no_secret():
    request = {"command": "train --lr 0.1", "arguments": "--token abcdefgh", "params": {"lr": 0.1, "api_key": "x" * 9}}

    assert request_secrets.hidden(request) == {
        "command": "train --lr 0.1",
        "arguments": "--token ••••••",
        "params": {"lr": 0.1, "api_key": "••••••"},
    }


def test_name_made_of_a_command_has_no_secret():
    assert script.name_of(f"train --api-key {IN_LINE} cells.yaml") == "train_cells.yaml"
