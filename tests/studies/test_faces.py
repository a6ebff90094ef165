"""Studies by API, page and terminal: the same services, and nobody sees another's."""

from __future__ import annotations

import json

import pytest

from tests.cases import case_table
from tests.factories import training as factory
from tests.studies.helpers import complete, live, study
from training.runs.models import TrainingJob
from training.studies import advancing
from training.studies.models import Study

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("machine")]
ROUTE = "/api/v1/studies/"
BODY = {
    "name": "hunt",
    "training": {"command": "true", "gpus_per_node": 0, "cpus": 1, "params": {"fixed": 3}},
    "space": ["x = -5 .. 5.0", {"name": "mode", "choices": ["a", "b"]}],
    "objectives": ["loss"],
    "max_trials": 4,
}


@pytest.fixture
def data(alice):
    return factory.version(alice, "pets", task="classification")


def _finished(alice, **fields) -> Study:
    made = study(alice, max_trials=6, at_once=6, space=["x = -5 .. 5.0", "y = 1 .. 4"], **fields)
    advancing.advance(made.pk)
    for trial in live(made):
        complete(trial, trial.params["x"] ** 2)
    advancing.advance(made.pk)
    made.refresh_from_db()
    return made


def test_api_begins_a_study_of_own_code(alice, api):
    made = api.post(ROUTE, BODY, format="json")
    advancing.advance(made.json()["id"])
    after = api.get(f"{ROUTE}{made.json()['id']}/").json()
    rows = api.get(f"{ROUTE}{made.json()['id']}/trials/").json()

    assert made.status_code == 201, made.json()
    assert (after["state"], after["trials"], after["running"], after["params"]) == ("running", 2, 0, {"fixed": 3})
    assert after["counts"]["waiting"] == 2
    assert [row["number"] for row in rows] == [0, 1]
    training = TrainingJob.objects.get(pk=rows[0]["training"])
    assert training.params == {"fixed": 3} | rows[0]["params"]


def test_api_begins_a_study_of_a_preset_with_its_typed_parameters(alice, api, data):
    body = BODY | {
        "training": {"preset": "classify", "version": data.pk, "gpus_per_node": 0, "params": {"epochs": 2}},
        "space": ["lr = 0.001 .. 0.1 log", "batch_size = 8 .. 64 log", "flip = 0 .. 0.5 step 0.25"],
        "objectives": ["val/accuracy"],
        "pruner": "median",
    }

    made = api.post(ROUTE, body, format="json")
    advancing.advance(made.json()["id"])

    assert made.status_code == 201, made.json()
    params = TrainingJob.objects.order_by("pk")[0].params
    assert params["epochs"] == 2.0
    assert 0.001 <= params["lr"] <= 0.1
    assert isinstance(params["batch_size"], int)
    assert made.json()["objectives"] == [{"key": "val/accuracy", "direction": "maximize", "take": "last"}]
    assert made.json()["pruner"] == {"name": "median", "startup": 5, "warmup": 1, "factor": 3}


@case_table(
    ("change", "field"),
    [
        ({"name": ""}, "name"),
        ({"space": []}, "space"),
        ({"space": ["x = 5 .. 1"]}, "space"),
        ({"space": ["x = 0 .. 1 log"]}, "space"),
        ({"space": ["x"]}, "space"),
        ({"space": ["fixed = 1 .. 2"]}, "space"),
        ({"space": [{"name": "x", "low": 1, "high": 2, "sigma": 3}]}, "space"),
        ({"objectives": []}, "objectives"),
        ({"objectives": [{"key": "loss", "direction": "up"}]}, "objectives"),
        ({"objectives": ["a", "b"], "pruner": "asha"}, "pruner"),
        ({"pruner": "hope"}, "pruner"),
        ({"pruner": {"name": "asha", "factor": 1}}, "pruner"),
        ({"sampler": "cmaes"}, "sampler"),
        ({"sampler": "guess"}, "sampler"),
        ({"max_trials": 0}, "max_trials"),
        ({"hours_limit": -1}, "hours_limit"),
        ({"enqueue": [{"x": 99}]}, "enqueue"),
        ({"training": {"command": ""}}, "preset"),
        ({"training": {"command": "true", "cpus": 4000, "gpus_per_node": 0}}, "cpus"),
        ({"training": {"command": "true", "tea": 1}}, "tea"),
    ],
    rollback=True,
)
def test_api_refuses_what_is_no_study_at_its_field(alice, api, change, field):
    answer = api.post(ROUTE, BODY | change, format="json")

    assert answer.status_code in (400, 409), answer.json()
    assert field in answer.json()["errors"], answer.json()
    assert not Study.objects.exists()


