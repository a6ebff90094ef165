"""Templates: stored, shared, changed and used, with parameters that are asked for."""

from __future__ import annotations

import pytest

from accounts.services import shares
from aiplatform.lib.errors import DomainError, Invalid, NameTaken
from tests.conftest import signed_in
from tests.factories import people, work
from tests.factories import training as factory
from training.commands import services as commands
from training.commands.models import Command
from training.commands.services import CommandRequest
from training.job_templates import parameters, services
from training.job_templates.forms import TemplateForm
from training.job_templates.models import JobTemplate, TemplateUse
from training.job_templates.services import Content
from training.programs import request_text
from training.runs.models import TrainingJob
from workers.core.models import Job

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]

API = "/api/v1/templates/"
REQUEST = {"command": "python train.py --lr {{ lr }}", "nodes": "{{ nodes }}", "cpus": 1}
ASKED = [
    {"name": "lr", "default": 0.1, "about": "learning rate"},
    {"name": "nodes", "default": 1, "about": ""},
]


@pytest.fixture
def machine(db):
    return [work.node(name, cores=8) for name in ("one", "two")]


@pytest.fixture
def stored(alice, machine):
    def one(user=alice, name="nightly", request=REQUEST, asked=ASKED, **more):
        content = Content(request=request, parameters=asked)
        return services.create(user=user, name=name, kind="command", content=content, **more)

    return one


def test_template_makes_a_job_with_defaults_and_with_given_values(stored, alice):
    version = stored().newest

    plain = Command.objects.get(pk=services.use(version, user=alice).pk)
    other = Command.objects.get(pk=services.use(version, user=alice, values={"lr": "0.5", "nodes": "2"}).pk)

    assert (plain.script, plain.job.nodes) == ("python train.py --lr 0.1", 1)
    assert (other.script, other.job.nodes) == ("python train.py --lr 0.5", 2)
    assert TemplateUse.objects.get(job=other.pk).name == "nightly v1"


def test_template_asks_for_what_has_no_default(stored, alice):
    asked = [{"name": "script", "default": None, "about": ""}]
    version = stored(request={"command": "python {{ script }}", "cpus": 1}, asked=asked).newest

    with pytest.raises(Invalid, match=r"Enter a value for script."):
        services.use(version, user=alice)
    with pytest.raises(Invalid, match="has no parameter lr"):
        services.use(version, user=alice, values={"script": "a.py", "lr": 1})
    assert not Job.objects.exists()
    assert (
        Command.objects.get(pk=services.use(version, user=alice, values={"script": "a.py"}).pk).script == "python a.py"
    )


def test_template_refuses_everything_wrong_at_once(stored):
    request = {"command": " ", "gpu": 1, "variables": {"1A": "{{ ghost }}"}}

    with pytest.raises(Invalid) as refused:
        stored(name="!", request=request, asked=[{"name": "idle", "default": 1, "about": ""}])

    blamed = {one.blamed for one in refused.value.every}
    assert {"name", "parameters"} <= blamed
    assert "ghost appears in the request but is not a parameter." in refused.value.sentences
    assert "idle does not appear in the request." in refused.value.sentences
    with pytest.raises(Invalid) as wrong:
        stored(request={"command": " ", "gpu": 1}, asked=[])
    assert {one.blamed for one in wrong.value.every} == {"command", "gpu"}


def test_template_keeps_no_secret(stored, alice):
    with pytest.raises(Invalid, match=r"Use a parameter without a default instead."):
        stored(request={"command": "x", "cpus": 1, "secrets": {"HUB": "open-sesame"}}, asked=[])
    asked = [{"name": "hub", "default": None, "about": ""}]
    version = stored(request={"command": "x", "cpus": 1, "secrets": {"HUB": "{{ hub }}"}}, asked=asked).newest

    job = services.use(version, user=alice, values={"hub": "open-sesame"})

    assert Command.objects.get(pk=job.pk).secret_names == ["HUB"]
    assert "open-sesame" not in str([*TemplateUse.objects.values(), version.request])


def test_template_of_a_job_asks_for_its_secrets_and_takes_its_code_along(alice, machine, tmp_path):
    code = factory.code(alice, tmp_path / "mine", train="print(1)\n")
    request = CommandRequest(command="python train.py", cpus=2.0, code=code, secrets={"HUB": "open-sesame"})
    job = commands.submit(user=alice, request=request).job

    content = services.from_job(job)
    template = services.create(user=alice, name="again", kind="command", content=content)
    made = services.use(template.newest, user=alice, values={"hub": "another-one"})

    assert content.request["secrets"] == {"HUB": "{{ hub }}"}
    assert template.newest.code == code
    assert Command.objects.get(pk=made.pk).code == code


