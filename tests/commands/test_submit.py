"""Submitting commands: one service, two faces, and what it refuses."""

from __future__ import annotations

import io
import json
import re
import zipfile

import pytest

from accounts.services import named_secrets
from aiplatform.lib import sealed
from tests.factories import training as factory
from training.commands import services
from training.commands.filters import CommandFilters
from training.commands.models import Command
from training.commands.services import CommandRequest
from training.programs import requests
from training.programs.script import name_of
from workers.core.models import Job

pytestmark = pytest.mark.postgres

API = "/api/v1/commands/"
PAGE = "/commands/new/"


def form(**more):
    """The shortest form: a command; the rest as the page fills it."""
    return {"command": "python train.py", "gpus_per_node": 0, "cpus": 1, "nodes": 1, "priority": 0} | more


def zipped(**files: str) -> io.BytesIO:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in files.items():
            archive.writestr(name.replace("_py", ".py"), text)
    packed.seek(0)
    packed.name = "mine.zip"
    return packed


def test_command_submit_needs_only_a_line(api, machine):
    answer = api.post(API, {"command": "python train.py --lr 0.1"}, format="json")

    row = Command.objects.get(pk=answer.json()["id"])
    assert answer.status_code == 201
    assert (row.job.name, row.job.kind, row.job.gpus_per_node, row.job.cpus) == ("python_train.py", "command", 0, 4.0)
    assert answer.json()["url"] == f"/jobs/{row.pk}/"


def test_command_submit_from_the_page_leads_to_its_job(as_alice, machine, cells, plain):
    fields = form(
        variables="A=1\n# no\nB = two words ", datasets=[cells.pk, plain.pk], code_archive=zipped(train_py="1")
    )

    answer = as_alice.post(PAGE, fields)

    row = Command.objects.get()
    assert answer["Location"] == f"/jobs/{row.pk}/"
    assert row.variables == {"A": "1", "B": " two words "}
    assert [given.name for given in row.inputs.all()] == ["cells v1", "plain v1"]
    assert (row.code.path / "train.py").read_text() == "1"


def test_command_secrets_are_encrypted_and_never_shown(api, as_alice, machine):
    made = api.post(API, {"command": "env", "secrets": {"HUB_KEY": "open-sesame"}}, format="json").json()

    row = Command.objects.get(pk=made["id"])
    shown = json.dumps([made, api.get(f"{API}{row.pk}/").json(), row.job.spec, row.secrets])
    pages = [as_alice.get(url).content.decode() for url in (f"/jobs/{row.pk}/", f"{PAGE}?clone={row.pk}", "/commands/")]
    assert "open-sesame" not in shown
    assert not any("open-sesame" in page for page in pages)
    assert made["secrets"] == ["HUB_KEY"]
    assert "HUB_KEY" in pages[0]


def test_command_takes_secrets_that_its_owner_stored_by_name(api, as_alice, alice, machine):
    refused = api.post(API, {"command": "env", "secrets": {"HUB_KEY": ""}}, format="json")
    assert (refused.status_code, refused.json()["code"]) == (400, "secret_missing")
    named_secrets.add(user=alice, name="HUB_KEY", value="open-sesame")

    made = [
        api.post(API, {"command": "env", "secrets": {"HUB_KEY": ""}}, format="json").json()["id"],
        as_alice.post(PAGE, form(secrets="HUB_KEY\nOTHER=own=value")) and Command.objects.order_by("-pk")[0].pk,
    ]

    kept = [sealed.unseal(Command.objects.get(pk=pk).secrets) for pk in made]
    assert kept == [{"HUB_KEY": "open-sesame"}, {"HUB_KEY": "open-sesame", "OTHER": "own=value"}]


def test_command_refuses_everything_wrong_in_one_answer(api, machine, alice, bob):
    his = factory.version(bob, "his")
    sent = {
        "command": " ", "name": "!", "output_path": "../up", "variables": {"1A": "x", "AIP_JOB_ID": "7"},
        "secrets": {"SHORT": "abc"}, "datasets": [], "cpus": 1,
    }  # fmt: skip

    answer = api.post(API, sent, format="json")
    foreign = api.post(API, {"command": "true", "datasets": [his.pk]}, format="json")

    assert answer.status_code == 400
    assert set(answer.json()["errors"]) == {"command", "name", "output_path", "variables", "secrets"}
    assert len(answer.json()["errors"]["variables"]) == 2
    assert foreign.status_code == 400
    assert not Command.objects.exists()


def test_command_form_keeps_code_and_text_when_something_is_refused(as_alice, machine):
    answer = as_alice.post(PAGE, form(command="python train.py", name="!", code_archive=zipped(train_py="1")))

    page = answer.content.decode()
    assert answer.status_code == 422
    assert "python train.py</textarea>" in page
    assert "The code is already uploaded (mine.zip, 1 file)" in page