@pytest.mark.parametrize(
    "line",
    ["lr = 0.001 .. 100", "lr = a, b", "tea = 1 .. 2", "batch_size = 1.5 .. 8", "folds = 2 .. 3", "amp = 0 .. 1"],
)
def test_api_refuses_ranges_that_the_preset_cannot_have(alice, api, data, line):
    body = BODY | {"training": {"preset": "classify", "version": data.pk, "gpus_per_node": 0}, "space": [line]}

    answer = api.post(ROUTE, body, format="json")

    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["space"])


def test_refusals_come_all_at_once(alice, api):
    body = BODY | {"space": ["x = 5 .. 1"], "objectives": ["?"], "pruner": "hope", "max_trials": 0}

    errors = api.post(ROUTE, body, format="json").json()["errors"]

    assert {"space", "objectives", "pruner", "max_trials"} <= set(errors)


def test_another_tenant_sees_and_changes_nothing(alice, bob, api, as_alice):
    made = study(bob, name="bobs_hunt")
    advancing.advance(made.pk)
    one = f"{ROUTE}{made.pk}/"

    answers = [api.get(one), api.get(f"{one}trials/"), api.get(f"{one}curves/"), api.get(f"{one}importance/")]
    answers += [api.post(f"{one}{verb}/") for verb in ("pause", "resume", "stop", "enqueue", "best")]
    answers += [api.patch(one, {"max_trials": 1}, format="json"), api.delete(one)]
    answers += [as_alice.get(f"/studies/{made.pk}/"), as_alice.post(f"/studies/{made.pk}/stop/")]
    warm = api.post(ROUTE, BODY | {"warm_start": [made.pk]}, format="json")

    assert {answer.status_code for answer in answers} == {404}
    assert "warm_start" in warm.json()["errors"]
    assert api.get(ROUTE).json()["results"] == []
    assert "bobs_hunt" not in as_alice.get("/studies/").content.decode()
    assert Study.objects.get().state == "running"


def test_shared_study_is_seen_and_not_changed(alice, bob, api):
    made = study(bob, name="ours", visibility="public")

    assert api.get(f"{ROUTE}{made.pk}/").status_code == 200
    assert api.post(f"{ROUTE}{made.pk}/stop/").status_code == 404


def test_acts_by_api(alice, api):
    made = study(alice, max_trials=3, at_once=1)
    one = f"{ROUTE}{made.pk}/"
    advancing.advance(made.pk)

    states = [api.post(f"{one}{verb}/").json()["state"] for verb in ("pause", "resume", "stop")]
    changed = api.patch(one, {"max_trials": 9, "time_limit_s": 60}, format="json").json()
    early = api.delete(one)
    advancing.advance(made.pk)
    again = api.post(f"{one}stop/")
    gone = api.delete(one)

    assert states == ["paused", "running", "stopped"]
    assert (again.status_code, again.json()["code"]) == (409, "not_now")
    assert (changed["max_trials"], changed["time_limit_s"]) == (9, 60)
    assert (early.status_code, gone.status_code) == (409, 204)
    assert TrainingJob.objects.count() == 1


def test_best_is_trained_again_as_an_ordinary_training(alice, api):
    made = _finished(alice)
    best = min(made.trials.all(), key=lambda row: row.values[0])

    answer = api.post(f"{ROUTE}{made.pk}/best/", {"params": {"epochs": 9}}, format="json")

    training = TrainingJob.objects.get(pk=answer.json()["id"])
    assert (answer.status_code, training.params, training.job.name) == (201, best.params | {"epochs": 9}, "hunt_best")
    assert "study" not in training.job.spec
    assert made.trials.count() == 6


def test_importance_says_what_mattered(alice, api):
    made = _finished(alice)

    by_default = api.get(f"{ROUTE}{made.pk}/importance/").json()
    by_forest = api.get(f"{ROUTE}{made.pk}/importance/?evaluator=fanova").json()
    wrong = api.get(f"{ROUTE}{made.pk}/importance/?objective=tea")

    for found in (by_default, by_forest):
        assert set(found["importance"]) == {"x", "y"}
        assert sum(found["importance"].values()) == pytest.approx(1)
    assert wrong.status_code == 400


