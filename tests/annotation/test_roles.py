"""Roles in a project: viewers look, annotators draw, reviewers judge, managers change it."""

import pytest
from rest_framework.test import APIClient

from accounts.access import sharing
from accounts.models import UserGroup
from aiplatform.lib.errors import Invalid, NotAllowed
from annotation.models import AnnotationProject, ImageTask, ProjectMember, Review, Shape
from annotation.services import exports, projects, review, work
from tests.factories import annotation as make
from tests.factories import people

pytestmark = pytest.mark.postgres
BASE = "/api/v1/annotation/projects/"
ROLES = ["viewer", "annotator", "reviewer", "manager"]


def client(user) -> APIClient:
    made = APIClient()
    made.force_authenticate(user)
    return made


@pytest.fixture
def task(alice):
    return make.first_task(alice)


@pytest.fixture
def submitted(task, alice):
    make.draw(task, alice)
    return work.submit(task=task, by=alice)


def lab(user) -> UserGroup:
    made = UserGroup.objects.create(name="lab", description="All of us")
    made.users.add(user)
    return made


def be(task, user, role) -> None:
    projects.add_member(task.set.project, username=user.username, role=role, by=task.set.project.owner)


def url(task, act: str) -> str:
    return f"{BASE}{task.set.project_id}/tasks/{task.pk}/{act}/"


# --- the ladder


@pytest.mark.parametrize("way", ["member", "person", "group"])
@pytest.mark.parametrize("role", ROLES)
def test_project_role_holds_those_before_it_however_it_was_given(task, bob, role, way):
    level = dict(zip(ROLES, [sharing.VIEW, sharing.ANNOTATE, sharing.REVIEW, sharing.MANAGE], strict=True))[role]
    if way == "member":
        be(task, bob, role)
    elif way == "person":
        sharing.set_level(task.set.project, bob, level)
    else:
        sharing.set_level(task.set.project, lab(bob), level)

    tasks = ImageTask.objects
    kept = [tasks.visible_to(bob), tasks.annotatable_by(bob), tasks.reviewable_by(bob), tasks.editable_by(bob)]
    found = [rows.exists() for rows in kept]

    assert found == [place <= ROLES.index(role) for place in range(4)]
    assert AnnotationProject.objects.editable_by(bob).exists() == (role == "manager")


def test_project_members_from_before_roles_existed_annotate(task, alice, bob):
    ProjectMember.objects.create(project=task.set.project, user=bob)

    assert review.draws(bob, task)
    assert not review.reviews(bob, task)


def test_project_public_set_lets_everyone_draw_and_nobody_else_review(alice, bob):
    task = make.first_task(alice, visibility="public")

    assert review.draws(bob, task)
    assert not review.reviews(bob, task)
    assert not AnnotationProject.objects.editable_by(bob).exists()


def test_project_role_that_the_persons_own_role_forbids_is_refused(task, alice, anna):
    be(task, anna, "reviewer")

    with pytest.raises(Invalid, match=r"does not permit managing projects."):
        be(task, anna, "manager")
    with pytest.raises(Invalid, match=r"does not permit managing projects."):
        projects.change_role(task.set.project, user_id=anna.pk, role="manager")
    with pytest.raises(Invalid, match="owner"):
        be(task, alice, "viewer")
    with pytest.raises(Invalid):
        projects.change_role(task.set.project, user_id=anna.pk, role="king")
    assert task.set.project.memberships.get().role == "reviewer"


# --- viewers


def test_project_viewer_reads_everything_and_writes_nothing(submitted, alice, bob):
    be(submitted, bob, "viewer")
    viewer = client(bob)

    for act in ("image", "shapes", "reviews"):
        assert viewer.get(url(submitted, act)).status_code == 200
    for act, body in [
        ("shapes", {"events": [make.put(submitted)]}),
        ("submit", {"empty": True}),
        ("reviews", {"verdict": "accepted"}),
    ]:
        answer = viewer.post(url(submitted, act), body, format="json")
        assert (answer.status_code, answer.json()["code"]) == (403, "not_allowed"), act
    with pytest.raises(NotAllowed):
        make.apply(submitted, make.put(submitted), by=bob)
    assert Shape.objects.count() == 1


