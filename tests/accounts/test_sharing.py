"""Things shared with people and groups: what each level opens, and what it does not."""

from __future__ import annotations

import pytest

from accounts.access import sharing
from accounts.access.permissions import USER
from accounts.models import AuditEntry, Role, UserGroup
from accounts.services import roles
from annotation.models import AnnotationProject
from datasets.models import Dataset, DatasetVersion
from inference.registry.models import Model
from tests.factories import annotation as drawn

pytestmark = pytest.mark.postgres


@pytest.fixture
def dataset(alice):
    row = Dataset.objects.create(owner=alice, name="cells", intro="of blood")
    DatasetVersion.objects.create(dataset=row, number=1, state="ready", annotated=True)
    return row


@pytest.fixture
def lab(bob):
    return roles.create_group(name="lab", description="d", roles=[Role.objects.get(name=USER)], members=[bob], by=None)


def share(client, thing, **asked):
    kind = {"dataset": "dataset", "model": "model", "annotationproject": "project"}[thing._meta.model_name]
    return client.put(f"/api/v1/shares/{kind}/{thing.pk}/", asked, "application/json")


def seen(user, thing):
    return type(thing).objects.visible_to(user).filter(pk=thing.pk).exists()


def test_share_levels_open_one_after_another(as_alice, alice, bob, dataset):
    def holds():
        rows, version = Dataset.objects.filter(pk=dataset.pk), DatasetVersion.objects
        return [
            rows.visible_to(bob).exists(),
            version.visible_to(bob).exists(),
            version.usable_by(bob).exists(),
            rows.editable_by(bob).exists(),
        ]

    found = [holds()]
    for level in ("view", "use", "manage", None):
        assert share(as_alice, dataset, person="bob", level=level).status_code == 200
        found.append(holds())

    yes, no = True, False
    assert found == [[no] * 4, [yes, yes, no, no], [yes, yes, yes, no], [yes] * 4, [no] * 4]


def test_share_with_a_group_ends_for_who_leaves_it(as_alice, bob, anna, lab, dataset):
    as_alice.post(f"/share/dataset/{dataset.pk}/", {"group": "", "person": "bob", "level": "view"})
    as_alice.put(f"/api/v1/shares/dataset/{dataset.pk}/", {"person": "bob", "level": None}, "application/json")
    sharing.set_level(dataset, lab, "use")
    assert seen(bob, dataset)
    assert not seen(anna, dataset)

    lab.users.clear()
    assert not seen(bob, dataset)


def test_share_makes_a_thing_visible_to_the_owners_groups(alice, bob, anna, lab, dataset):
    Dataset.objects.filter(pk=dataset.pk).update(visibility="group")
    assert not seen(bob, dataset)  # alice is in no group with bob

    lab.users.add(alice)

    assert seen(bob, dataset)
    assert DatasetVersion.objects.usable_by(bob).exists()
    assert not Dataset.objects.editable_by(bob).exists()
    assert not seen(anna, dataset)


def test_b03_share_for_viewing_allows_no_training(as_alice, as_bob, cluster, dataset):
    share(as_alice, dataset, person="bob", level="view")
    sent = {"name": "t", "preset": "detect", "version": dataset.versions.get().pk, "cluster": cluster.pk}

    refused = as_bob.post("/api/v1/training/jobs/", sent, "application/json")
    missing = as_bob.post("/api/v1/training/jobs/", sent | {"version": 999_999}, "application/json")

    assert as_bob.get(f"/api/v1/datasets/{dataset.pk}/").status_code == 200
    assert refused.status_code == missing.status_code == 400
    assert set(refused.json()["errors"]) == set(missing.json()["errors"]) == {"version"}


def test_c_share_for_use_allows_neither_changing_nor_sharing(as_alice, as_bob, anna, dataset):
    share(as_alice, dataset, person="bob", level="use")

    answers = [
        as_bob.get(f"/share/dataset/{dataset.pk}/"),
        as_bob.post(f"/share/dataset/{dataset.pk}/", {"person": "anna", "level": "view"}),
        share(as_bob, dataset, person="bob", level="manage"),
    ]
    changed = as_bob.patch(f"/api/v1/datasets/{dataset.pk}/", {"intro": "mine"}, "application/json")

    assert [answer.status_code for answer in answers] == [404] * 3
    assert changed.status_code == 403
    assert not seen(anna, dataset)


def test_c_share_gives_no_action_that_no_role_gives(as_alice, as_anna, anna, dataset):
    share(as_alice, dataset, person="anna", level="manage")

    assert as_anna.get(f"/api/v1/datasets/{dataset.pk}/").status_code == 403
    assert as_anna.get(f"/share/dataset/{dataset.pk}/").status_code == 403


