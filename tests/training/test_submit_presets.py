"""Submitting trainings of presets that ask for something of their own."""

from __future__ import annotations

import pytest
from django.utils.timezone import now

from tests.factories import training as factory
from tests.factories import work
from training.presets.catalog import PRESETS
from training.runs import drafts
from training.runs.drafts import TrainingRequest
from training.runs.models import TrainingJob
from workers.core import kinds
from workers.core.models import ClusterDevice, Job
from workers.planning import planner_input

pytestmark = pytest.mark.postgres

API = "/api/v1/training/jobs/"


def test_training_submit_of_a_preset_for_processors_alone_needs_no_word_of_it(api, machine, alice):
    digits = factory.version(alice, "digits", task="classification")
    sent = {"version": digits.pk, "preset": "hog_svm", "gpus_per_node": 0}

    plain, on_cards = (api.post(API, sent | more, format="json") for more in ({}, {"gpus_per_node": 1}))

    assert plain.status_code == 201
    assert "trains only on CPUs. Request no GPUs." in str(on_cards.json())


def test_presets_for_cpus_only_ask_for_no_gpu_by_default(api, as_alice, alice):
    work.node(cores=4, gpus=1)
    digits = factory.version(alice, "digits", task="classification")
    cpu_only = [preset.name for preset in PRESETS.values() if preset.cpu_only]
    pages = ("/training/new/?preset={}", "/studies/new/?preset={}")

    for name in cpu_only:
        assert drafts.resources_of(alice, TrainingRequest(preset=name))["gpus_per_node"] == 0
        for page in pages:
            form = as_alice.get(page.format(name)).context["form"]
            assert (form["device"].value(), form["gpus_per_node"].value()) == ("cpu", 0), (page, name)
    answer = api.post(API, {"version": digits.pk, "preset": "hog_svm"}, format="json")
    with_gpu = api.post(API, {"version": digits.pk, "preset": "classify"}, format="json")

    assert "hog_svm" in cpu_only
    assert TrainingJob.objects.get(pk=answer.json()["id"]).job.gpus_per_node == 0
    assert TrainingJob.objects.get(pk=with_gpu.json()["id"]).job.gpus_per_node == 1
    assert as_alice.get("/training/new/?preset=classify").context["form"]["gpus_per_node"].value() == 1


def test_training_in_a_cluster_without_gpus_runs_on_the_cpu_by_default(api, as_alice, alice, cells):
    work.node(cores=4, gpus=1)
    cluster = alice.memberships.get().cluster
    before = as_alice.get("/training/new/").context["form"]
    ClusterDevice.objects.create(cluster=cluster, kind="gpu", guaranteed=0)

    form = as_alice.get("/training/new/").context["form"]
    answer = api.post(API, {"version": cells.pk, "preset": "detect"}, format="json")

    assert before["gpus_per_node"].value() == 1
    assert (form["device"].value(), form["gpus_per_node"].value()) == ("cpu", 0)
    assert answer.json()["gpus_per_node"] == 0


def test_waiting_and_running_trainings_are_expected_to_run_for_their_time_budget(machine, alice):
    waiting = factory.training(alice, name="one", preset="detect", params={"budget_minutes": 1})
    data = waiting.version
    params = {"budget_minutes": 0, "steps": 9}
    endless = factory.training(alice, name="two", data=data, preset="detect", params=params)

    rows = {row.job: row for row in planner_input.read(now(), ({}, {}), 4 * 3600.0).waiting}

    assert rows[waiting.job_id].expected == 60.0
    assert rows[endless.job_id].expected is None
    moved = Job.objects.filter(pk__in=[waiting.job_id])
    assert kinds.expected_runtimes(moved) == {waiting.job_id: 60.0}


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"budget_minutes": 0}, "param_budget_minutes"),
        ({"budget_minutes": 5, "patience": 3, "eval_share": 0}, "param_patience"),
    ],
)
def test_training_that_never_ends_is_refused_by_api_and_form(api, as_alice, machine, cells, params, field):
    answer = api.post(API, {"version": cells.pk, "preset": "detect", "params": params}, format="json")
    form = {"preset": "detect", "version": cells.pk, "gpus_per_node": 0, "cpus": 1, "nodes": 1, "processes": 0}
    page = as_alice.post("/training/new/", form | {f"detect__{name}": value for name, value in params.items()})

    assert (answer.status_code, list(answer.json()["errors"])) == (400, [field])
    assert page.status_code == 422
    assert field.replace("param_", "detect__") in page.context["form"].errors
    assert not TrainingJob.objects.exists()


@pytest.mark.parametrize("params", [{"steps": 3}, {"epochs": 1}, {"patience": 2}, {"anneal": "plateau"}])
def test_training_without_a_time_budget_ends_by_another_limit(api, machine, cells, params):
    body = {"version": cells.pk, "preset": "detect", "params": {"budget_minutes": 0, **params}}

    assert api.post(API, body, format="json").status_code == 201


def test_training_submit_takes_a_class_that_is_called_by_a_number(api, machine, alice):
    parts = factory.version(alice, "parts", task="classification")

    sent = {"version": parts.pk, "preset": "anomaly", "gpus_per_node": 0, "params": {"good_class": 1}}

    answer = api.post(API, sent, format="json")

    assert TrainingJob.objects.get(pk=answer.json()["id"]).params["good_class"] == "1"