def test_template_of_a_job_asks_for_variables_that_are_named_like_secrets(alice, machine):
    given = {"WANDB_API_KEY": "open-sesame", "MODE": "fast"}
    job = commands.submit(user=alice, request=CommandRequest(command="make", cpus=1.0, variables=given)).job

    content = services.from_job(job)
    template = services.create(user=alice, name="again", kind="command", content=content)
    made = services.use(template.newest, user=alice, values={"wandb_api_key": "another-one"})

    assert "open-sesame" not in str(template.newest.request)
    assert Command.objects.get(pk=made.pk).variables == {"MODE": "fast"}
    assert Command.objects.get(pk=made.pk).secret_names == ["WANDB_API_KEY"]


@pytest.mark.parametrize("field", ["command", "worker_command"])
def test_template_keeps_no_secret_in_a_command(stored, field):
    request = {"command": "make", "cpus": 1}

    with pytest.raises(Invalid, match="contains a secret") as refused:
        stored(request=request | {field: "train --api-key open-sesame"}, asked=[])
    with_parameter = request | {field: "train --api-key={{ key }} --token $HUB_TOKEN"}

    assert refused.value.blamed == field
    assert stored(request=with_parameter, asked=[{"name": "key", "default": None, "about": ""}])


@pytest.mark.parametrize("default", [None, "open-sesame"])
def test_template_keeps_no_secret_in_a_variable(stored, default):
    request = {"command": "make", "cpus": 1, "variables": {"MODE": "fast", "WANDB_API_KEY": "open-sesame"}}
    asked = [{"name": "key", "default": default, "about": ""}]
    with_parameter = {**request, "variables": {"MODE": "fast", "WANDB_API_KEY": "{{ key }}"}}

    with pytest.raises(Invalid, match="WANDB_API_KEY:") as refused:
        stored(request=request, asked=[])
    if default:
        with pytest.raises(Invalid, match="Add it to the secrets, with a parameter without a default as"):
            stored(request=with_parameter, asked=asked)
    else:
        assert stored(request=with_parameter, asked=asked)

    assert refused.value.blamed == "variables"


def test_template_keeps_no_secret_as_the_default_of_a_parameter_in_a_command(stored):
    with pytest.raises(Invalid, match="contains a secret"):
        stored(
            request={"command": "train --api-key={{ key }}", "cpus": 1},
            asked=[{"name": "key", "default": "open-sesame", "about": ""}],
        )


def test_template_brings_its_code_to_a_colleague(stored, alice, bob, cluster, tmp_path, machine):
    code = factory.code(alice, tmp_path / "mine", train="print(1)\n")
    template = stored(request={"command": "python train.py", "cpus": 1, "code": code.pk}, asked=[], visibility="public")
    cluster.memberships.get_or_create(user=bob)

    made = Command.objects.get(pk=services.use(template.newest, user=bob).pk)

    assert (made.code.owner, made.code != code) == (bob, True)
    assert (made.code.path / "train.py").read_text() == "print(1)\n"


def test_template_code_of_somebody_else_is_refused(stored, alice, bob, tmp_path):
    his = factory.code(bob, tmp_path / "his", train="print(1)\n")

    with pytest.raises(Invalid, match="You have no such code"):
        stored(request={"command": "x", "cpus": 1, "code": his.pk}, asked=[])


def test_template_becomes_a_new_version_only_when_its_request_changes(stored, alice):
    template = stored()

    services.change(template, user=alice, description="each night")
    services.change(template, user=alice, content=Content(request={"command": "make", "cpus": 1}))

    assert [one.number for one in template.versions.all()] == [2, 1]
    assert template.newest.request == {"command": "make", "cpus": 1}
    assert template.versions.get(number=1).request == REQUEST


def test_template_names_are_taken_once_by_a_person(stored, bob):
    stored()

    with pytest.raises(NameTaken):
        stored(name="Nightly")
    assert stored(user=bob).owner == bob


def test_template_is_seen_by_its_visibility(stored, alice, bob, as_bob, as_olga, as_anna):
    private, public = stored(), stored(name="for all", visibility="public")

    listed = as_bob.get("/templates/").content.decode()

    assert "for all" in listed
    assert "nightly" not in listed
    assert as_bob.get(f"/templates/{private.pk}/").status_code == 404
    assert as_bob.get(f"/templates/{public.pk}/").status_code == 200
    assert as_bob.get(f"/templates/{public.pk}/edit/").status_code == 404
    assert as_olga.get(f"/templates/{private.pk}/").status_code == 200
    assert as_anna.get("/templates/").status_code == 403


