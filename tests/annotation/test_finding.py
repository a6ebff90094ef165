"""Finding what to work on, whom to work with, and which images: home, people, the images of a dataset."""

import pytest

from annotation.models import ImageTask, ProjectMember
from annotation.services import projects, review, todo, work
from tests.conftest import signed_in
from tests.factories import annotation as make
from tests.factories import people
from tests.factories import work as machines


@pytest.fixture
def smears(alice, anna):
    made = make.annotation_set(alice, images=4)
    projects.add_member(made.project, username="anna", by=alice)
    return made


def task(smears, number: int) -> ImageTask:
    return smears.tasks.select_related("asset").get(number=number)


# --- what to go on with


def test_todo_begins_with_what_was_sent_back_then_with_what_was_begun(smears, alice, anna):
    begun = make.annotation_set(alice, of=smears.project, name="begun")
    fresh = make.annotation_set(alice, of=smears.project, name="fresh")
    done = make.annotation_set(alice, of=smears.project, name="done", images=1)
    make.draw(task(begun, 2), anna)
    make.draw(task(smears, 3), anna)
    work.submit(task=task(smears, 3), by=anna)
    review.judge(task=task(smears, 3), by=alice, verdict="rejected", comment="One is missing")
    work.submit(task=task(done, 1), by=anna, empty=True)

    rows = todo.for_user(anna)

    assert [(row.set, row.image.number, row.sent_back, row.begun) for row in rows] == [
        (smears, 3, 1, False), (begun, 2, 0, True), (fresh, 1, 0, False),
    ]  # fmt: skip


def test_todo_of_an_operator_is_their_own_and_a_strangers_is_empty(smears, olga, bob):
    assert todo.for_user(olga) == todo.for_user(bob) == []

    make.draw(task(smears, 1), olga)

    assert [row.set for row in todo.for_user(olga)] == [smears]


def test_home_of_an_annotator_leads_to_the_image_to_go_on_with(smears, anna):
    make.draw(task(smears, 3), anna)
    there = f'href="/annotation/projects/{smears.project_id}/tasks/{task(smears, 3).pk}/"'

    for page in ("/", "/annotation/"):
        text = signed_in(anna).get(page).content.decode()
        assert there in text
        assert "Continue at image 3" in text
    assert "Continue annotating" not in signed_in(anna).get("/annotation/?q=Blood").content.decode()


def test_home_costs_the_same_however_many_datasets_there_are(smears, alice, anna, django_assert_max_num_queries):
    for number in range(8):
        make.annotation_set(alice, of=smears.project, name=f"more {number}", images=1)

    with django_assert_max_num_queries(10):
        assert len(todo.for_user(anna)) == todo.SHOWN


# --- people


def test_project_adds_several_people_at_once(as_alice, smears, bob):
    people.user("zoe")
    url = f"/annotation/projects/{smears.project_id}/members/"

    page = as_alice.get(f"/annotation/projects/{smears.project_id}/").content.decode()
    added = as_alice.post(url, {"username": "bob, zoe", "role": "reviewer"})

    assert 'data-people="/people/find/"' in page
    assert added.status_code == 302
    roles = ProjectMember.objects.filter(project=smears.project).values_list("user__username", "role")
    assert dict(roles) == {"anna": "annotator", "bob": "reviewer", "zoe": "reviewer"}


def test_project_adds_nobody_where_one_cannot_join_and_says_all_reasons(as_alice, smears, bob):
    url = f"/annotation/projects/{smears.project_id}/members/"

    refused = as_alice.post(url, {"username": "bob, anna, alice", "role": "manager"})
    none = as_alice.post(url, {"username": "", "role": "annotator"})

    said = refused.context["member_form"].errors["username"][0]
    assert refused.status_code == none.status_code == 422
    assert "anna: The role of Anna does not permit managing projects." in said
    assert "alice: This is the owner" in said
    assert "bob, anna, alice</textarea>" in refused.content.decode()  # what was typed is not lost
    assert dict(ProjectMember.objects.values_list("user__username", "role")) == {"anna": "annotator"}


# --- images of a dataset


