"""Pages and API before the cast: Alice owns, Anna is a member, Bob is a stranger."""

import pytest
from django.test import Client

from annotation.models import AnnotationProject, AnnotationSet, Export, ImageTask, Shape
from annotation.orders import PROJECTS
from annotation.services import exports, projects, sets, task_creation
from tests.factories import annotation as make
from tests.factories import datasets as data
from tests.factories import work as machines


@pytest.fixture
def work(alice, anna):
    made = make.annotation_set(alice)
    projects.add_member(made.project, username="anna", by=alice)
    return made


def pages(work) -> dict[str, str]:
    task = work.tasks.get(number=1)
    project = f"/annotation/projects/{work.project_id}/"
    return {
        "project": project,
        "grid": f"{project}datasets/{work.pk}/",
        "annotate": f"{project}tasks/{task.pk}/",
        "image": f"{project}tasks/{task.pk}/image/",
        "thumbnail": f"{project}tasks/{task.pk}/thumbnail/",
        "edit": f"{project}edit/",
        "new set": f"{project}datasets/new/",
        "edit set": f"{project}datasets/{work.pk}/edit/",
        "classes": f"{project}datasets/{work.pk}/classes/",
    }


SEEN = ["project", "grid", "annotate", "image", "thumbnail"]
OWNED = ["edit", "new set", "edit set", "classes"]


def test_annotation_pages_all_open_for_the_owner(as_alice, work):
    found = {name: as_alice.get(url).status_code for name, url in pages(work).items()}

    assert found == dict.fromkeys(SEEN + OWNED, 200)
    assert as_alice.get("/annotation/").status_code == 200
    assert as_alice.get("/annotation/projects/new/").status_code == 200


def test_project_page_sums_the_progress_of_its_datasets(as_alice, work):
    other = make.annotation_set(work.project.owner, of=work.project, name="other")
    ImageTask.objects.filter(set=work, number=1).update(state=ImageTask.State.SUBMITTED)

    shown = as_alice.get(pages(work)["project"]).context["total"]

    assert shown == {"done": 1, "total": work.tasks.count() + other.tasks.count()}


def test_annotation_pages_let_a_member_annotate_and_change_nothing(as_anna, work):
    found = {name: as_anna.get(url).status_code for name, url in pages(work).items()}

    assert found == dict.fromkeys(SEEN, 200) | dict.fromkeys(OWNED, 403)
    assert as_anna.get("/annotation/projects/new/").status_code == 403


def test_annotation_pages_show_a_stranger_nothing(as_bob, work):
    assert {as_bob.get(url).status_code for url in pages(work).values()} == {404}
    assert "Blood" not in as_bob.get("/annotation/").content.decode()


def test_annotation_pages_lead_to_sign_in_without_a_session(work):
    for url in pages(work).values():
        answer = Client().get(url)
        assert (answer.status_code, answer.headers["Location"].split("?")[0]) == (302, "/login/")


def test_annotation_pages_show_an_annotator_only_their_buttons(as_anna, work):
    for name in SEEN[:3]:
        text = as_anna.get(pages(work)[name]).content.decode()
        for forbidden in ["/new/", "/edit/", "/delete/", "/convert/", "/classes/", "delete_dialog", "data-dialog-open"]:
            assert forbidden not in text, (name, forbidden)
    assert "/new/" not in as_anna.get("/annotation/").content.decode()


def test_annotation_project_answers_404_for_another_projects_things(as_bob, bob, work):
    mine = make.project(bob, "Bobs")
    theirs = work.tasks.get(number=1).pk

    for url in [
        f"/annotation/projects/{mine.pk}/tasks/{theirs}/",
        f"/annotation/projects/{mine.pk}/tasks/{theirs}/image/",
        f"/annotation/projects/{mine.pk}/datasets/{work.pk}/",
        f"/api/v1/annotation/projects/{mine.pk}/tasks/{theirs}/",
        f"/api/v1/annotation/projects/{mine.pk}/tasks/{theirs}/shapes/",
        f"/api/v1/annotation/projects/{mine.pk}/datasets/{work.pk}/",
        f"/api/v1/annotation/projects/{mine.pk}/datasets/{work.pk}/labels/{work.labels.first().pk}/",
    ]:
        assert as_bob.get(url).status_code == 404, url
    assert (
        as_bob.post(f"/annotation/projects/{mine.pk}/datasets/{work.pk}/convert/", {"target": "coco"}).status_code
        == 404
    )


def test_annotation_set_that_is_public_opens_no_private_sets(as_bob, work, alice):
    public = make.annotation_set(alice, of=work.project, name="open", visibility="public")

    assert as_bob.get(pages(public)["annotate"]).status_code == 200
    assert as_bob.get(pages(work)["annotate"]).status_code == 404
    assert "smears" not in as_bob.get(pages(public)["project"]).content.decode()