def test_template_shared_for_use_is_used_but_not_changed(stored, alice, bob, cluster):
    template = stored()
    cluster.memberships.get_or_create(user=bob)
    shares.share(kind="template", pk=template.pk, level="use", by=alice, person="bob")

    page = signed_in(bob)

    assert page.post(f"/templates/{template.pk}/use/", {"lr": "0.2", "nodes": "1"}).status_code == 302
    assert page.get(f"/templates/{template.pk}/edit/").status_code == 404


def test_template_pages_store_use_edit_and_delete(as_alice, machine):
    text = 'command: python train.py --lr {{ lr }}\ncpus: 1\nname: "{{ title }}"\n'
    lines = "lr = 0.1  # learning rate\ntitle\n"
    fields = {"name": "nightly", "visibility": "private", "kind": "command", "text": text, "parameters": lines}

    made = as_alice.post("/templates/new/", fields)
    template = JobTemplate.objects.get()
    page = as_alice.get(f"/templates/{template.pk}/").content.decode()
    missing = as_alice.post(f"/templates/{template.pk}/use/", {"lr": "0.3"})
    used = as_alice.post(f"/templates/{template.pk}/use/", {"lr": "0.3", "title": "third"})
    job = Job.objects.get()
    as_alice.post(f"/templates/{template.pk}/edit/", fields | {"text": text.replace("cpus: 1", "cpus: 2")})
    kept = as_alice.post(f"/templates/{template.pk}/delete/", {"confirm": "no"})
    shown = as_alice.get(f"/jobs/{job.pk}/?tab=spec").content.decode()
    as_alice.post(f"/templates/{template.pk}/delete/", {"confirm": "nightly"})

    assert made["Location"] == f"/templates/{template.pk}/"
    assert "learning rate" in page
    assert "required" in page
    assert missing.status_code == 422
    assert used["Location"] == f"/jobs/{job.pk}/"
    assert (job.name, job.command.script) == ("third", "python train.py --lr 0.3")
    assert kept.status_code == 302
    assert "nightly v1" in shown
    assert not JobTemplate.objects.exists()
    assert "nightly v1" in as_alice.get(f"/jobs/{job.pk}/?tab=spec").content.decode()


def test_template_begins_from_a_job_and_from_the_form_of_a_command(as_alice, alice, machine):
    job = commands.submit(user=alice, request=CommandRequest(command="make all", cpus=2.0, nodes=2)).job
    form = {
        "command": "make test", "gpus_per_node": 0, "cpus": 1, "nodes": 1, "secrets": "HUB=open-sesame",
        "begin": "form", "kind": "command",
    }  # fmt: skip

    of_job = as_alice.get(f"/templates/new/?job={job.pk}").content.decode()
    of_form = as_alice.post("/templates/new/", form).content.decode()

    assert "command: make all" in of_job
    assert "nodes: 2" in of_job
    assert "command: make test" in of_form
    assert "open-sesame" not in of_form
    assert "HUB" in of_form
    assert not JobTemplate.objects.exists()


def test_template_by_the_api(api, machine, alice):
    made = api.post(API, {"name": "nightly", "request": REQUEST, "parameters": ASKED}, format="json").json()
    used = api.post(f"{API}{made['id']}/use/", {"values": {"lr": 1}, "request": {"name": "mine"}}, format="json")
    wrong = api.post(f"{API}{made['id']}/use/", {"values": {"lr": 1, "x": 2}}, format="json")
    changed = api.patch(
        f"{API}{made['id']}/", {"request": {"command": "make", "cpus": 1}, "parameters": []}, format="json"
    )
    of_job = api.post(API, {"name": "of a job", "job": used.json()["id"]}, format="json").json()

    assert (made["version"], made["parameters"]) == (1, ASKED)
    assert (used.status_code, used.json()["name"]) == (201, "mine")
    assert wrong.status_code == 400
    assert (changed.json()["version"], changed.json()["request"]["command"]) == (2, "make")
    assert of_job["request"]["command"] == "python train.py --lr 1"
    assert api.delete(f"{API}{made['id']}/").status_code == 204
    assert [row["name"] for row in api.get(f"{API}?name=of%20a%20job").json()["results"]] == ["of a job"]