def numbers(answer) -> list[int]:
    return [row.number for row in answer.context["page"].rows]


def test_images_are_narrowed_down_by_class_and_by_objects(as_alice, smears, alice):
    url = f"/annotation/projects/{smears.project_id}/datasets/{smears.pk}/"
    cat, box = smears.labels.get(name="cat"), smears.labels.get(name="box")
    corners = [[1.0, 1.0, 9.0, 1.0, 9.0, 9.0, 1.0, 9.0]]
    make.draw(task(smears, 1), alice)
    make.apply(task(smears, 3), make.put(task(smears, 3), kind="bbox", label=box.pk, rings=corners), by=alice)
    work.submit(task=task(smears, 3), by=alice)

    assert numbers(as_alice.get(url, {"objects": "with"})) == [1, 3]
    assert numbers(as_alice.get(url, {"objects": "without"})) == [2, 4]
    assert numbers(as_alice.get(url, {"label": cat.pk})) == [1]
    assert numbers(as_alice.get(url, {"label": box.pk, "state": "submitted"})) == [3]
    assert numbers(as_alice.get(url, {"label": box.pk, "state": "new"})) == []
    assert numbers(as_alice.get(url, {"label": "x", "objects": "x"})) == [1, 2, 3, 4]
    kept = as_alice.get(url, {"label": box.pk}).content.decode()
    assert f'href="?label={box.pk}&amp;state=submitted"' in kept  # tabs keep the class


def test_images_show_their_shapes_and_who_works_on_them(as_alice, smears, anna):
    make.draw(task(smears, 2), anna)
    url = f"/annotation/projects/{smears.project_id}/datasets/{smears.pk}/"

    page = as_alice.get(url).content.decode()

    tiles = page.split('<li class="tile">')[1:]
    assert [tile.count("<path d=") for tile in tiles] == [0, 1, 0, 0]
    assert 'd="M1,1 11,1 11,11Z" stroke="#4353d6"' in tiles[1]
    assert "Anna" in tiles[1]
    assert "Anna" not in tiles[0]


def test_tiles_show_the_state_that_the_annotator_and_the_api_show(as_alice, api, smears, anna):
    make.draw(task(smears, 2), anna)
    make.draw(task(smears, 3), anna)
    work.submit(task=task(smears, 3), by=anna)
    work.submit(task=task(smears, 4), by=anna, empty=True)

    page = as_alice.get(f"/annotation/projects/{smears.project_id}/datasets/{smears.pk}/").content.decode()
    rows = api.get(f"/api/v1/annotation/projects/{smears.project_id}/tasks/").json()["results"]

    tiles = page.split('<li class="tile">')[1:]
    shown = ["New", "In progress", "Submitted", "Reviewed, empty"]
    assert [word in tile for tile, word in zip(tiles, shown, strict=True)] == [True] * 4
    assert ["1 object" in tile for tile in tiles] == [False, True, True, False]
    assert [row["state"] for row in rows] == ["new", "in_progress", "submitted", "submitted"]


def test_images_cost_the_same_with_many_shapes(as_alice, smears, alice, django_assert_max_num_queries):
    url = f"/annotation/projects/{smears.project_id}/datasets/{smears.pk}/"
    make.draw(task(smears, 1), alice, 250)
    make.draw(task(smears, 2), alice, 3)
    machines.node()
    as_alice.get(url)

    with django_assert_max_num_queries(24):
        page = as_alice.get(url).content.decode()

    tiles = page.split('<li class="tile">')
    assert [tile.count("<path d=") for tile in tiles[1:3]] == [200, 3]  # 200: the most a thumbnail shows


def test_people_field_finds_whom_one_annotates_with_and_no_stranger(as_alice, as_bob, anna, smears):
    """Annotators need no cluster and no group, so a project is what they have in common."""
    found = {client: client.get("/people/find/?q=ann").json()["people"] for client in (as_alice, as_bob)}

    assert [person["username"] for person in found[as_alice]] == ["anna"]
    assert found[as_bob] == []
    assert [one["username"] for one in signed_in(anna).get("/people/find/?q=ali").json()["people"]] == ["alice"]
