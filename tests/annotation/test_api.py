"""annotation/… of the REST API."""

import json

import pytest
from rest_framework.test import APIClient

from annotation.models import AnnotationProject, Export, Shape
from annotation.services import exports, projects
from tests.conftest import signed_in
from tests.factories import annotation as make
from tests.factories import datasets as data

BASE = "/api/v1/annotation/projects/"


def client(user) -> APIClient:
    made = APIClient()
    made.force_authenticate(user)
    return made


@pytest.fixture
def work(alice, anna):
    made = make.annotation_set(alice)
    projects.add_member(made.project, username="anna", by=alice)
    return made


@pytest.fixture
def task(work):
    return work.tasks.select_related("asset").get(number=1)


def tasks(work) -> str:
    return f"{BASE}{work.project_id}/tasks/"


def test_annotation_api_leads_a_project_from_nothing_to_a_file(api, alice):
    source = data.version(data.dataset(alice, "plain"), task="none")

    project = api.post(BASE, {"name": "Blood", "intro": "Cells under a microscope"}).json()
    here = f"{BASE}{project['id']}/"
    labels = [{"name": "RBC", "supercategory": "cell", "shape": "bbox"}]
    asked = {"name": "smears", "intro": "Three", "source": source.pk, "labels": labels}
    made = api.post(f"{here}datasets/", asked, format="json").json()
    task = api.get(f"{here}tasks/?dataset={made['id']}").json()["results"][0]
    label = api.get(f"{here}datasets/{made['id']}/labels/").json()[0]
    event = {
        "id": "6f1c9a34-0000-4000-8000-000000000001", "shape": "6f1c9a34-0000-4000-8000-000000000002", "op": "put",
        "base": 0, "kind": "bbox", "label": label["id"], "rings": [[1, 1, 9, 1, 9, 9, 1, 9]],
    }  # fmt: skip
    stored = api.post(f"{here}tasks/{task['id']}/shapes/", {"events": [event]}, format="json")
    done = api.post(f"{here}tasks/{task['id']}/submit/", {}, format="json").json()
    started = api.post(f"{here}exports/", {"dataset": made["id"]}, format="json")
    exports.convert(started.json()["id"])
    export = api.get(started.headers["Location"]).json()
    file = api.get(f"{here}exports/{export['id']}/download/")

    assert stored.json()["results"][0]["rev"] == 1
    assert (done["state"], done["shape_count"]) == ("submitted", 1)
    assert (started.status_code, export["state"], export["annotations"]) == (202, "success", 1)
    assert json.loads(b"".join(file.streaming_content))["annotations"][0]["bbox"] == [1, 1, 8, 8]
    assert api.get(f"{here}datasets/{made['id']}/").json()["progress"]["submitted"] == 1


def test_annotation_api_leads_the_way_through_the_images(api, work):
    first, second, third = work.tasks.all()

    assert api.get(f"{tasks(work)}{first.pk}/next/").json()["id"] == second.pk
    assert api.get(f"{tasks(work)}{third.pk}/next/").status_code == 404
    assert api.get(f"{tasks(work)}{first.pk}/previous/").status_code == 404
    assert api.get(f"{tasks(work)}{third.pk}/previous/").json()["id"] == second.pk


def test_annotation_api_names_and_checks_filters(api, work, task, alice):
    make.draw(task, alice)
    cat, box = work.labels.all()

    def found(query):
        return [row["number"] for row in api.get(f"{tasks(work)}?{query}").json()["results"]]

    assert found("state=in_progress") == [1]
    assert found(f"label={cat.pk}") == [1]
    assert found(f"label={box.pk}") == []
    for query in ["state=x", "dataset=x", "label=x", "set__project__owner__password__startswith=a"]:
        assert api.get(f"{tasks(work)}?{query}").status_code == 400, query


def test_annotation_api_answers_a_conflict_with_409_and_both_versions(api, task, anna):
    url = f"{tasks(task.set)}{task.pk}/shapes/"
    drawn = make.put(task)
    api.post(url, {"events": [drawn]}, format="json")
    client(anna).post(url, {"events": [make.put(task, shape=drawn["shape"], base=1)]}, format="json")

    late = api.post(url, {"events": [make.put(task, shape=drawn["shape"], base=1)]}, format="json")

    assert (late.status_code, late.json()["code"]) == (409, "conflict")
    assert late.json()["results"][0]["theirs"]["rev"] == 2
    assert Shape.objects.get().rev == 2


def test_annotation_api_answers_a_bad_edit_with_400_and_names_it(api, task):
    url = f"{tasks(task.set)}{task.pk}/shapes/"
    bad = make.put(task, rings=[[1, 1, 2, 2]])

    answer = api.post(url, {"events": [bad]}, format="json")
    nan = api.generic(
        "POST", url, json.dumps({"events": [make.put(task, rings=[[1, 1, 2, 2, float("nan"), 5]])]}), "application/json"
    )

    assert (answer.status_code, answer.json()["event"]) == (400, bad["id"])
    assert answer.json()["path"] == "events[0].rings[0]"
    assert nan.status_code == 400
    for body in [[], {}, {"events": 1}, {"events": [1]}, "x"]:
        assert api.post(url, body, format="json").status_code == 400
    for form in [{"events": "x"}, {"events[0]id": "x"}, {"events[0]": "x"}]:
        assert api.post(url, form, format="multipart").json()["path"] == "events"


def test_j06_annotation_api_refuses_a_polygon_of_a_million_points_quickly(api, task):
    url = f"{tasks(task.set)}{task.pk}/shapes/"
    huge = make.put(task, rings=[[1.5, 2.5] * 1_000_000])

    answer = api.post(url, {"events": [huge]}, format="json")

    assert answer.status_code == 400
    assert "10,000 points" in answer.json()["detail"]


