"""Trainings with own code on the expert page and as templates: every field in form and text, secrets never kept."""

from __future__ import annotations

import pytest

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib.errors import DomainError, Invalid
from tests.conftest import signed_in
from tests.factories import training as factory
from training.job_templates import services as templates
from training.job_templates.models import JobTemplate, TemplateUse
from training.job_templates.services import Content
from training.programs import request_schemas, request_text
from training.runs.forms import OwnCodeForm
from training.runs.models import TrainingJob
from training.runs.request_schema import SCHEMA
from workers.core.models import Job

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]
KNOWN = {
    "max_runtime_s": "max_runtime_min", "memory_mib": "memory_gib", "code": "snapshot",
    "max_disk_bytes": "max_disk_gib", "params": "pairs",
    "device_kind": "device", "device_model": "device", "code_upload": None, "code_archive": None,
    "preset": "from_preset",
}  # fmt: skip


def submitted(alice, **fields):
    return factory.training(alice, **{"version": None, "name": "own", "cpus": 1.0, **fields})


def test_every_field_of_own_code_is_in_form_and_text():
    """A field that is added to the route has to reach the expert page."""
    fields = SCHEMA.serializer().fields

    missing = [name for name in fields if (mapped := KNOWN.get(name, name)) and mapped not in OwnCodeForm.base_fields]

    assert missing == []
    assert not {"parameter_set", "parent"} & set(fields)


def test_expert_page_queues_a_training_by_its_text_and_says_so(as_alice, machine, code):
    text = f"code: {code.pk}\nstart_file: train.py\ncpus: 1\nparams: {{lr: 0.1}}\npreemptible: true\n"

    answer = as_alice.post("/expert/", {"kind": "training", "text": text, "act": "submit"}, follow=True)

    row = TrainingJob.objects.get()
    assert (row.start_file, row.params, row.job.preemptible) == ("train.py", {"lr": 0.1}, True)
    assert answer.redirect_chain[-1][0] == f"/training/{row.pk}/"
    assert f"{row.job.name} is queued." in answer.content.decode()
    assert "start_file: train.py" in as_alice.get(f"/training/{row.pk}/spec/").content.decode()


def test_expert_page_refuses_a_training_by_line(as_alice, machine, code):
    text = f"code: {code.pk}\nstart_file: absent.py\ncolour: red\nnodes: lots\n"

    answer = as_alice.post("/expert/", {"kind": "training", "text": text})

    assert answer.status_code == 422
    assert {(3, "colour"), (4, "nodes")} <= {(note.line, note.field) for note in answer.context["reading"].notes}
    assert not TrainingJob.objects.exists()


def test_expert_page_never_trains_a_preset_in_place_of_own_code(as_alice, machine, cells):
    answer = as_alice.post("/expert/", {"kind": "training", "text": f"version: {cells.pk}\ncpus: 1\n"})

    assert [note.field for note in answer.context["reading"].notes] == ["command"]
    assert not TrainingJob.objects.exists()


def test_form_and_text_say_the_same_training(as_alice, machine, code, cells):
    fields = {
        "kind": "training", "snapshot": code.pk, "start_file": "train.py", "arguments": "--fast", "pairs": "lr = 0.1",
        "variables": "A=1", "version": cells.pk, "gpus_per_node": 0, "cpus": 1, "nodes": 1, "processes": 0,
        "memory_gib": "2", "max_runtime_min": 90, "preemptible": "on",
    }  # fmt: skip

    request = request_text.read(as_alice.post("/expert/text/", fields).context["text"])
    back = as_alice.post("/expert/form/", {"kind": "training", "text": request_text.written(request)})

    assert request | {"cluster": None} == {
        "code": code.pk, "start_file": "train.py", "arguments": "--fast", "params": {"lr": 0.1}, "cluster": None,
        "variables": {"A": "1"}, "version": cells.pk, "gpus_per_node": 0, "cpus": 1.0, "memory_mib": 2048,
        "max_runtime_s": 5400, "preemptible": True,
    }  # fmt: skip
    assert not back.context["reading"].notes
    form = back.context["form"]
    shown = {name: form[name].value() for name in ("snapshot", "pairs", "variables", "version", "memory_gib")}
    assert shown == {"snapshot": code.pk, "pairs": "lr = 0.1", "variables": "A=1", "version": cells.pk, "memory_gib": 2}
    assert SCHEMA.of_form(form.__class__(fields, user=User.objects.get(username="alice")))


def test_half_a_form_of_own_code_becomes_text(as_alice, machine):
    answer = as_alice.post("/expert/text/", {"kind": "training", "gpus_per_node": "x", "version": "77"})

    request = request_text.read(answer.context["text"])
    assert (request["gpus_per_node"], request["version"]) == ("x", "77")
    assert answer.context["reading"].notes


