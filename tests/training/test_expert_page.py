"""The expert page: form and text follow each other, refusals name their line, the text is what is queued."""

from __future__ import annotations

import pytest

from tests.factories import work
from training.commands import services as commands
from training.commands.models import Command
from training.commands.request_schema import SCHEMA
from training.commands.services import CommandRequest
from training.programs import request_text
from workers.jobs.following import Following

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


@pytest.fixture
def machine(db):
    return [work.node(name, cores=8) for name in ("one", "two")]


def fields(**more):
    return {"kind": "command", "command": "make", "gpus_per_node": 0, "cpus": 1, "nodes": 1, "priority": 0} | more


def text_in(answer):
    page = answer.content.decode()
    return page[page.index("<textarea") : page.index("</textarea>", page.index('name="text"'))].split(">", 1)[1]


def test_expert_page_queues_its_text(as_alice, machine):
    answer = as_alice.post(
        "/expert/", {"kind": "command", "text": "command: make\ncpus: 2\nretries: 3\n", "act": "submit"}
    )

    row = Command.objects.get()
    assert answer["Location"] == f"/jobs/{row.pk}/"
    assert (row.script, row.job.cpus, row.job.retries) == ("make", 2.0, 3)


def test_expert_page_refuses_by_line_and_keeps_the_text(as_alice, machine):
    text = "command: make\nnodes: 2\ncpuss: 2\nvariables:\n  1A: x\ngpus_per_node: lots\n"

    answer = as_alice.post("/expert/", {"kind": "command", "text": text})

    page = answer.content.decode()
    notes = [(note.line, note.field) for note in answer.context["reading"].notes]
    assert answer.status_code == 422
    assert {(3, "cpuss"), (6, "gpus_per_node")} <= set(notes)
    assert "Line 3" in page
    assert "cpuss: 2" in page
    assert not Command.objects.exists()


def test_expert_page_reads_parameters_as_the_page_of_a_template_does(as_alice, machine):
    text = "command: |\n  {{ python }} train.py\ncpus: {{ n }}  # how many\n"

    answer = as_alice.post("/expert/", {"kind": "command", "text": text})
    begun = as_alice.post("/templates/new/", {"kind": "command", "begin": "text", "text": text})

    request = {"command": "{{ python }} train.py\n", "cpus": "{{ n }}"}
    assert [(note.line, note.field) for note in answer.context["reading"].notes] == [(3, "cpus")]
    assert answer.context["reading"].request == request
    assert request_text.read(begun.context["form"].initial["text"]) == request


def test_expert_page_writes_the_form_as_text(as_alice, machine):
    given = fields(nodes=2, launcher="torchrun", variables="A=1\nB=2", retries=2, memory_gib="4", max_disk_gib="1.5")
    given |= {"max_runtime_min": 90}

    answer = as_alice.post("/expert/text/", given)

    request = request_text.read(answer.context["text"])
    assert request["variables"] == {"A": "1", "B": "2"}
    assert (request["nodes"], request["launcher"], request["retries"]) == (2, "torchrun", 2)
    assert (request["memory_mib"], request["max_disk_bytes"], request["max_runtime_s"]) == (4096, 3 << 29, 5400)
    assert "priority" not in request
    assert not answer.context["reading"].notes


def test_expert_page_fills_the_form_from_the_text_and_says_whether_it_fits(as_alice, machine):
    text = "command: |\n  one\n  two\nvariables: {A: '1'}\nafter_end: []\nnodes: 2\ncpus: 1\nmemory_mib: 2048\n"

    answer = as_alice.post("/expert/form/", {"kind": "command", "text": text})

    initial = answer.context["form"].initial
    assert (initial["command"], initial["variables"]) == ("one\ntwo\n", "A=1")
    assert (initial["nodes"], initial["memory_gib"]) == (2, 2.0)
    assert answer.context["reading"].verdict.kind == "now"
    assert 'hx-swap-oob="true"' in answer.content.decode()


def test_expert_page_works_without_scripts(as_alice, machine):
    to_text = as_alice.post("/expert/", fields(command="make it", act="text"))
    to_form = as_alice.post("/expert/", {"kind": "command", "text": "command: make that\ncpus: 1\n", "act": "form"})

    assert "command: make it" in to_text.content.decode()
    assert to_form.context["form"].initial["command"] == "make that"
    assert not Command.objects.exists()


