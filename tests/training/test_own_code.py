"""Own code as a training: with a command line, with data of any kind or none, with what commands take."""

from __future__ import annotations

import json
import os
import subprocess
import time

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from datasets.models import DatasetVersion
from inference.registry import training_results
from tests.factories import training as factory
from training.presets.catalog import PRESETS
from training.runs import data_use, jobs, snippets
from training.runs.kind import TrainingKind
from training.runs.models import TrainingJob
from workers.core.models import Allocation, Attempt, Device, Job
from workers.core.runs import RunDir

kind = TrainingKind()
API = "/api/v1/training/jobs/"
PAGE = "/training/new/"


@pytest.fixture
def raw(alice):
    """Alice's images that nobody has annotated."""
    made = factory.version(alice, "raw")
    DatasetVersion.objects.filter(pk=made.pk).update(annotated=False, classes=[])
    made.refresh_from_db()
    return made


def prepared(training):
    """The launch and the run directory of the first attempt, as launching would ask for them."""
    Job.objects.filter(pk=training.job_id).update(attempt_number=1)
    attempt, _made = Attempt.objects.get_or_create(job_id=training.job_id, number=1)
    run = RunDir.for_attempt(training.job_id, 1)
    run.path.mkdir(parents=True, exist_ok=True)
    return kind.prepare(Job.objects.get(pk=training.job_id), attempt, run), run


def own(alice, **fields):
    """Own code that was submitted without data."""
    return factory.training(alice, **{"version": None, "name": "own", **fields})


def test_training_of_own_code_needs_no_data(api, machine, code):
    answer = api.post(API, {"code": code.pk, "start_file": "train.py", "cpus": 1}, format="json")

    said = answer.json()
    assert (answer.status_code, said["version"], said["dataset"], said["name"]) == (201, None, "", "train")
    launch, run = prepared(TrainingJob.objects.get(pk=said["id"]))
    assert launch.env["AIP_DATASETS"] == "[]"
    assert "AIP_DATASET_DIR" not in launch.env
    assert json.loads(run.params.read_text()) == {}


def test_training_of_a_preset_still_needs_annotated_data(api, machine, raw):
    without = api.post(API, {"preset": "detect"}, format="json").json()
    with_raw = api.post(API, {"preset": "detect", "version": raw.pk}, format="json").json()

    assert without["errors"]["version"] == ["Choose a training dataset."]
    assert with_raw["code"] == "version_not_ready"


def test_training_of_own_code_takes_raw_data_and_several_with_names(api, machine, code, cells, raw):
    sent = {"code": code.pk, "start_file": "train.py", "version": raw.pk, "datasets": [cells.pk], "cpus": 1}

    said = api.post(API, sent, format="json").json()

    assert said["datasets"] == [{"id": cells.pk, "name": "cells v1"}]
    launch, run = prepared(TrainingJob.objects.get(pk=said["id"]))
    told = json.loads(launch.env["AIP_DATASETS"])
    assert [(one["name"], one["role"]) for one in told] == [("raw v1", "train"), ("cells v1", "data")]
    assert (run.inputs / "cells-v1").resolve() == cells.path.resolve()
    assert {raw.path, cells.path} <= set(launch.read_only)


def test_training_runs_a_command_line_with_variables_and_secrets(alice, machine):
    line = 'echo "lr $LR" > "$AIP_OUTPUT_DIR/said"\npython3 -c "print(open(0).name)" < /dev/null'
    training = own(alice, command=line, variables={"LR": "0.1"}, secrets={"WANDB_API_KEY": "very-secret"})

    launch, run = prepared(training)
    env = {**os.environ, **launch.env, "AIP_OUTPUT_DIR": str(run.outputs)}
    run.outputs.mkdir(parents=True, exist_ok=True)
    subprocess.run(launch.argv, cwd=run.code, env=env, check=True, capture_output=True)

    assert (run.outputs / "said").read_text() == "lr 0.1\n"
    assert launch.env["WANDB_API_KEY"] == "very-secret"
    assert "very-secret" in launch.secrets
    assert "very-secret" not in json.dumps(training.job.spec) + training.secrets
    assert training.job.spec["secrets"] == ["WANDB_API_KEY"]


def test_training_of_a_command_line_shows_its_hint_waits_at_the_end_and_keeps_the_exit_code(alice, machine):
    training = own(alice, command="echo works; exit 3", extra="-hint:two words -CloseDelay:1 -keep:5 -ShowStep")

    launch, run = prepared(training)
    env = {**os.environ, **launch.env, "AIP_HINT_S": "0"}
    began = time.monotonic()
    ended = subprocess.run(launch.argv, cwd=run.code, env=env, check=False, capture_output=True, text=True)

    assert (ended.returncode, ended.stdout) == (3, "two words\nworks\n")
    assert time.monotonic() - began >= 1
    assert json.loads(run.params.read_text()) == {"keep_ms": 5, "show_step": True}