def test_annotation_project_form_makes_a_project_by_its_rules(as_alice):
    refused = as_alice.post("/annotation/projects/new/", {"name": "x" * 101, "intro": "y" * 501})
    made = as_alice.post("/annotation/projects/new/", {"name": "Blood smears, day 1", "intro": ""})
    twice = as_alice.post("/annotation/projects/new/", {"name": "Blood smears, day 1", "intro": "Once more"})

    assert set(refused.context["form"].errors) == {"name", "intro"}
    assert refused.status_code == twice.status_code == 422
    assert made.status_code == 302
    assert "name" in twice.context["form"].errors


def test_annotation_set_form_offers_only_datasets_one_may_use(as_alice, alice, bob):
    project = make.project(alice)
    plain = data.version(data.dataset(alice, "plain"), task="none")
    done = data.version(data.dataset(bob, "done"), task="none")
    form = {
        "name": "smears", "visibility": "private", "kind": "image",
        "labels-TOTAL_FORMS": "2", "labels-INITIAL_FORMS": "0",
        "labels-0-supercategory": "", "labels-0-name": "RBC", "labels-0-shape": "bbox",
        "labels-1-supercategory": "", "labels-1-name": "", "labels-1-shape": "polygon",
    }  # fmt: skip

    refused = as_alice.post(f"/annotation/projects/{project.pk}/datasets/new/", form | {"source": done.pk})
    made = as_alice.post(f"/annotation/projects/{project.pk}/datasets/new/", form | {"source": plain.pk})

    assert "source" in refused.context["form"].errors
    row = AnnotationSet.objects.get()
    assert made.headers["Location"] == f"/annotation/projects/{project.pk}/datasets/{row.pk}/"
    assert [(label.coco_id, label.name, label.shape) for label in row.labels.all()] == [(1, "RBC", "bbox")]
    assert row.tasks.count() == 3


def test_annotation_set_keeps_its_dataset_from_being_deleted(work):
    from datasets.services import usage

    assert usage.users_of(work.source) == ["annotation project Blood"]


def test_annotation_set_page_adds_changes_and_removes_classes(as_alice, work, alice):
    classes = pages(work)["classes"]
    as_alice.post(classes, {"supercategory": "animal", "name": "dog", "shape": "polygon"})
    twice = as_alice.post(classes, {"supercategory": "animal", "name": "dog", "shape": "polygon"})
    dog = work.labels.get(name="dog")
    make.draw(work.tasks.select_related("asset").get(number=1), alice)

    as_alice.post(f"{classes}{dog.pk}/", {"supercategory": "pet", "name": "Dog", "shape": "bbox", "colour": "#112233"})
    as_alice.post(f"{classes}{work.labels.get(name='cat').pk}/remove/")
    as_alice.post(f"{classes}{work.labels.get(name='box').pk}/remove/")

    assert twice.status_code == 422
    kept = list(work.labels.filter(retired=False).values_list("coco_id", "name", "supercategory"))
    assert kept == [(1, "cat", "animal"), (3, "Dog", "pet")]


def test_annotation_project_page_adds_and_removes_people(as_alice, work, bob):
    project = pages(work)["project"]

    assert as_alice.post(f"{project}members/", {"username": "bob"}).status_code == 302
    assert as_alice.post(f"{project}members/", {"username": "nobody"}).status_code == 422
    assert AnnotationProject.objects.visible_to(bob).count() == 1
    as_alice.post(f"{project}members/{bob.pk}/remove/")
    assert AnnotationProject.objects.visible_to(bob).count() == 0


def test_annotation_project_deletion_needs_the_name_and_frees_datasets(as_alice, work, alice):
    project = pages(work)["project"]
    make.draw(work.tasks.select_related("asset").get(number=1), alice)

    as_alice.post(f"{project}delete/", {"confirm": "blood"})
    assert AnnotationProject.objects.count() == 1
    as_alice.post(f"{project}delete/", {"confirm": "Blood"})

    assert AnnotationProject.objects.count() == Shape.objects.count() == 0
    work.source.refresh_from_db()


def test_annotation_grid_pages_by_twenty_and_filters_by_state(as_alice, alice):
    work = make.annotation_set(alice, images=45)
    grid = pages(work)["grid"]
    ImageTask.objects.filter(set=work, number__in=[3, 30]).update(state="submitted")

    first = as_alice.get(grid).context["page"]
    second = as_alice.get(f"{grid}?start={first.following}").context["page"]
    done = as_alice.get(f"{grid}?state=submitted").context["page"]

    assert [task.number for task in second.rows] == list(range(21, 41))
    assert (second.first, second.last, second.total, second.preceding) == (21, 40, 45, 1)
    assert [task.number for task in done.rows] == [3, 30]
    assert as_alice.get(f"{grid}?start=x&state=y").status_code == 200