def test_secrets_reach_every_trial_and_no_answer(alice, api):
    from aiplatform.lib import sealed

    body = BODY | {"training": BODY["training"] | {"secrets": {"WORD": "open sesame"}}}

    made = api.post(ROUTE, body, format="json")
    advancing.advance(made.json()["id"])
    row = Study.objects.get()

    assert made.status_code == 201, made.json()
    assert "sesame" not in json.dumps([row.request, row.secrets, made.json()])
    assert sealed.unseal(TrainingJob.objects.order_by("pk")[0].secrets) == {"WORD": "open sesame"}


def test_pages_show_a_study_and_its_trials(alice, as_alice, django_assert_max_num_queries):
    made = _finished(alice)

    with django_assert_max_num_queries(30):
        page = as_alice.get(f"/studies/{made.pk}/").content.decode()
    part = as_alice.get(f"/studies/{made.pk}/?ordering=-value:0", headers={"HX-Request": "true"}).content.decode()
    listed = as_alice.get("/studies/").content.decode()

    assert "All 6 trials are done." in page
    assert all(f'id="trial-{number}"' in page for number in range(6))
    assert "<html" not in part
    places = sorted(range(6), key=lambda number: part.index(f'id="trial-{number}"'))
    values = [made.trials.get(number=number).values[0] for number in places]
    assert values == sorted(values, reverse=True)
    assert made.name in listed


def test_trials_whose_jobs_are_queued_are_waiting_in_page_api_and_counts(alice, as_alice, api):
    made = study(alice, max_trials=2, at_once=2)
    advancing.advance(made.pk)
    first = made.trials.get(number=0)
    factory.move(first.training, "running")

    detail = api.get(f"{ROUTE}{made.pk}/").json()
    rows = api.get(f"{ROUTE}{made.pk}/trials/").json()
    page = as_alice.get(f"/studies/{made.pk}/")

    assert {name: count for name, count in detail["counts"].items() if count} == {"waiting": 1, "running": 1}
    assert [(row["state"], row["state_label"]) for row in rows] == [
        ("running", "Running"), ("waiting", "Waiting"),
    ]  # fmt: skip
    assert dict(page.context["counts"]) == {"Running": 1, "Waiting": 1}
    assert detail["running"] == 1


def test_page_begins_a_study_of_a_preset(alice, as_alice, data):
    asked = as_alice.get("/studies/new/").content.decode()
    begun = as_alice.get(f"/studies/new/?preset=classify&version={data.pk}")
    sent = {
        "name": "pets hunt", "version": data.pk, "key": "val/accuracy", "direction": "maximize", "take": "last",
        "sampler": "tpe", "pruner": "asha", "warmup": 2, "max_trials": 7, "at_once": 3, "visibility": "private",
        "range__lr": "0.001 .. 0.1 log", "classify__epochs": "3", "gpus_per_node": 0, "cpus": 1, "device": "cpu",
        "classify__amp": "on", "classify__flip_tta": "on", "classify__lr": "nonsense, which a range replaces",
    }  # fmt: skip

    answer = as_alice.post("/studies/new/?preset=classify", sent)

    assert "?preset=classify" in asked
    assert begun.status_code == 200
    assert answer.status_code == 302, answer.context["form"].errors
    row = Study.objects.get()
    assert (row.max_trials, row.at_once, row.pruner["name"], row.pruner["warmup"]) == (7, 3, "asha", 2)
    assert row.space == [{"name": "lr", "type": "float", "low": 0.001, "high": 0.1, "log": True}]
    assert row.request["params"] == {"epochs": 3.0}


def test_page_begins_a_study_of_own_code_and_shows_what_is_wrong_at_its_field(alice, as_alice):
    sent = {
        "name": "mine", "command": "true", "ranges": "x = 1 .. 4\nmode = a, b", "pairs": "fixed = 2", "key": "loss",
        "direction": "minimize", "take": "best", "sampler": "random", "max_trials": 3, "at_once": 1,
        "visibility": "private", "gpus_per_node": 0, "cpus": 1, "device": "cpu", "first": "x = 2, mode = b",
    }  # fmt: skip

    wrong = as_alice.post("/studies/new/?preset=own", sent | {"ranges": "x = 9 .. 1", "sampler": "cmaes"})
    right = as_alice.post("/studies/new/?preset=own", sent)

    assert (wrong.status_code, list(wrong.context["form"].errors)) == (422, ["ranges"])
    assert right.status_code == 302, right.context["form"].errors
    row = Study.objects.get()
    assert (row.request["params"], row.enqueued) == ({"fixed": 2}, [{"x": 2, "mode": "b"}])