def test_cards_of_a_command_line_are_those_that_its_switch_names(alice, db):
    factory.work.node("node1", gpus=2)

    training = own(alice, command="python train.py", extra="-gpu:0,1", gpus_per_node=None)

    assert (training.job.gpus_per_node, training.processes) == (2, 1)


def test_training_starts_a_command_on_several_machines_by_the_launcher_of_commands(alice, db):
    for name in ("node1", "node2"):
        factory.work.node(name, gpus=2)
    training = own(
        alice, command="python main.py", worker_command="python worker.py", launcher="processes", nodes=2,
        gpus_per_node=2, variables={},
    )  # fmt: skip
    attempt = Attempt.objects.create(job=training.job, number=1)
    for rank, name in enumerate(("node1", "node2")):
        lead = Device.objects.filter(node__name=name, kind="gpu").first()
        Allocation.objects.create(attempt=attempt, node=lead.node, device=lead, rank=rank, port=29_500 + rank)

    launch, run = prepared(training)

    layout = json.loads((run.path / "layout.json").read_text())
    assert (layout["launcher"], layout["processes"], len(layout["nodes"])) == ("processes", 2, 2)
    assert layout["worker"][-1].endswith("worker.sh")
    assert launch.env["MASTER_PORT"] == "29500"


def test_training_starts_a_start_file_by_the_launcher_that_was_chosen(alice, machine, code):
    training = own(
        alice, code=code, start_file="train.py", launcher="processes", processes=2, arguments="--out {output}"
    )

    _launch, run = prepared(training)

    layout = json.loads((run.path / "layout.json").read_text())
    assert layout["argv"][1:] == ["-u", "train.py", "--out", str(run.outputs)]
    assert layout["processes"] == 2


@pytest.mark.parametrize(
    ("wrong", "field", "says"),
    [
        ({"command": "x", "start_file": "train.py"}, "command", "not both"),
        ({"start_file": ""}, "start_file", "Specify the entry point of the code, or a command line."),
        (
            {"start_file": "train.py", "worker_command": "x", "nodes": 2},
            "launcher",
            "A command for the other nodes needs a launcher: choose one.",
        ),
        ({"command": "x", "processes": 4}, "launcher", "need a launcher"),
        ({"command": "x", "variables": {"AIP_X": "1"}}, "variables", ": names starting with AIP_ are reserved."),
        ({"command": "x", "secrets": {"S": "abc"}}, "secrets", "at least"),
    ],
)
def test_training_of_own_code_is_refused_with_its_field(api, machine, code, wrong, field, says):
    said = api.post(API, {"code": code.pk, "cpus": 1, **wrong}, format="json").json()

    assert any(says in sentence for sentence in said["errors"][field])


def test_training_of_a_preset_refuses_what_only_own_code_takes(api, machine, cells):
    sent = {"preset": "detect", "version": cells.pk, "variables": {"A": "1"}, "datasets": [cells.pk]}

    answer = api.post(API, sent, format="json")

    assert answer.status_code in (400, 409, 422)
    assert "A preset has its own program and environment, so this does not" in answer.content.decode()
    assert not TrainingJob.objects.exists()


def test_training_without_data_ends_and_is_registered_without_a_dataset(alice, machine):
    training = own(alice, command="true")
    run = factory.move(training, "succeeded")
    (run.outputs / "metrics.json").write_text('{"loss": 0.5}')
    attempt = training.job.attempts.get()

    kind.ended(training.job, attempt)

    training.refresh_from_db()
    assert (training.metrics, training.published_attempt) == ({"loss": 0.5}, 1)
    assert training_results.keep_model(training) is None


def test_training_without_data_is_restored_and_one_whose_data_is_gone_is_not(alice, machine, code, cells):
    free = own(alice, code=code, start_file="train.py", writes_checkpoints=True)
    factory.checkpoint(factory.move(free, "failed"), 1)
    bound = own(
        alice, name="bound", code=code, start_file="train.py", version=factory.version(alice, "other"),
        datasets=[cells], writes_checkpoints=True,
    )  # fmt: skip
    factory.checkpoint(factory.move(bound, "failed"), 1)
    DatasetVersion.objects.filter(pk=cells.pk).delete()
    bound.refresh_from_db()

    jobs.restore(free, by=alice)
    with pytest.raises(data_use.NotRestorable, match="cells v1 was deleted"):
        jobs.restore(bound, by=alice)

    assert Job.objects.get(pk=free.job_id).state == "queued"


