"""Evaluation parameter sets: made of an evaluation, shared, and evaluations that are begun with them."""

import pytest
from django.urls import reverse

from aiplatform.lib.errors import DomainError, Invalid, NameTaken
from inference.evaluation import evaluations, saved_parameters
from inference.evaluation.models import Evaluation, EvaluationSet
from tests.factories import models as factory
from tests.inference import judged

pytestmark = pytest.mark.django_db
ROUTE = "/api/v1/evaluation-sets/"


@pytest.fixture
def begun(alice, tmp_path):
    """An evaluation that waits, with a parameter of its own."""
    model = factory.model_version(alice, tmp_path)
    data = judged.dataset_version(alice, tmp_path / "data")
    return evaluations.submit(user=alice, model_version=model, version=data, split="test", params={"batch": 3})


@pytest.fixture
def saved_set(alice, begun):
    return saved_parameters.save(user=alice, name="careful", **saved_parameters.from_evaluation(begun))


def test_set_of_an_evaluation_begins_the_same_one_again(api, alice, begun, saved_set):
    api.force_authenticate(alice)
    body = {"model_version": begun.model_version_id, "parameter_set": saved_set.pk}

    made = api.post("/api/v1/evaluations/", {**body, "params": {"max_detections": 7}}, format="json")
    nothing = api.post("/api/v1/evaluations/", {"model_version": begun.model_version_id}, format="json")

    row = Evaluation.objects.get(pk=made.json()["id"])
    assert made.status_code == 201
    assert (row.version, row.split, row.job.cpus) == (begun.version, "test", begun.job.cpus)
    assert row.params == begun.params | {"max_detections": 7}
    assert list(nothing.json()["errors"]) == ["version"]


def test_set_of_another_task_is_refused_with_its_reason(api, alice, begun, saved_set, tmp_path):
    other = factory.model_version(alice, tmp_path, name="letters", task="classification")
    api.force_authenticate(alice)

    body = {"model_version": other.pk, "parameter_set": saved_set.pk}
    refused = api.post("/api/v1/evaluations/", body, format="json")

    assert refused.status_code == 400
    assert "a different task" in refused.json()["errors"]["parameter_set"][0]


def test_set_refuses_all_that_is_wrong_at_once(alice, begun, saved_set):
    saved_parameters.save(user=alice, name="other", **saved_parameters.from_evaluation(begun))
    wrong = {"task": "tagging", "visibility": "all", "params": {"speed": 1}, "split": "nowhere", "gpus_per_node": 4}

    with pytest.raises(DomainError) as refused:
        saved_parameters.save(user=alice, name="other", existing=saved_set, **wrong)

    assert {type(error) for error in refused.value.every} == {NameTaken, Invalid}
    assert {error.blamed for error in refused.value.every} >= {"name", "task", "visibility", "split", "gpus_per_node"}
    assert EvaluationSet.objects.get(pk=saved_set.pk).name == "careful"


def test_set_is_seen_as_far_as_it_is_shared_and_changed_by_its_owner(api, alice, bob, saved_set):
    api.force_authenticate(bob)
    unseen = api.get(f"{ROUTE}{saved_set.pk}/").status_code
    saved_parameters.save(user=alice, name=saved_set.name, existing=saved_set, visibility="public")

    rows = api.get(ROUTE, {"search": "careful detection"}).json()["results"]
    refused = api.patch(f"{ROUTE}{saved_set.pk}/", {"name": "mine"}, format="json")
    api.force_authenticate(alice)
    changed = api.patch(f"{ROUTE}{saved_set.pk}/", {"description": "for cells", "version": None}, format="json").json()

    assert (unseen, [row["id"] for row in rows], refused.status_code) == (404, [saved_set.pk], 404)
    assert (changed["name"], changed["description"], changed["dataset"], changed["version"]) == (
        "careful", "for cells", "", None,
    )  # fmt: skip


def test_pages_save_import_change_and_remove_a_set(client, alice, begun):
    client.force_login(alice)
    new = reverse("inference:evaluation-set-new") + f"?evaluation={begun.pk}"
    form = client.get(new).context["form"]
    fields = {name: "" if form[name].value() is None else form[name].value() for name in form.fields}
    client.post(new, {**fields, "name": "careful", "visibility": "private"})
    row = EvaluationSet.objects.get()

    client.post(reverse("inference:evaluation-set-edit", args=[row.pk]), {**fields, "name": "gentle", "batch": 5,
                                                                         "visibility": "public"})  # fmt: skip
    imported = client.post(
        reverse("inference:evaluation-new"),
        {"model_version": begun.model_version_id, "parameter_set": row.pk, "import": "1", "snapshot": ""},
    )
    listed = client.get(reverse("inference:evaluation-sets"), {"q": "gentle"})
    shown = client.get(reverse("inference:evaluation-set", args=[row.pk]))
    after = imported.context["form"]

    assert (after["batch"].value(), after["split"].value(), after["version"].value()) == (5, "test", begun.version_id)
    assert str(after["model_version"].value()) == str(begun.model_version_id)
    assert (b"gentle" in listed.content, shown.status_code) == (True, 200)
    client.post(reverse("inference:evaluation-set-delete", args=[row.pk]))
    assert not EvaluationSet.objects.exists()
