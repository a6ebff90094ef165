"""Device rules: what forms and the API offer, and that the planner refuses what they rule out."""

from __future__ import annotations

import pytest
from django.utils.timezone import now

from aiplatform.lib.errors import DomainError
from tests.factories import training as factory
from tests.factories import work
from training.commands.forms import CommandForm
from training.commands.models import Command
from training.commands.services import CommandRequest, submit
from workers.core.models import Device, Job
from workers.jobs import submission
from workers.planning import planner_input
from workers.planning.planner.plan import plan
from workers.resources.nodes import device_rules

API = "/api/v1/commands/"


def npus(node, count=8):
    """Give a machine NPUs in groups of four."""
    Device.objects.bulk_create(
        Device(node=node, kind="npu", index=i, model="Ascend 910", memory_mib=32_768, group=i // 4)
        for i in range(count)
    )


def form_of(fields, user):
    """The form of a custom job with these fields, read as far as it is right."""
    form = CommandForm(fields, user=user)
    form.is_valid()
    return form


@pytest.fixture
def mixed(db):
    """Two machines: eight NPUs, and four GPUs of two models."""
    npus(work.node("npu-01"))
    node = work.node("gpu-01", gpus=4)
    Device.objects.filter(node=node, kind="gpu", index__gte=2).update(model="NVIDIA H100")
    Device.objects.filter(node=node, kind="gpu", index__lt=2).update(model="NVIDIA A100")
    return node


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"device": "cpu", "gpus_per_node": 0, "cpus": 1}, "1 CPU core"),
        ({"device": "cpu", "gpus_per_node": 0, "cpus": 2.5}, "2.5 CPU cores"),
        ({"device": "gpu", "gpus_per_node": 2, "cpus": 4}, "2 GPUs"),
        ({"device": "gpu:NVIDIA H100", "gpus_per_node": 1, "cpus": 4}, "1 × NVIDIA H100"),
        ({"device": "npu", "gpus_per_node": 8, "cpus": 4}, "8 × NPU"),
        ({"device": "gpu", "gpus_per_node": 1, "cpus": 4, "nodes": 3}, "3 × 1 GPU"),
        ({"device": "gpu", "gpus_per_node": "", "cpus": 4}, ""),
    ],
)
def test_form_names_what_is_requested(mixed, alice, fields, text):
    assert form_of(fields, alice).summary == text


def test_device_rules_say_what_the_machines_have(mixed):
    found = {one.value: one for one in device_rules.on_offer()}

    assert list(found) == ["gpu", "gpu:NVIDIA A100", "gpu:NVIDIA H100", "npu", "cpu"]
    assert (found["npu"].counts, found["npu"].distributed_count, found["npu"].groups) == (
        (0, 1, 2, 4, 8), 8, ("0–3", "4–7"),
    )  # fmt: skip
    assert (found["gpu"].counts, found["gpu:NVIDIA H100"].most) == ((0, 1, 2, 3, 4), 2)
    said = " ".join(found["npu"].sentences)
    assert "0, 1, 2, 4, 8" in said
    assert "8 on each" in said
    assert "0–3 | 4–7" in said


def test_device_rules_are_told_to_scripts(api, mixed):
    rows = api.get("/api/v1/devices/kinds/").json()

    npu = next(row for row in rows if row["kind"] == "npu")
    assert (npu["counts"], npu["shareable"], npu["crosses_groups"]) == ([0, 1, 2, 4, 8], False, False)
    assert rows[-1]["kind"] == "cpu"


@pytest.mark.parametrize(
    ("asked", "field", "says"),
    [
        (
            {"device_kind": "npu", "gpus_per_node": 3},
            "gpus_per_node",
            "Allowed for devices of kind NPU: 0, 1, 2, 4, 8.",
        ),
        ({"device_kind": "npu", "gpus_per_node": 4, "nodes": 2}, "gpus_per_node", "uses 8 devices of kind NPU"),
        ({"device_kind": "npu", "gpus_per_node": 1, "share": 4}, "share", "cannot be shared"),
        ({"device_kind": "cpu", "gpus_per_node": 1}, "gpus_per_node", "The CPU has no GPUs"),
        ({"device_model": "NVIDIA B300", "gpus_per_node": 1}, "device_model", "No node has a GPU NVIDIA B300"),
        ({"device_model": "NVIDIA H100", "gpus_per_node": 3}, "gpus_per_node", "The largest node has 2"),
        ({"device_kind": "gpu", "gpus_per_node": 1, "nodes": 3}, "nodes", "only 2 exist"),
    ],
)
def test_device_rules_refuse_by_the_field_what_they_rule_out(api, mixed, alice, asked, field, says):
    answer = api.post(API, {"command": "true", "cpus": 1, **asked}, format="json")

    assert any(says in sentence for sentence in answer.json()["errors"][field]), answer.json()
    assert not Command.objects.exists()


def test_device_model_is_kept_and_placed_by_the_planner(alice, mixed):
    command = submit(
        user=alice, request=CommandRequest(command="true", gpus_per_node=1, device_model="NVIDIA H100", cpus=1.0)
    )

    moment = now()
    (assignment,) = plan(planner_input.read(moment, ({}, {}), 3600.0), moment.timestamp()).assignments

    ((_node, ((device, _share),)),) = assignment.places
    assert (assignment.job, Device.objects.get(pk=device).model) == (command.pk, "NVIDIA H100")


def test_form_shows_the_type_of_device_with_its_rules_and_keeps_it_in_a_clone(as_alice, alice, mixed):
    page = as_alice.get("/commands/new/").content.decode()
    sent = {"command": "true", "device": "npu", "gpus_per_node": 4, "cpus": 1, "nodes": 1, "priority": 0}
    wrong = as_alice.post("/commands/new/", {**sent, "gpus_per_node": 3})
    as_alice.post("/commands/new/", sent)

    job = Job.objects.get()
    assert 'data-device-rules="npu"' in page
    assert "data-device-total" in page
    assert "Allowed for devices of kind NPU: 0, 1, 2, 4, 8." in str(wrong.context["form"].errors["gpus_per_node"])
    assert (job.device_kind, job.gpus_per_node) == ("npu", 4)
    assert as_alice.get(f"/commands/new/?clone={job.pk}").context["form"]["device"].value() == "npu"


def test_job_on_the_processor_keeps_no_kind_of_cards(alice, mixed):
    command = submit(user=alice, request=CommandRequest(command="true", device_kind="cpu", cpus=1.0))

    assert command.job.device_kind == "gpu"  # of cards that a restore may give it


@pytest.mark.parametrize(
    "path", ["/training/new/", "/environments/new/", "/evaluations/new/", "/services/new/", "/expert/"]
)
def test_every_submit_form_has_the_type_of_device(as_alice, mixed, path):
    page = as_alice.get(path, follow=True).content.decode()

    assert 'name="device"' in page


def test_presets_and_services_take_no_npu(api, alice, mixed):
    data = factory.version(alice)
    sent = {"preset": "detect", "version": data.pk, "device_kind": "npu", "gpus_per_node": 1}

    answer = api.post("/api/v1/training/jobs/", sent, format="json")

    assert "Presets train on GPUs" in answer.json()["errors"]["device_kind"][0]


def test_kind_of_job_refuses_devices_that_its_programs_cannot_use(alice, mixed, cluster):
    with pytest.raises(DomainError, match="does not run on devices of kind NPU"):
        submission.check(alice, "evaluation", cluster=cluster, cpus=1.0, gpus_per_node=1, device_kind="npu")
