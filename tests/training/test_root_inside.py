"""Root inside of commands and environments: who may ask, what the request keeps, and what a lost right means."""

import re

import pytest

from accounts.models import User
from aiplatform.lib.errors import DomainError, NotAllowed
from tests.factories import training as factory
from tests.factories import work
from training.commands import services as commands
from training.commands.request_schema import SCHEMA as COMMANDS
from training.environments import services as environments
from training.environments.models import Environment
from training.runs.request_schema import SCHEMA
from workers.core.models import Job, Node
from workers.execution import root_users
from workers.jobs import actions

pytestmark = pytest.mark.django_db
FORM = {"command": "id", "gpus_per_node": 0, "cpus": 1, "nodes": 1}


@pytest.fixture
def node(db):
    made = work.node(cores=8)
    Node.objects.filter(pk=made.pk).update(root_inside=True, sandbox_tier=3)
    return made


@pytest.fixture
def may(alice):
    User.objects.filter(pk=alice.pk).update(root_allowed=True, root_inside=True)
    alice.root_allowed = alice.root_inside = True
    return alice


def refusal(act):
    with pytest.raises(DomainError) as caught:
        act()
    return caught.value.every


def test_forms_show_root_inside_to_those_who_switched_it_on_alone(as_alice, alice, node):
    User.objects.filter(pk=alice.pk).update(root_allowed=True)
    before = [as_alice.get(path).content.decode() for path in ("/commands/new/", "/environments/new/")]
    User.objects.filter(pk=alice.pk).update(root_inside=True)
    after = [as_alice.get(path).content.decode() for path in ("/commands/new/", "/environments/new/")]

    assert ["root_inside" in page for page in before] == [False, False]
    assert ['name="root_inside"' in page for page in after] == [True, True]


def test_form_and_api_keep_root_inside(as_alice, may, cluster, node):
    page = as_alice.post("/commands/new/", FORM | {"root_inside": "on"})
    api = as_alice.post("/api/v1/commands/", {"command": "id", "root_inside": True}, "application/json")
    shown = as_alice.get(f"/api/v1/jobs/{api.json()['id']}/").json()

    assert page.status_code == 302
    assert list(Job.objects.values_list("root_inside", flat=True)) == [True, True]
    assert shown["root_inside"] is True


@pytest.mark.parametrize(("allowed", "switched"), [(False, False), (True, False)])
def test_request_is_refused_to_who_may_not(alice, cluster, node, allowed, switched):
    alice.root_allowed, alice.root_inside = allowed, switched

    request = commands.CommandRequest(command="id", root_inside=True)
    found = refusal(lambda: commands.submit(user=alice, request=request))

    assert [(type(each), each.blamed) for each in found] == [(NotAllowed, "root_inside")]
    assert not Job.objects.exists()


def test_request_is_refused_where_no_machine_offers_it(may, cluster, node):
    Node.objects.update(root_inside=False)

    request = environments.EnvironmentRequest(root_inside=True)
    found = refusal(lambda: environments.submit(user=may, request=request))

    assert [(each.code, each.blamed, each.facts["reason"]) for each in found] == [
        ("never_fits", "root_inside", "no_root_inside")
    ]


def test_training_with_own_code_keeps_root_inside(as_alice, may, cluster, node):
    own = {"preset": "own", "processes": 0, "command": "id", "gpus_per_node": 0, "cpus": 1, "nodes": 1}
    page = as_alice.post("/training/new/", own | {"root_inside": "on"})
    request = {"command": "id", "root_inside": True, "cpus": 1}
    api = as_alice.post("/api/v1/training/jobs/", request, "application/json").json()
    clone = as_alice.get(f"/training/new/?clone={api['id']}")

    assert page.status_code == 302
    assert api["root_inside"] is True
    assert list(Job.objects.values_list("root_inside", flat=True)) == [True, True]
    assert clone.context["form"]["root_inside"].value() is True
    assert SCHEMA.of_job(Job.objects.get(pk=api["job"]))["root_inside"] is True


def test_training_form_shows_root_inside_to_those_who_switched_it_on_alone(as_alice, alice, node):
    User.objects.filter(pk=alice.pk).update(root_allowed=True)
    before = as_alice.get("/training/new/").content.decode()
    User.objects.filter(pk=alice.pk).update(root_inside=True)
    after = as_alice.get("/training/new/").content.decode()

    assert "root_inside" not in before
    assert re.search(r'<div class="training-of" data-of="own">\s*<[^>]*>(?:(?!</div>).)*root_inside', after, re.DOTALL)
    assert 'name="root_inside"' in after


def test_training_with_own_code_is_refused_root_inside_where_the_person_may_not(as_alice, alice, cluster, node):
    request = {"command": "id", "root_inside": True, "cpus": 1}
    answer = as_alice.post("/api/v1/training/jobs/", request, "application/json")

    assert answer.status_code == 403
    assert list(answer.json()["errors"]) == ["root_inside"]


def test_preset_takes_no_root_inside(as_alice, may, cluster, node):
    request = {"preset": "detect", "version": factory.version(may, "cells").pk, "root_inside": True}
    answer = as_alice.post("/api/v1/training/jobs/", request, "application/json").json()

    assert list(answer["errors"]) == ["root_inside"]


def test_clone_and_expert_page_keep_root_inside(as_alice, may, cluster, node):
    command = commands.submit(user=may, request=commands.CommandRequest(command="id", root_inside=True))

    page = as_alice.get(f"/commands/new/?clone={command.pk}")

    assert commands.as_request(command)["root_inside"] is True
    assert page.context["form"]["root_inside"].value() is True
    form = page.context["form"].__class__(FORM | {"root_inside": "on"}, user=may)
    assert form.is_valid(), form.errors
    assert COMMANDS.of_form(form)["root_inside"] is True


def test_list_of_environments_says_which_are_root_inside(as_alice, may, cluster, node):
    environments.submit(user=may, request=environments.EnvironmentRequest(root_inside=True, name="mine"))
    environments.submit(user=may, request=environments.EnvironmentRequest(name="plain"))

    page = as_alice.get("/environments/").content.decode()
    api = as_alice.get("/api/v1/environments/").json()["results"]

    assert page.count('title="Root in the sandbox">root</span>') == 1
    assert {row["name"]: row["root_inside"] for row in api} == {"mine": True, "plain": False}


def test_restore_is_refused_once_the_right_is_gone(may, cluster, node):
    environment = environments.submit(user=may, request=environments.EnvironmentRequest(root_inside=True))
    Job.objects.filter(pk=environment.pk).update(state="stopped", attempt_number=1)
    User.objects.filter(pk=may.pk).update(root_allowed=False, root_inside=False)

    with pytest.raises(NotAllowed, match="root in the sandbox"):
        actions.restore(Environment.objects.get(pk=environment.pk).job, by=may)


def test_job_that_never_ran_does_not_start_once_the_right_is_gone(may, cluster, node, monkeypatch):
    job = commands.submit(user=may, request=commands.CommandRequest(command="id", root_inside=True)).job
    monkeypatch.setattr(root_users, "works", lambda *_: True)
    assert root_users.of_job(job, 200_001, 3, "")["uids"][0] == [0, 200_001, 1]
    job.owner.root_allowed = False

    with pytest.raises(root_users.NoRootHere):
        root_users.of_job(job, 200_001, 3, "")