def test_annotation_project_list_sorts_by_every_head_and_finds_by_name(as_alice, alice):
    for name, count in (("b", 2), ("A", 0), ("c", 1)):
        project = make.project(alice, name=name)
        for n in range(count):
            make.annotation_set(alice, of=project, name=f"set{n}")

    def names(query: str) -> list[str]:
        return [row.name for row in as_alice.get(f"/annotation/?{query}").context["page"]]

    assert names("ordering=name") == ["A", "b", "c"]
    assert names("ordering=-sets") == ["b", "c", "A"]
    assert names("ordering=nonsense") == names("") == ["c", "A", "b"]
    assert names("q=B&ordering=name") == ["b"]
    assert all(len(names(f"ordering={word}")) == 3 for word in PROJECTS.words)


def test_annotation_project_head_has_one_primary_act_and_deletes_from_its_menu(as_alice, work):
    html = as_alice.get(pages(work)["project"]).content.decode()
    head = html[html.index('class="page-actions"') : html.index("<section")]
    menu = head[head.index("<details") : head.index("</details>")]
    beside = head.replace(menu, "")

    assert beside.count('class="btn btn-primary"') == beside.count('class="btn') == 1
    assert 'data-dialog-open="delete-project"' in menu
    assert [part in menu for part in ("/edit/", "/share/")] == [True, True]


def test_annotation_lists_cost_the_same_however_long_they_are(as_alice, alice, django_assert_max_num_queries):
    machines.node()
    project = make.project(alice)
    for n in range(4):
        make.annotation_set(alice, of=project, name=f"set{n}")

    with django_assert_max_num_queries(25):
        as_alice.get(f"/annotation/projects/{project.pk}/")
    with django_assert_max_num_queries(25):
        as_alice.get(f"/annotation/projects/{project.pk}/datasets/{project.sets.first().pk}/")


def test_coco_export_is_started_followed_and_fetched_by_the_page(as_alice, as_anna, work, alice):
    project = pages(work)["project"]
    make.draw(work.tasks.select_related("asset").get(number=1), alice)

    as_alice.post(f"{project}datasets/{work.pk}/convert/", {"target": "coco", "make_version": "on"})
    waiting = as_alice.get(f"{project}datasets/{work.pk}/row/").content.decode()
    export = Export.objects.get()
    exports.convert(export.pk)
    done = as_alice.get(f"{project}datasets/{work.pk}/row/").content.decode()
    file = as_alice.get(f"{project}exports/{export.pk}/download/")

    assert "every 2s" in waiting
    assert "disabled" in waiting
    assert "every 2s" not in done
    assert "dataset version" in done
    assert b"".join(file.streaming_content) == export.__class__.objects.get().file.read_bytes()
    assert as_anna.get(f"{project}exports/{export.pk}/download/").status_code == 403


def test_coco_export_on_the_page_of_its_set_leads_on_to_a_training(as_alice, as_anna, work, alice):
    page = f"{pages(work)['project']}datasets/{work.pk}/"
    make.draw(work.tasks.select_related("asset").get(number=1), alice)

    before = as_alice.get(page).content.decode()
    back = as_alice.post(f"{page}convert/", {"target": "coco", "make_version": "on", "back": "set"})
    waiting = as_alice.get(f"{page}conversion/").content.decode()
    exports.convert(Export.objects.get().pk)
    done = as_alice.get(f"{page}conversion/").content.decode()
    polled = as_alice.get(f"{page}conversion/", headers={"HX-Request": "true"})
    to_anna = as_anna.get(page).content.decode()

    assert polled.headers["HX-Refresh"] == "true"  # the buttons of the page depend on it
    version = Export.objects.get().version
    assert f'data-dialog-open="convert-{work.pk}"' in before
    assert back.headers["Location"] == page
    assert "every 2s" in waiting
    assert "every 2s" not in done
    assert f"/training/new/?version={version.pk}" in done
    assert f"/datasets/{version.dataset_id}/v{version.number}/" in done
    assert "annotation/projects/new" not in done
    assert f'data-dialog-open="convert-{work.pk}"' not in to_anna


def test_annotation_set_that_is_large_is_filled_by_a_worker(
    alice, sent, monkeypatch, django_capture_on_commit_callbacks
):
    monkeypatch.setattr(sets, "AT_ONCE", 2)
    monkeypatch.setattr(task_creation, "BATCH", 2)
    with django_capture_on_commit_callbacks(execute=True):
        work = make.annotation_set(alice, images=5)

    assert (work.filled, work.tasks.count()) == (False, 0)
    assert ("annotation.fill", {"set_id": work.pk}) in sent
    task_creation.create_tasks(work.pk)
    task_creation.create_tasks(work.pk)
    work.refresh_from_db()
    assert (work.filled, list(work.tasks.values_list("number", flat=True))) == (True, [1, 2, 3, 4, 5])