def test_text_of_a_training_makes_it_again_but_for_its_secrets(alice, machine, code, cells):
    first = submitted(
        alice, code=code, start_file="train.py", arguments="--token=open-sesame-1 --fast", version=cells,
        params={"lr": 0.1, "api_key": "open-sesame-2"}, variables={"A": "1"}, secrets={"HUB": "open-sesame-3"},
    )  # fmt: skip

    request = SCHEMA.of_job(Job.objects.get(pk=first.job_id))

    assert "open-sesame" not in request_text.written(request)
    assert (request["secrets"], request["params"]) == ({"HUB": ""}, {"lr": 0.1, "api_key": ""})
    again = request_schemas.submit(SCHEMA, alice, request | {"secrets": {"HUB": "open-sesame-4"}, "name": "again"})
    second = TrainingJob.objects.get(job=again)
    same = ("code", "start_file", "version", "variables", "launcher")
    assert [getattr(second, name) for name in same] == [getattr(first, name) for name in same]


def test_trainings_of_presets_have_a_request_that_names_the_preset(as_alice, alice, machine, cells):
    preset = factory.training(alice, version=cells, preset="detect")

    assert "preset: detect" in as_alice.get(f"/expert/?kind=training&job={preset.job_id}").context["text"]
    assert templates.from_job(preset.job).request["preset"] == "detect"


def test_template_of_own_code_keeps_the_code_and_asks_for_secrets(alice, bob, machine, code):
    first = submitted(alice, code=code, start_file="train.py", secrets={"HUB": "open-sesame"})
    content = templates.from_job(first.job)
    public = JobTemplate.Visibility.PUBLIC
    made = templates.create(user=alice, name="fine", kind="training", content=content, visibility=public)

    with pytest.raises(Invalid, match=r"Enter a value for hub."):
        templates.use(made.newest, user=bob)
    job = templates.use(made.newest, user=alice, values={"hub": "open-sesame-2"}, instead={"name": "second"})

    row = TrainingJob.objects.get(job=job)
    assert (row.start_file, row.secret_names, row.code) == ("train.py", ["HUB"], code)
    assert "open-sesame" not in str(made.newest.request)
    assert TemplateUse.objects.filter(job=job).exists()


def test_template_refuses_secrets_among_parameters_and_arguments(alice, machine, code):
    request = {
        "code": code.pk, "start_file": "train.py", "cpus": 1, "params": {"api_key": "open-sesame"},
        "arguments": "--token=open-sesame",
    }  # fmt: skip

    with pytest.raises(DomainError) as caught:
        templates.create(user=alice, name="bad", kind="training", content=Content(request=request))

    assert {one.blamed for one in caught.value.every} == {"params", "arguments"}


def test_form_of_a_training_begins_a_template(as_alice, machine, code):
    fields = {
        "kind": "training", "begin": "form", "preset": "own", "snapshot": code.pk, "start_file": "train.py",
        "gpus_per_node": 0, "cpus": 1, "nodes": 1, "processes": 0, "secrets": "HUB=open-sesame",
    }  # fmt: skip

    page = as_alice.post("/templates/new/", fields).content.decode()

    assert 'formaction="/templates/new/"' in as_alice.get("/training/new/").content.decode()
    assert "start_file: train.py" in page
    assert "open-sesame" not in page


def test_template_of_a_training_is_used_by_api(api, alice, machine, code):
    content = Content(request={"code": code.pk, "start_file": "train.py", "cpus": 1})
    made = templates.create(user=alice, name="nightly", kind="training", content=content)

    answer = api.post(f"/api/v1/templates/{made.pk}/use/", {"values": {}, "request": {}}, format="json")

    assert answer.status_code == 201, answer.json()
    assert TrainingJob.objects.get().job_id == answer.json()["id"]


def test_expert_page_offers_trainings_to_those_who_may_start_them(alice, machine, monkeypatch):
    can = User.can
    monkeypatch.setattr(User, "can", lambda self, action: action != Action.TRAINING_SUBMIT and can(self, action))
    client = signed_in(alice)

    page = client.get("/expert/").content.decode()
    answer = client.post("/expert/", {"kind": "training", "text": "command: make\ncpus: 1\n"})

    assert "?kind=training" not in page
    assert "?kind=environment" in page
    assert answer.status_code == 422
    assert [note.field for note in answer.context["reading"].notes] == ["kind"]
    assert not Job.objects.exists()


def test_preview_of_own_code_needs_no_upload(api, machine):
    body = {"start_file": "train.py", "name": "dry", "cpus": 1}

    answer = api.post("/api/v1/training/jobs/preview/", body, format="json")

    assert answer.status_code == 200, answer.content
    assert not TrainingJob.objects.exists()
