"""Trainings as a command, a request and a script: they ask for the same again."""

from __future__ import annotations

import shlex

import pytest

from aiplatform.client.main import parser
from tests.factories import training as factory
from training.runs import snippets
from training.runs.models import TrainingJob
from workers.core.models import Job


@pytest.fixture
def trained(alice, machine, cells):
    training = factory.training(alice, data=cells, params={"lr": 0.01})
    factory.move(training, "succeeded")
    return training


def test_snippets_request_repeats_the_same_training(api, trained):
    body = snippets.request_of(trained)

    made = api.post("/api/v1/training/jobs/", body | {"name": "again"}, format="json")

    assert made.status_code == 201, made.json()
    again = TrainingJob.objects.get(pk=made.json()["id"])
    assert (again.params, again.version, again.preset) == (trained.params, trained.version, trained.preset)


def test_snippets_repeat_the_requested_resources(api, alice, machine, cells):
    training = factory.training(alice, data=cells)
    Job.objects.filter(pk=training.job_id).update(cpus=1.5, memory_mib=500, gpus_per_node=0)
    training = TrainingJob.objects.get(pk=training.pk)

    made = api.post("/api/v1/training/jobs/", snippets.request_of(training) | {"name": "again"}, format="json")
    args = parser().parse_args(shlex.split(snippets.as_cli(training))[1:])

    again = Job.objects.get(training=made.json()["id"])
    assert (again.cpus, again.memory_mib, again.gpus_per_node) == (1.5, 500, 0)
    assert (args.cpus, round(args.memory * 1024), args.gpus) == (1.5, 500, 0)


def test_snippets_name_the_model_and_the_share_of_a_gpu(alice, machine, cells):
    training = factory.training(alice, data=cells)
    Job.objects.filter(pk=training.job_id).update(gpus_per_node=1, share=4, device_model="A100")
    training = TrainingJob.objects.get(pk=training.pk)

    line, body = snippets.as_cli(training), snippets.request_of(training)

    assert {"gpus_per_node": 1, "device_kind": "gpu", "device_model": "A100", "share": 4}.items() <= body.items()
    assert "--gpus 1 --share 4" in line
    assert "--device gpu:A100" in line


def test_snippets_command_is_understood_by_the_client(trained):
    args = parser().parse_args(shlex.split(snippets.as_cli(trained))[1:])

    assert (args.name, args.preset, args.param) == ("cells", "detect", ["lr=0.01"])


def test_snippets_script_is_python(trained):
    compile(snippets.as_python(trained, "http://127.0.0.1:8000"), "copied.py", "exec")