def test_annotator_page_of_a_viewer_has_no_tools(submitted, as_bob, bob):
    page = f"/annotation/projects/{submitted.set.project_id}/tasks/{submitted.pk}/"
    tools = ["box", "polygon", "numbers", "select", "undo", "delete", "submit"]

    be(submitted, bob, "viewer")
    seen = as_bob.get(page).content.decode()
    assert [tool for tool in [*tools, "accept"] if f'data-act="{tool}"' in seen] == []
    assert '"mode": "view"' in seen
    be(submitted, bob, "annotator")
    drawn = as_bob.get(page).content.decode()
    assert [tool for tool in tools if f'data-act="{tool}"' not in drawn] == []
    assert 'data-act="accept"' not in drawn
    be(submitted, bob, "reviewer")
    assert 'data-act="accept"' in as_bob.get(page).content.decode()


def test_project_list_offers_each_person_their_next_step(submitted, as_bob, bob):
    page = f"/annotation/projects/{submitted.set.project_id}/datasets/{submitted.set_id}/"
    found = {}
    for role in ROLES:
        be(submitted, bob, role)
        text = as_bob.get(page).content.decode()
        found[role] = ("Continue" in text, ">Review" in text.replace("</svg>", ">"))

    assert found == {
        "viewer": (False, False), "annotator": (True, False), "reviewer": (True, True), "manager": (True, True),
    }  # fmt: skip


# --- review


def test_review_sends_an_image_back_with_a_comment_and_gets_it_again(submitted, alice, bob):
    be(submitted, bob, "reviewer")
    reviewer, annotator = client(bob), client(alice)

    bare = reviewer.post(url(submitted, "reviews"), {"verdict": "rejected", "comment": "  "}, format="json")
    back = reviewer.post(url(submitted, "reviews"), {"verdict": "rejected", "comment": "One is missing"}, format="json")
    drawn = annotator.post(url(submitted, "shapes"), {"events": [make.put(submitted)]}, format="json")
    still = annotator.get(url(submitted, "shapes")[: -len("shapes/")]).json()
    again = annotator.post(url(submitted, "submit"), {}, format="json").json()
    kept = reviewer.post(url(submitted, "reviews"), {"verdict": "accepted", "rev": again["rev"]}, format="json").json()

    assert bare.status_code == 400
    assert (back.json()["state"], back.json()["remark"]) == ("rejected", "One is missing")
    assert (drawn.status_code, still["state"]) == (200, "rejected")
    assert (again["state"], again["remark"]) == ("submitted", "One is missing")
    assert (kept["state"], kept["remark"]) == ("accepted", "")
    story = annotator.get(url(submitted, "reviews")).json()
    assert [(row["verdict"], row["comment"], row["by"]) for row in story] == [
        ("accepted", "", "bob"),
        ("rejected", "One is missing", "bob"),
    ]


def test_review_judges_only_what_was_submitted_and_only_once(task, submitted, alice):
    second = task.set.tasks.get(number=2)

    with pytest.raises(review.NothingToReview):
        review.judge(task=second, by=alice, verdict="accepted")
    review.judge(task=submitted, by=alice, verdict="accepted")
    with pytest.raises(review.NothingToReview):
        review.judge(task=submitted, by=alice, verdict="accepted")
    review.judge(task=submitted, by=alice, verdict="rejected", comment="Look again")
    assert Review.objects.count() == 2


