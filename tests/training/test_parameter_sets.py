"""Parameter sets: versions, who sees and uses them, and the trainings that were begun from them."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.apps import apps

from accounts.access import sharing
from accounts.models import UserGroup
from aiplatform.lib.errors import DomainError, Invalid, NameTaken, NotFound
from tests.factories import training as factory
from training.presets.catalog import PRESETS
from training.runs import parameter_sets
from training.runs.models import ParameterSet, TrainingJob

pytestmark = pytest.mark.django_db
ROUTE = "/api/v1/training/params/"


@pytest.fixture
def gentle(alice):
    return parameter_sets.save(user=alice, name="gentle", preset="detect", params={"lr": 0.005})


def _changed(row, user, **params):
    return parameter_sets.save(user=user, name=row.name, preset=row.preset, params=params, existing=row)


def test_a_changed_set_keeps_what_it_said_before(gentle, alice):
    same = _changed(gentle, alice, lr=0.005)
    after = _changed(same, alice, lr=0.001, epochs=3.0)

    said = [(one.number, one.params) for one in after.versions.all()]
    assert said == [(2, {"lr": 0.001, "epochs": 3.0}), (1, {"lr": 0.005})]
    assert (same.number, after.number, after.params) == (1, 2, said[0][1])


def test_set_refuses_another_preset_a_taken_name_and_a_wrong_visibility(gentle, alice):
    parameter_sets.save(user=alice, name="other", preset="detect", params={})

    with pytest.raises(DomainError) as refused:
        parameter_sets.save(user=alice, name="other", preset="classify", params={}, existing=gentle, visibility="all")

    assert {type(one) for one in refused.value.every} == {NameTaken, Invalid}
    assert {one.blamed for one in refused.value.every} == {"name", "preset", "visibility"}
    assert ParameterSet.objects.get(pk=gentle.pk).number == 1


def test_set_of_a_group_is_used_but_not_changed_by_its_people(gentle, alice, bob, anna, api, machine):
    group = UserGroup.objects.create(name="cells")
    group.users.add(alice, bob)
    parameter_sets.save(
        user=alice, name="gentle", preset="detect", params={"lr": 0.005}, visibility="group", existing=gentle
    )
    mine = factory.version(bob, "bobs")
    api.force_authenticate(bob)

    made = api.post("/api/v1/training/jobs/", {"version": mine.pk, "parameter_set": gentle.pk}, format="json")
    body = {"name": "gentle", "preset": "detect", "params": {"lr": 0.5}}
    refused = api.put(f"{ROUTE}{gentle.pk}/", body, format="json")
    api.force_authenticate(anna)

    assert (made.status_code, made.json()["params"]["lr"]) == (201, 0.005)
    assert made.json()["parameter_set"] == {"id": gentle.pk, "number": 1, "name": "gentle v1"}
    assert refused.status_code == 404
    assert api.get(f"{ROUTE}{gentle.pk}/").status_code in (403, 404)


def test_set_shared_with_one_person_for_managing_is_changed_by_them(gentle, bob, api):
    sharing.set_level(gentle, bob, sharing.MANAGE)
    api.force_authenticate(bob)

    body = {"name": "gentle", "preset": "detect", "params": {"lr": 0.5}}
    changed = api.put(f"{ROUTE}{gentle.pk}/", body, format="json").json()
    said = api.get(f"{ROUTE}{gentle.pk}/versions/").json()

    assert (changed["version"], changed["owner"]) == (2, "alice")
    assert [(one["number"], one["made_by"]) for one in said] == [(2, "bob"), (1, "alice")]


def test_training_of_an_older_version_says_so_after_the_set_was_changed_and_deleted(
    gentle, alice, api, as_alice, machine, cells
):
    _changed(gentle, alice, lr=0.001)
    body = {"version": cells.pk, "parameter_set": gentle.pk, "parameter_set_version": 1, "params": {"epochs": 2.0}}
    training = TrainingJob.objects.get(pk=api.post("/api/v1/training/jobs/", body, format="json").json()["id"])
    wrong = api.post("/api/v1/training/jobs/", body | {"parameter_set_version": 9}, format="json")

    page = as_alice.get(f"/training/{training.pk}/")
    assert (training.params["lr"], training.params["epochs"]) == (0.005, 2.0)
    assert page.context["set_use"] == {
        "name": "gentle v1", "version": training.set_use.version, "seen": True, "changed": True,
    }  # fmt: skip
    assert (wrong.status_code, list(wrong.json()["errors"])) == (400, ["parameter_set_version"])

    as_alice.post(f"/training/params/{gentle.pk}/delete/")
    use = as_alice.get(f"/training/{training.pk}/").context["set_use"]
    assert (use["name"], use["version"], use["seen"]) == ("gentle v1", None, False)


def starting_points(client) -> dict[str, list[str]]:
    """Labels of the menu "Start from" by source."""
    groups = client.get("/training/new/").context["starts"]
    return {group.source.name: [point.label for point in group.points] for group in groups}


def test_new_training_offers_the_sets_that_a_user_may_use(gentle, as_alice, as_bob):
    assert starting_points(as_alice)["parameter_sets"] == ["gentle v1"]
    assert "parameter_sets" not in starting_points(as_bob)


def test_new_training_begins_from_a_set_and_remembers_it_through_the_form(gentle, as_alice, machine, cells):
    page = as_alice.get(f"/training/new/?set={gentle.pk}")
    form = page.context["form"]
    filled = {name: form[name].value() for name in form.fields if form[name].value()}
    filled |= {"gpus_per_node": 0, "processes": 0}
    sent = as_alice.post("/training/new/", filled | {"name": "a", "version": cells.pk})

    assert sent.status_code == 302, sent.context["form"].errors
    assert "Started from gentle v1." in page.content.decode()
    assert (form["detect__lr"].value(), form["detect__epochs"].value()) == (0.005, 0.0)
    assert TrainingJob.objects.get().set_use.name == "gentle v1"
    clone = as_alice.get(f"/training/new/?clone={TrainingJob.objects.get().pk}")
    assert clone.context["begun_from"] == gentle.versions.get()


def test_form_of_a_training_can_be_kept_as_a_set(as_alice, machine):
    typed = {"begin": "form", "preset": "detect", "detect__lr": "0.02", "detect__amp": "on", "detect__epochs": "much"}

    form = as_alice.post("/training/params/new/", typed).context["form"]

    assert (form.is_bound, form["detect__lr"].value(), form["detect__epochs"].value()) == (False, "0.02", "much")
    assert (form["detect__amp"].value(), form["detect__compile"].value()) == (True, False)


def test_set_page_shows_each_version_and_strangers_nothing(gentle, alice, as_alice, as_bob):
    _changed(gentle, alice, lr=0.001)

    newest = as_alice.get(f"/training/params/{gentle.pk}/")
    first = as_alice.get(f"/training/params/{gentle.pk}/?version=1")

    assert [one.value for one in newest.context["differences"]] == [0.001]
    assert [one.value for one in first.context["differences"]] == [0.005]
    assert as_bob.get(f"/training/params/{gentle.pk}/").status_code == 404
    assert as_bob.get(f"/training/new/?set={gentle.pk}").status_code == 404


def test_set_pages_show_the_presets_own_parameters_too(gentle, as_alice):
    listed = as_alice.get("/training/params/")
    found = as_alice.get("/training/params/?q=detection")
    page = as_alice.get(f"/training/params/{gentle.pk}/")

    assert [preset.name for preset in listed.context["presets"]] == list(PRESETS)
    assert 'id="preset-hog_svm"' in listed.content.decode()
    assert {"detect"} <= {preset.name for preset in found.context["presets"]} < set(PRESETS)
    values = {one.name: (one.usual, one.value) for one in page.context["all_values"]}
    assert set(values) == {param.name for param in PRESETS["detect"].parameters}
    assert values["lr"] == (PRESETS["detect"].read({})["lr"], 0.005)
    assert values["epochs"][0] == values["epochs"][1]
    assert 'id="all-values"' in page.content.decode()


def test_set_of_a_preset_that_is_gone_is_shown_and_not_offered(gentle, as_alice, monkeypatch):
    ParameterSet.objects.update(preset="retired")

    page = as_alice.get(f"/training/params/{gentle.pk}/")

    assert b"does not exist in this version" in page.content
    assert as_alice.get(f"/training/new/?set={gentle.pk}").status_code == 404
    assert "parameter_sets" not in starting_points(as_alice)


def test_version_of_a_set_that_it_never_had_is_not_found(gentle):
    with pytest.raises(NotFound, match="gentle has no version 7"):
        parameter_sets.version_of(gentle, 7)


def test_differences_stand_in_the_order_of_the_preset():
    found = parameter_sets.differences(PRESETS["detect"], {"seed": 3, "lr": 0.1, "flip": 0.5})

    assert [(one.name, one.usual, one.value) for one in found] == [("lr", 0.003, 0.1), ("seed", 0, 3)]


def test_list_of_sets_needs_few_queries(alice, as_alice, django_assert_max_num_queries):
    for number in range(30):
        parameter_sets.save(user=alice, name=f"s{number}", preset="detect", params={"seed": number})

    with django_assert_max_num_queries(14):
        assert len(as_alice.get("/training/params/").context["page"].rows) >= 20


def test_migration_gives_each_older_set_its_first_version_once(gentle, alice):
    step = import_module("training.migrations.0005_first_versions_of_parameter_sets")
    gentle.versions.all().delete()
    with_one = parameter_sets.save(user=alice, name="other", preset="detect", params={"seed": 1})

    step.first_versions(apps, None)
    step.first_versions(apps, None)

    made = gentle.versions.get()
    assert (made.number, made.params, made.made_by) == (1, {"lr": 0.005}, alice)
    assert with_one.versions.count() == 1


def test_clone_of_a_training_whose_set_is_no_longer_shared_is_submitted_without_it(
    gentle, alice, bob, as_bob, machine, cells
):
    gentle.visibility = "all"
    gentle.save()
    mine = factory.version(bob, "bobs")
    parent = factory.training(bob, data=mine, set_version=gentle.versions.get())
    gentle.visibility = "private"
    gentle.save()

    form = as_bob.get(f"/training/new/?clone={parent.pk}").context["form"]
    filled = {name: form[name].value() for name in form.fields if form[name].value()}
    filled |= {"gpus_per_node": 0, "processes": 0}
    sent = as_bob.post("/training/new/", filled | {"set_version": gentle.versions.get().pk})

    assert form["set_version"].value() is None
    assert sent.status_code == 302, sent.context["form"].errors
    assert not hasattr(TrainingJob.objects.get(job__name=filled["name"]), "set_use")


def test_fold_that_the_platform_names_does_not_count_as_a_change_of_a_set(alice, machine, cells):
    row = parameter_sets.save(user=alice, name="folded", preset="detect", params={"folds": 2})
    begun = {"data": cells, "preset": "detect", "params": {"folds": 2}, "set_version": row.versions.get()}

    first = factory.training(alice, **begun)
    other = factory.training(alice, **begun | {"name": "b", "params": {"folds": 2, "lr": 0.1}})

    assert first.params["fold"] == 1
    assert not parameter_sets.is_changed(first, first.set_use)
    assert parameter_sets.is_changed(other, other.set_use)


def test_switches_do_not_count_as_changes_of_a_set(gentle, alice, machine, cells):
    given = {"data": cells, "params": gentle.params, "set_version": gentle.versions.get(), "extra": "-keep:20"}
    switched = factory.training(alice, **given)
    changed = factory.training(alice, **given | {"name": "b", "params": {"lr": 0.1}})

    assert not parameter_sets.is_changed(switched, switched.set_use)
    assert parameter_sets.is_changed(changed, changed.set_use)


def test_admin_site_shows_sets_and_makes_none(gentle, as_olga):
    assert as_olga.get(f"/admin/training/parameterset/{gentle.pk}/change/").status_code == 200
    assert as_olga.get("/admin/training/parameterset/add/").status_code == 403