def test_command_refuses_more_than_any_machine_has(api, machine):
    answer = api.post(API, {"command": "true", "gpus_per_node": 2}, format="json")

    assert (answer.status_code, answer.json()["code"]) == (409, "never_fits")
    assert not Job.objects.exists()


def test_command_preview_queues_nothing(api, machine):
    answer = api.post(f"{API}preview/", {"command": "true"}, format="json")

    assert answer.json()["kind"] == "now"
    assert not Job.objects.exists()


def test_command_sent_twice_with_one_key_runs_once(api, machine):
    for _time in range(2):
        answer = api.post(API, {"command": "true"}, format="json", headers={"Idempotency-Key": "k" * 16})
        assert answer.status_code == 201

    assert Command.objects.count() == 1


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("python -u train.py --lr 0.1", "python_train.py"),
        ("CUDA=0 ./run.sh", "run.sh"),
        ("# a comment\n\n  make all", "make_all"),
        ("#!/usr/bin/env python3\nprint(1)", "print_1"),
        ("echo 'open", "echo_open"),
        ("训练 数据", "训练_数据"),
        ("-", "command"),
    ],
)
def test_command_names_itself_by_its_first_line(text, name):
    assert name_of(text) == name


def test_command_is_seen_by_its_owner_and_operators_alone(submitted, api, as_bob, as_olga, as_anna):
    row = submitted()

    assert [one["id"] for one in api.get(API).json()["results"]] == [row.pk]
    for someone, status in ((as_bob, 404), (as_olga, 200), (as_anna, 403)):
        assert someone.get(f"{API}{row.pk}/").status_code == status
        assert someone.get(f"/jobs/{row.pk}/").status_code == status
        assert someone.get(f"{PAGE}?clone={row.pk}").status_code == status


def test_command_can_be_begun_again_with_the_same_values(as_alice, submitted, cells, code):
    row = submitted(
        command="make\nmake test", name="both", datasets=[cells], code=code, variables={"A": "1"}, priority=7,
        secrets={"TOKEN": "open-sesame"}, output_path="runs",
    )  # fmt: skip

    initial = as_alice.get(f"{PAGE}?clone={row.pk}").context["form"].initial

    assert (initial["command"], initial["name"], initial["variables"]) == ("make\nmake test", "both", "A=1")
    assert (initial["datasets"], initial["snapshot"], initial["priority"]) == ([cells.pk], code, 7)
    assert (initial["secrets"], initial["output_path"]) == ("TOKEN=\n", "runs")


def test_version_that_a_command_reads_is_in_use_until_it_ends(submitted, cells):
    from datasets.services import usage

    row = submitted(datasets=[cells])
    while_queued = usage.users_of(cells)
    Job.objects.filter(pk=row.pk).update(state="succeeded")

    assert while_queued == ["custom job python_train.py of Alice"]
    assert usage.users_of(cells) == []


def test_commands_list_is_narrowed_and_sorted(as_alice, submitted):
    submitted(command="make all", name="b")
    submitted(command="python train.py", name="a")

    found = as_alice.get("/commands/?q=make&state=waiting").context["page"].rows
    by_name = as_alice.get("/commands/?ordering=name").context["page"].rows

    assert [row.job.name for row in found] == ["b"]
    assert [row.job.name for row in by_name] == ["a", "b"]


def test_commands_sort_by_every_head_and_are_listed_by_their_owner(as_alice, api, olga, submitted):
    number = submitted().pk
    heads = set(re.findall('data-order="([^"]+)"', as_alice.get("/commands/").content.decode()))
    mine = [row["id"] for row in api.get(f"{API}?mine=1").json()["results"]]
    api.force_authenticate(olga)

    assert heads == set(CommandFilters.orders.columns)
    assert (mine, api.get(f"{API}?mine=1").json()["results"]) == ([number], [])


def test_command_of_somebody_without_a_cluster_is_refused(machine, alice):
    alice.memberships.all().delete()

    with pytest.raises(requests.resource_request.NotAMember):
        services.submit(user=alice, request=CommandRequest(command="true"))


def test_command_page_stands_below_the_list_of_commands(as_alice, submitted):
    shown = as_alice.get(f"/jobs/{submitted().pk}/")
    current = [entry["url"] for group in shown.context["navigation"] for entry in group["entries"] if entry["current"]]

    assert current == ["/environments/"]
    assert '<a href="/commands/">Custom jobs</a>' in shown.content.decode()


def test_command_is_no_step_of_the_first_run_guide(as_alice, machine):
    page = as_alice.get("/")

    guide = next(section.data for section in page.context["columns"]["top"] if section.key == "guide")
    assert "/training/" in {row["step"].path for row in guide["steps"]}
    assert "/commands/" not in {row["step"].path for row in guide["steps"]}