def test_annotation_api_gives_shapes_and_revisions_of_deleted_ones(api, task):
    url = f"{tasks(task.set)}{task.pk}/shapes/"
    kept, gone = make.put(task), make.put(task)
    api.post(url, {"events": [kept, gone]}, format="json")
    api.post(url, {"events": [gone | {"id": kept["shape"], "op": "delete", "base": 1}]}, format="json")

    answer = api.get(url).json()

    assert [shape["id"] for shape in answer["shapes"]] == [kept["shape"]]
    assert answer["deleted"] == [{"id": gone["shape"], "rev": 2}]
    assert answer["rev"] == 3


def test_annotation_api_lets_members_draw_and_manage_nothing(work, task, anna):
    anna_api = client(anna)
    here = f"{BASE}{work.project_id}/"

    assert (
        anna_api.post(f"{tasks(work)}{task.pk}/shapes/", {"events": [make.put(task)]}, format="json").status_code == 200
    )
    for method, url in [
        ("post", BASE),
        ("patch", here),
        ("delete", here),
        ("post", f"{here}members/"),
        ("post", f"{here}datasets/"),
        ("patch", f"{here}datasets/{work.pk}/"),
        ("delete", f"{here}datasets/{work.pk}/"),
        ("post", f"{here}datasets/{work.pk}/labels/"),
        ("delete", f"{here}datasets/{work.pk}/labels/{work.labels.first().pk}/"),
        ("post", f"{here}exports/"),
    ]:
        assert getattr(anna_api, method)(url, {}, format="json").status_code == 403, (method, url)
    assert AnnotationProject.objects.count() == 1


def test_annotation_api_lets_a_researcher_as_member_manage_nothing(work, alice, bob):
    projects.add_member(work.project, username="bob", by=alice)
    bob_api = client(bob)
    here = f"{BASE}{work.project_id}/"

    assert bob_api.get(here).status_code == 200
    assert bob_api.patch(here, {"name": "mine"}, format="json").status_code == 403
    assert bob_api.post(f"{here}exports/", {"dataset": work.pk}, format="json").status_code == 403
    assert Export.objects.count() == 0


def test_annotation_api_answers_for_a_strangers_things_like_missing_ones(work, task, bob):
    bob_api = client(bob)
    theirs = bob_api.get(f"{tasks(work)}{task.pk}/").json()
    missing = bob_api.get(f"{BASE}{work.project_id}/tasks/999999/").json()

    assert {key: theirs[key] for key in ("status", "code", "detail")} == {
        key: missing[key] for key in ("status", "code", "detail")
    }
    mine = make.project(bob, "Bobs")
    hidden = data.version(data.dataset(work.project.owner, "secret"), task="none")
    asked = {"name": "x", "intro": "y", "source": hidden.pk}
    assert bob_api.post(f"{BASE}{mine.pk}/datasets/", asked, format="json").status_code == 400
    assert (
        bob_api.post(f"{tasks(work)}{task.pk}/shapes/", {"events": [make.put(task)]}, format="json").status_code == 404
    )
    assert Shape.objects.count() == 0


def test_annotation_api_starts_no_export_of_another_project(work, alice):
    mine = make.project(alice, "Second")

    assert client(alice).post(f"{BASE}{mine.pk}/exports/", {"dataset": work.pk}, format="json").status_code == 404


def test_annotation_api_changes_classes_and_people(api, work, bob):
    here = f"{BASE}{work.project_id}/"
    labels = f"{here}datasets/{work.pk}/labels/"

    made = api.post(labels, {"name": "dog", "supercategory": "animal"}, format="json").json()
    changed = api.patch(f"{labels}{made['id']}/", {"colour": "#ABCDEF"}, format="json").json()
    assert (made["coco_id"], changed["colour"], changed["name"]) == (3, "#abcdef", "dog")
    assert api.delete(f"{labels}{made['id']}/").status_code == 204
    assert [label["name"] for label in api.get(labels).json()] == ["cat", "box"]

    assert api.post(f"{here}members/", {"username": "bob"}, format="json").status_code == 201
    assert [member["username"] for member in api.get(f"{here}members/").json()] == ["anna", "bob"]
    assert api.delete(f"{here}members/{bob.pk}/").status_code == 204


def test_annotation_api_serves_the_image_to_those_who_may_see_it(api, work, task, bob):
    url = f"{tasks(work)}{task.pk}/image/"

    answer = api.get(url)
    assert answer.headers["Content-Type"] == "image/png"
    assert answer.content.startswith(b"\x89PNG")
    assert client(bob).get(url).status_code == 404


def test_annotation_keys_are_kept_with_the_person_and_reach_the_annotator(api, alice, task):
    kept = api.patch("/api/v1/me/", {"annotator_keys": {"box": ["Q"]}}, format="json")
    page = signed_in(alice).get(f"/annotation/projects/{task.set.project_id}/tasks/{task.pk}/")

    assert kept.json()["annotator_keys"] == {"box": ["Q"]}
    assert page.context["desk"]["keys"] == {"box": ["Q"]}


@pytest.mark.parametrize(
    "keys",
    [["Q"], {"box": "Q"}, {"box": ["Q"], "polygon": ["Q"]}, {"<b>": ["Q"]}, {"box": ["Q" * 31]}, {"box": [""]}],
    ids=["list", "text", "twice", "odd-act", "long", "empty"],
)
def test_annotation_keys_that_are_odd_are_refused(api, alice, keys):
    answer = api.patch("/api/v1/me/", {"annotator_keys": keys}, format="json")

    alice.refresh_from_db()
    assert answer.status_code == 400
    assert alice.annotator_keys == {}