@pytest.mark.parametrize(
    "left_over",
    [
        {"variables": "FOO"},
        {"secrets": "FOO"},
        {"pairs": "no pair"},
        {"datasets": ["999999"]},
        {"eval_version": "999999"},
        {"image": "999999"},
        {"home_path": "x" * 300},
        {"launcher": "rocket"},
        {"variables": "PATH=x", "classify__budget_minutes": "x" * 5},
    ],
)
def test_training_of_a_preset_passes_over_what_is_left_in_fields_that_are_hidden(as_alice, machine, cells, left_over):
    sent = {
        "preset": "detect", "version": cells.pk, "gpus_per_node": 0, "cpus": 1, "nodes": 1, "processes": 0,
        "priority": 0, **left_over,
    }  # fmt: skip

    answer = as_alice.post(PAGE, sent)

    assert answer.status_code == 302
    assert TrainingJob.objects.get().preset == "detect"


def test_training_of_own_code_passes_over_what_is_left_in_the_fields_of_presets(as_alice, machine):
    [choice] = [param.name for param in PRESETS["detect"].parameters if param.choices][:1]
    sent = {
        "preset": "own", "command": "true", "gpus_per_node": 0, "cpus": 1, "nodes": 1, "processes": 0, "priority": 0,
    }  # fmt: skip

    assert as_alice.post(PAGE, {**sent, f"detect__{choice}": "no such"}).status_code == 302
    assert as_alice.post(PAGE, {**sent, "variables": "FOO"}).status_code == 422


def test_training_page_asks_the_database_whether_there_is_annotated_data_and_reads_no_rows(as_alice, machine, cells):
    with CaptureQueriesContext(connection) as asked:
        as_alice.get(PAGE)

    wheres = [query["sql"] for query in asked if '"annotated"' in query["sql"].partition("WHERE")[2]]
    assert wheres
    assert all("LIMIT 1" in sql for sql in wheres)


@pytest.mark.parametrize("asked", ["log/?rank=7", "log/?attempt=9", "metrics/?attempt=9"])
def test_training_api_has_no_output_of_a_machine_or_an_attempt_that_never_was(api, alice, machine, asked):
    training = own(alice, command="true")

    assert api.get(f"{API}{training.pk}/log/?rank=0").status_code == 200
    assert api.get(f"{API}{training.pk}/{asked}").status_code == 404


def test_training_keeps_its_retries_and_is_cloned_with_all_but_its_secrets(as_alice, api, alice, machine, raw):
    sent = {
        "preset": "own", "command": "python -m x", "variables": "A=1", "secrets": "TOKEN=123456", "retries": 2,
        "version": raw.pk, "gpus_per_node": 0, "cpus": 1, "nodes": 1, "processes": 0, "priority": 0,
    }  # fmt: skip
    made = as_alice.post(PAGE, sent)
    training = TrainingJob.objects.get()
    form = as_alice.get(f"{PAGE}?clone={training.pk}").context["form"]

    assert made.status_code == 302
    assert training.job.retries == 2
    assert form["command"].value() == "python -m x"
    assert (form["variables"].value(), form["secrets"].value(), form["retries"].value()) == ("A=1", "TOKEN=\n", 2)
    assert form["version"].value() == raw.pk


def test_training_is_written_as_a_command_line_that_asks_for_the_same(alice, machine, cells, raw):
    training = own(
        alice, command="python -m x", version=raw, datasets=[cells], launcher="processes", processes=2,
        variables={"A": "1"}, secrets={"TOKEN": "123456"},
    )  # fmt: skip

    line = snippets.as_cli(training)

    assert f"--data {raw.pk} --data {cells.pk}" in line
    assert "--command 'python -m x'" in line
    assert "--launcher processes" in line
    assert "--env A=1 --secret TOKEN" in line
    assert "123456" not in line + snippets.as_curl(training, "http://x")


def test_training_page_offers_raw_data_and_says_what_it_is(as_alice, machine, raw):
    shown = as_alice.get(PAGE).content.decode()

    assert "not annotated" in shown


def test_training_page_of_own_code_shows_its_command_and_no_secret(as_alice, alice, machine):
    training = own(alice, command="python -m x --api-key abcdefgh", secrets={"TOKEN": "123456"})

    shown = as_alice.get(f"/training/{training.pk}/").content.decode()

    assert "python -m x" in shown
    assert "abcdefgh" not in shown
    assert "TOKEN=••••••" in shown
    assert "without dataset" in shown