def test_expert_page_begins_from_a_job_and_the_text_makes_the_same_job(as_alice, alice, machine):
    first = commands.submit(
        user=alice,
        request=CommandRequest(
            command="one\ntwo", cpus=2.0, nodes=2, launcher="processes", processes=2, worker_command="help",
            variables={"A": " x "}, priority=7, following=Following(retries=2, retry_pause_s=5),
        ),
    )  # fmt: skip

    page = as_alice.get(f"/expert/?job={first.pk}")
    as_alice.post("/expert/", {"kind": "command", "text": page.context["text"], "act": "submit"})

    second = Command.objects.exclude(pk=first.pk).get()
    same = ("script", "launcher", "processes", "worker_script", "variables")
    of_job = ("cpus", "nodes", "priority", "retries", "retry_pause_s", "cluster_id")
    assert [getattr(second, name) for name in same] == [getattr(first, name) for name in same]
    assert [getattr(second.job, name) for name in of_job] == [getattr(first.job, name) for name in of_job]


def test_expert_page_says_a_broken_text_and_still_shows_it(as_alice, machine):
    for text in ("a: [1", "- x", "a: *b", "[" * 5000):
        for address in ("/expert/", "/expert/form/"):
            answer = as_alice.post(address, {"kind": "command", "text": text})
            assert answer.context["reading"].notes, text


def test_expert_form_stays_and_the_line_is_named_where_the_text_is_no_yaml(as_alice, machine):
    answer = as_alice.post("/expert/form/", {"kind": "command", "text": "command: make\ncpus: [1\n"})

    page = answer.content.decode()
    assert answer["HX-Reswap"] == "none"
    assert 'id="expert-form"' not in page
    assert 'data-to-line="2"' in page or 'data-to-line="3"' in page
    assert "Invalid YAML" in page


def test_expert_text_keeps_a_wrong_value_of_the_form_and_names_its_line(as_alice, machine):
    answer = as_alice.post("/expert/text/", fields(cpus="many"))

    assert answer.context["text"].splitlines()[1] == "cpus: many"
    assert (2, "cpus") in [(note.line, note.field) for note in answer.context["reading"].notes]


def test_expert_page_is_for_those_who_submit(as_anna, as_alice):
    assert as_anna.get("/expert/").status_code == 403
    assert as_alice.get("/expert/").status_code == 200
    assert as_alice.get("/expert/?kind=nothing").status_code == 400


def test_every_field_of_a_command_is_in_form_and_text():
    """A field that is added to the route has to reach the expert page."""
    known = {
        "max_runtime_s": "max_runtime_min", "memory_mib": "memory_gib", "code": "snapshot",
        "max_disk_bytes": "max_disk_gib", "code_upload": None,
        "code_archive": None, "device_kind": "device", "device_model": "device",
    }  # fmt: skip
    form = SCHEMA.form_class.base_fields

    missing = [name for name in SCHEMA.serializer().fields if (mapped := known.get(name, name)) and mapped not in form]

    assert missing == []


def test_expert_page_begins_from_no_job_that_the_platform_made(as_alice, alice, cluster):
    job = work.job(alice, cluster)

    assert as_alice.get(f"/expert/?job={job.pk}").status_code == 404


@pytest.mark.parametrize("kind", ["command", "environment", "training"])
def test_expert_page_stands_a_number_that_is_beyond_all_memory(as_alice, machine, kind):
    text = f"memory_mib: 1{'0' * 400}\n"

    assert as_alice.post("/expert/form/", {"kind": kind, "text": text}).status_code == 200


def test_expert_page_shows_every_field_once_in_blocks_with_its_unit(as_alice, machine):
    for kind in ("command", "environment", "training"):
        answer = as_alice.get(f"/expert/?kind={kind}")

        rows = [row for block in answer.context["blocks"] for row in block.rows]
        assert sorted(row.field.name for row in rows) == sorted(
            field.name for field in answer.context["form"].visible_fields()
        )
        assert {row.field.name: row.unit for row in rows}["memory_gib"] == "GiB"
        assert answer.context["form"]["cpus"].value()