def test_review_refuses_a_verdict_on_what_changed_meanwhile(submitted, alice):
    submitted.refresh_from_db()
    make.draw(submitted, alice)

    with pytest.raises(review.ImageChanged):
        review.judge(task=submitted, by=alice, verdict="accepted", rev=submitted.rev)
    assert not Review.objects.exists()


def test_review_closes_an_accepted_image_to_annotators_only(submitted, alice, bob, anna):
    be(submitted, anna, "annotator")
    be(submitted, bob, "reviewer")
    before = make.put(submitted)
    make.apply(submitted, before, by=anna)
    review.judge(task=submitted, by=bob, verdict="accepted")

    late = client(anna).post(url(submitted, "shapes"), {"events": [make.put(submitted)]}, format="json")
    lost = client(anna).post(url(submitted, "shapes"), {"events": [before]}, format="json")
    again = client(anna).post(url(submitted, "submit"), {}, format="json")
    mended = client(bob).post(url(submitted, "shapes"), {"events": [make.put(submitted)]}, format="json")

    assert (late.status_code, late.json()["code"]) == (409, "image_accepted")
    assert "reviewer can send it back" in late.json()["detail"]
    assert lost.status_code == 200  # its first answer was lost: it is stored already
    assert (again.status_code, mended.status_code) == (409, 200)
    submitted.refresh_from_db()
    assert submitted.state == "accepted"


def test_progress_counts_and_filters_know_all_five_states(task, alice):
    for state, number in [("submitted", 1), ("rejected", 2), ("accepted", 3)]:
        task.set.tasks.filter(number=number).update(state=state)

    found = work.progress([task.set])[task.set_id]
    here = f"{BASE}{task.set.project_id}/"
    listed = [row["number"] for row in client(alice).get(f"{here}tasks/?state=rejected").json()["results"]]
    told = client(alice).get(f"{here}datasets/{task.set_id}/").json()["progress"]

    assert (found.total, found.done, found.percent) == (3, 2, 66)
    assert listed == [2]
    assert told == {"total": 3, "new": 0, "in_progress": 0, "submitted": 1, "rejected": 1, "accepted": 1}


def test_coco_export_is_the_same_before_and_after_review(submitted, alice, monkeypatch):
    def file() -> str:
        made = exports.start(annotation_set=submitted.set, by=alice, make_version=False)
        exports.convert(made.pk)
        made.refresh_from_db()
        return made.file.read_text()

    monkeypatch.setattr(exports, "_info", lambda export: {"version": "1"})
    before = file()
    review.judge(task=submitted, by=alice, verdict="accepted")

    assert file() == before


# --- people of a project


def test_project_roles_are_given_and_changed_by_whoever_manages(task, alice, bob, as_alice, as_bob):
    members = f"/annotation/projects/{task.set.project_id}/members/"
    carol = people.user("carol")

    as_alice.post(members, {"username": "bob", "role": "viewer"})
    refused = as_bob.post(f"{members}{bob.pk}/role/", {"role": "manager"})
    as_alice.post(f"{members}{bob.pk}/role/", {"role": "manager"})
    as_bob.post(members, {"username": "carol", "role": "reviewer"})
    changed = client(bob).patch(f"{BASE}{task.set.project_id}/members/{carol.pk}/", {"role": "viewer"}, format="json")
    gone = client(bob).patch(f"{BASE}{task.set.project_id}/members/999999/", {"role": "viewer"}, format="json")

    assert refused.status_code == 403
    assert (changed.json()["role"], gone.status_code) == ("viewer", 404)
    told = client(alice).get(f"{BASE}{task.set.project_id}/members/").json()
    assert {row["username"]: row["role"] for row in told} == {"bob": "manager", "carol": "viewer"}


def test_project_manager_who_steps_down_lands_on_the_list(task, bob, as_bob):
    be(task, bob, "manager")

    answer = as_bob.post(f"/annotation/projects/{task.set.project_id}/members/{bob.pk}/role/", {"role": "viewer"})

    assert answer.headers["Location"] == "/annotation/"
