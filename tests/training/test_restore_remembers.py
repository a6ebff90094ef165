"""Restore without a word of what: everything the training was requested with is as before."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from tests.factories import training as factory
from tests.factories import work
from training.runs import parameter_sets
from training.runs.models import TrainingJob
from workers.core.models import Attempt

OF_JOB = (
    "cluster_id", "nodes", "gpus_per_node", "device_kind", "device_model", "cpus", "share", "memory_mib",
    "card_memory_mib", "priority", "preemptible", "max_runtime", "retries", "retry_pause_s",
)  # fmt: skip


def _everything(training):
    row = TrainingJob.objects.values().get(pk=training.pk)
    sets = [str(use) for use in parameter_sets.ParameterSetUse.objects.filter(training=training)]
    return row, {name: getattr(training.job, name) for name in OF_JOB}, training.job.spec, sets


def test_restore_of_a_preset_on_several_cards_remembers_cards_switches_and_its_set(alice, api, db, cells):
    work.node(gpus=4)
    gentle = parameter_sets.save(user=alice, name="gentle", preset="detect", params={"lr": 0.005})
    training = factory.training(
        alice, data=cells, params={"lr": 0.005}, set_version=gentle.versions.get(), extra="-gpu:0,2 -keep:20",
        gpus_per_node=None, preemptible=True, memory_mib=512, description="why",
    )  # fmt: skip
    factory.checkpoint(factory.move(training, "stopped"), 100)
    before = _everything(training)

    answer = api.post(f"/api/v1/training/jobs/{training.pk}/restore/", {}, format="json")

    training = TrainingJob.objects.get(pk=training.pk)
    assert (answer.status_code, training.job.state) == (202, "queued")
    assert _everything(training) == before
    assert (training.job.gpus_per_node, training.extra["gpu"], training.params["keep_ms"]) == (2, [0, 2], 20)


def test_restore_of_own_code_remembers_variables_secrets_and_the_way_to_start(alice, api, machine, cells, code):
    training = factory.training(
        alice, data=cells, code=code, start_file="train.py", arguments="--resume {resume}", writes_checkpoints=True,
        variables={"MODE": "x"}, secrets={"TOKEN": "hidden"}, processes=2, params={"lr": 1}, extra="-hint:a b",
    )  # fmt: skip
    factory.checkpoint(factory.move(training, "failed"), 7)
    before = _everything(training)

    assert api.post(f"/api/v1/training/jobs/{training.pk}/restore/", {}, format="json").status_code == 202
    training = TrainingJob.objects.get(pk=training.pk)
    assert _everything(training) == before
    assert (training.secret_names, training.secrets != "") == (["TOKEN"], True)


def test_list_says_how_long_the_attempts_took_without_the_time_between_them(alice, as_alice, machine, cells):
    training = factory.training(alice, data=cells)
    day = timezone.now() - timedelta(days=1)
    for number, (begins, seconds) in enumerate(((0, 45), (7200, 30)), start=1):
        begun = day + timedelta(seconds=begins)
        Attempt.objects.create(
            job=training.job, number=number, started_at=begun, ended_at=begun + timedelta(seconds=seconds)
        )
    Attempt.objects.create(job=training.job, number=3, ended_at=day)  # never began

    page = as_alice.get("/training/").content.decode()

    assert training.job.span == timedelta(seconds=75)
    assert "1 min 15 s" in page