def test_training_of_a_preset_becomes_a_template_that_makes_the_same_training(as_alice, api, alice, machine):
    cells = factory.version(alice, "cells")
    params = {"budget_minutes": 2.0, "batch_size": 4}
    made = factory.training(alice, data=cells, preset="detect", params=params)

    stored = api.post(API, {"name": "nightly", "job": made.job_id}, format="json")
    template = JobTemplate.objects.get(pk=stored.json()["id"])
    again = TrainingJob.objects.get(job=services.use(template.newest, user=alice))

    assert stored.status_code == 201, stored.json()
    assert (again.preset, again.params, again.version) == ("detect", made.params, cells)
    assert again.params["batch_size"] == 4


def test_template_begins_from_the_form_of_a_preset_and_the_yaml_editor_keeps_it(as_alice, alice, machine):
    cells = factory.version(alice, "cells")
    form = {
        "preset": "detect", "version": cells.pk, "detect__budget_minutes": "3", "gpus_per_node": 0, "cpus": 1,
        "nodes": 1, "processes": 0, "priority": 0,
    }  # fmt: skip

    page = as_alice.post("/templates/new/", form | {"begin": "form", "kind": "training"})
    text = page.context["form"].initial["text"]
    editor = as_alice.post("/expert/form/", {"kind": "training", "text": text})
    fields = {bound.html_name: bound.value() for bound in editor.context["form"]}
    sent = {name: value for name, value in fields.items() if value not in (None, False)}
    back = as_alice.post("/expert/text/", sent | {"kind": "training"})

    for found in (text, back.context["text"]):
        request = request_text.read(found)
        assert (request["preset"], request["version"]) == ("detect", cells.pk)
        assert request["params"]["budget_minutes"] == 3


def test_template_used_twice_with_one_key_makes_one_job(api, stored):
    number = stored().pk
    for _time in range(2):
        answer = api.post(f"{API}{number}/use/", {}, format="json", headers={"Idempotency-Key": "k" * 16})
        assert answer.status_code == 201

    assert Job.objects.count() == 1


def test_template_of_an_array_makes_all_its_jobs(stored, alice):
    version = stored(request={"command": "x", "cpus": 1, "array": "0-3%2"}, asked=[]).newest

    job = services.use(version, user=alice)

    assert TemplateUse.objects.filter(version=version).count() == job.array.jobs.count() == 4


def test_template_runs_with_the_rights_of_who_uses_it(stored, alice, bob, machine):
    his = factory.version(alice, "mine")
    template = stored(request={"command": "x", "cpus": 1, "datasets": [his.pk]}, asked=[], visibility="public")
    stranger = people.user("carl")

    for person in (bob, stranger):
        with pytest.raises(DomainError):
            services.use(template.newest, user=person)


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("lr = 0.1  # rate", {"name": "lr", "default": 0.1, "about": "rate"}),
        ("n = 3", {"name": "n", "default": 3, "about": ""}),
        ('word = "3"', {"name": "word", "default": "3", "about": ""}),
        ("flip = true", {"name": "flip", "default": True, "about": ""}),
        ("must", {"name": "must", "default": None, "about": ""}),
        ('none = ""', {"name": "none", "default": "", "about": ""}),
        ("url = http://x/#a", {"name": "url", "default": "http://x/#a", "about": ""}),
    ],
)
def test_parameter_lines_are_read_and_written_the_same(line, read):
    assert parameters.read(line) == [read]
    assert parameters.read(parameters.written([read])) == [read]
    with pytest.raises(Invalid, match="Line 2"):
        parameters.read(f"{line}\n1x = 2")


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ("cpus: {{ n }}\ncommand: echo {{ who }}\n", {"cpus": "{{ n }}", "command": "echo {{ who }}"}),
        ("variables:\n  NAME: {{ who }}-x  \n", {"variables": {"NAME": "{{ who }}-x"}}),
        ("datasets:\r\n- {{ data }}\r\n", {"datasets": ["{{ data }}"]}),
        ("name: '{{ who }}'\n", {"name": "{{ who }}"}),
        ('{"name": "{{ who }}"}', {"name": "{{ who }}"}),
        ('{"cpus": {{n}}}', {"cpus": "{{n}}"}),
        ("command: |\n  {{ python }} train.py --lr {{ lr }}\n", {"command": "{{ python }} train.py --lr {{ lr }}\n"}),
        ("cpus: {{ n }}  # how many\nname: '{{ n }}: # no'\n", {"cpus": "{{ n }}", "name": "{{ n }}: # no"}),
    ],
)
def test_parameter_stands_without_quotes_as_the_page_says(text, request_):
    form = TemplateForm({"name": "a", "visibility": "private", "text": text, "parameters": ""})

    assert form.is_valid(), form.errors
    assert form.cleaned_data["text"] == request_