def test_share_for_managing_shares_on_and_the_owner_stays(as_alice, as_bob, alice, anna, dataset):
    share(as_alice, dataset, person="bob", level="manage")

    onward = share(as_bob, dataset, person="anna", level="view")
    owner = share(as_bob, dataset, person="alice", level="view")

    assert [(row["person"], row["level"]) for row in onward.json()] == [("anna", "view"), ("bob", "manage")]
    assert owner.status_code == 400
    assert Dataset.objects.editable_by(alice).exists()


def test_b02_share_api_answers_alike_for_a_strangers_thing_and_a_missing_one(as_bob, dataset):
    theirs = as_bob.get(f"/api/v1/shares/dataset/{dataset.pk}/")
    missing = as_bob.get("/api/v1/shares/dataset/999999/")
    nonsense = as_bob.get("/api/v1/shares/planet/1/")

    assert theirs.status_code == missing.status_code == nonsense.status_code == 404
    assert theirs.json()["detail"] == missing.json()["detail"]


def test_share_neither_offers_nor_takes_groups_one_is_not_in(as_alice, lab, dataset):
    answer = share(as_alice, dataset, group=lab.pk, level="view")
    page = as_alice.get(f"/share/dataset/{dataset.pk}/")

    assert answer.status_code == 400
    assert "lab" not in [name for _pk, name in page.context["form"].fields["group"].choices]


def test_share_works_the_same_for_models_and_projects(as_alice, alice, bob):
    model = Model.objects.create(owner=alice, name="net")
    project = AnnotationProject.objects.create(owner=alice, name="cells", intro="0123456789")

    for thing in (model, project):
        assert not seen(bob, thing)
        assert share(as_alice, thing, person="bob", level="view").status_code == 200
        assert seen(bob, thing)
        assert not type(thing).objects.editable_by(bob).exists()
    assert share(as_alice, project, person="bob", level="use").status_code == 400
    assert share(as_alice, project, person="bob", level="manage").status_code == 200
    assert AnnotationProject.objects.editable_by(bob).exists()


def test_share_pages_show_shares_and_take_them_back(as_alice, as_bob, bob, dataset):
    as_alice.post(f"/share/dataset/{dataset.pk}/", {"person": "bob", "level": "use"})
    page = as_alice.get(f"/share/dataset/{dataset.pk}/").content.decode()
    assert "Stop sharing with Bob" in page
    assert f'href="/share/dataset/{dataset.pk}/"' in as_alice.get(f"/datasets/{dataset.pk}/").content.decode()

    as_alice.post(f"/share/dataset/{dataset.pk}/take/", {"person": "bob"})

    assert not seen(bob, dataset)
    assert list(AuditEntry.objects.filter(verb__in=["shared", "unshared"]).values_list("verb", flat=True)) == [
        "unshared",
        "shared",
    ]


def test_share_goes_with_the_thing(as_alice, bob, dataset):
    share(as_alice, dataset, person="bob", level="use")
    number = dataset.pk
    DatasetVersion.objects.all().delete()
    dataset.delete()

    from guardian.models import UserObjectPermission

    assert not UserObjectPermission.objects.filter(object_pk=str(number)).exists()


def test_share_lists_cost_one_query_however_much_is_shared(alice, bob, lab, django_assert_num_queries):
    for n in range(20):
        row = Dataset.objects.create(owner=alice, name=f"d{n}", intro="x")
        sharing.set_level(row, bob if n % 2 else lab, "view")

    bob.actions()  # read once per request

    with django_assert_num_queries(1):
        assert len(Dataset.objects.visible_to(bob)) == 20


def test_share_with_a_deleted_group_is_gone(bob, lab, dataset):
    sharing.set_level(dataset, lab, "manage")
    UserGroup.objects.filter(pk=lab.pk).delete()

    assert not seen(bob, dataset)
    assert sharing.shares_of(dataset) == []


def test_share_for_viewing_a_project_allows_no_drawing(as_alice, as_bob, alice):
    task = drawn.first_task(alice)
    project = task.set.project
    path = f"/api/v1/annotation/projects/{project.pk}/tasks/{task.pk}/"
    answers = {}
    for level in ("view", "annotate"):
        share(as_alice, project, person="bob", level=level)
        seen_ = as_bob.get(f"{path}shapes/").status_code
        answers[level] = (seen_, as_bob.post(f"{path}submit/", {"empty": True}, "application/json").status_code)

    assert answers == {"view": (200, 403), "annotate": (200, 200)}


def test_shares_take_a_group_by_name_or_number(as_alice, alice, bob, lab, dataset):
    lab.users.add(alice)

    by_name = share(as_alice, dataset, group_name="lab", level="view")
    by_number = share(as_alice, dataset, group=lab.pk, level="use")
    taken = share(as_alice, dataset, group_name="lab", level=None)

    assert [by_name.json()[0]["level"], by_number.json()[0]["level"], taken.json()] == ["view", "use", []]
    assert share(as_alice, dataset, group_name="nobody's", level="view").status_code == 400
