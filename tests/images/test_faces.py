"""Images on pages, in the API and at the command line: who sees, uses, changes and deletes them."""

from __future__ import annotations

import pytest
from django.utils.timezone import now
from rest_framework.test import APIClient

from accounts.models import UserGroup
from aiplatform.client.commands import nodes
from aiplatform.lib.wording import message
from aiplatform.templatetags.ui import bytes_
from tests.conftest import signed_in
from tests.factories import work
from workers.core import held_back
from workers.core.models import Job, Node
from workers.images.models import Image, ImageUse, State
from workers.images.services import uses
from workers.images.store import catalog, engines
from workers.images.store import paths as places

pytestmark = pytest.mark.django_db


@pytest.fixture
def machine(db, settings):
    settings.NODE = "node1"
    return work.node(cores=4)


@pytest.fixture
def engine(root, db):
    """A row, and a folder that nobody looks into here."""
    row = engines._engine("ring==1.0", with_platform=True)
    places.engine(row.digest).mkdir(parents=True)
    row.state, row.facts = State.READY, {"python": "3.11.7"}
    row.save()
    return row


@pytest.fixture
def saved(image, alice, engine):
    return Image.objects.create(
        kind="saved", name="torch plus", tag="2", owner=alice, engine=engine, parent=image, state="ready",
        sha256="a" * 64, size_bytes=1000, unpacked_bytes=5000, files=3, left_out=[".ssh"],
    )  # fmt: skip


@pytest.fixture
def boxed(alice, cluster, image, engine, settings):
    settings.NODE = "node1"
    job = work.job(alice, cluster, state="stopped", name="lab")
    ImageUse.objects.create(job=job, image=image, engine=engine, name="mine", boxed=True, node="node1")
    upper = places.box(job.pk) / "upper"
    upper.mkdir(parents=True)
    (upper / "new.py").write_text("x" * 5000)
    (upper / ".netrc").write_text("secret")
    return job


def test_list_shows_own_public_and_the_platforms_images(as_alice, as_bob, saved, machine):
    mine, theirs = as_alice.get("/images/").content.decode(), as_bob.get("/images/").content.decode()

    assert "torch plus:2" in mine
    assert "Saved workspace" in mine
    assert all(f">{name}</a>" in theirs for name in catalog.BUILT_IN)
    assert "torch plus" not in theirs
    Image.objects.filter(pk=saved.pk).update(visibility="public")
    assert "torch plus:2" in as_bob.get("/images/?kind=saved").content.decode()
    assert "jupyter" not in as_bob.get("/images/?kind=saved").content.decode()


def test_list_asks_the_database_as_often_for_many_as_for_few(
    as_alice, saved, image, engine, alice, django_assert_max_num_queries
):
    for number in range(20):
        Image.objects.create(kind="engine", name=f"e{number}", owner=alice, engine=engine)
    as_alice.get("/images/")

    with django_assert_max_num_queries(25):
        as_alice.get("/images/")


def test_page_of_an_image_says_what_it_is_and_who_uses_it(as_alice, as_bob, saved, image, boxed):
    page = as_alice.get(f"/images/{saved.pk}/").content.decode()
    lower = as_alice.get(f"/images/{image.pk}/").content.decode()

    assert "a" * 64 in page
    assert ".ssh" in page
    assert f'href="/images/{image.pk}/"' in page
    assert f"Custom job lab ({boxed.pk}) of Alice" in lower
    assert "image torch plus:2 of Alice" in lower
    assert as_bob.get(f"/images/{saved.pk}/").status_code == 404


def test_page_and_api_refuse_a_build_alike_and_both_build(as_alice, api, machine, root):
    wrong = {"name": "a/b", "requirements": "-r other.txt"}

    page = as_alice.post("/images/new/", wrong | {"visibility": "private"})
    answer = api.post("/api/v1/images/", wrong, format="json")
    made = as_alice.post("/images/new/", {"name": "lab", "requirements": "ring==1.0", "visibility": "private"})
    twin = api.post("/api/v1/images/", {"name": "twin", "requirements": "ring==1.0"}, format="json")

    assert (page.status_code, answer.status_code) == (422, 400)
    assert set(page.context["form"].errors) == set(answer.json()["errors"]) == {"name", "requirements"}
    assert made.url == f"/images/{Image.objects.get(name='lab').pk}/"
    assert (twin.status_code, twin.json()["state"]) == (201, "building")
    assert Image.objects.get(name="lab").engine.with_platform is False  # an empty box of the form
    assert twin.json()["build_job"] != Image.objects.get(name="lab").engine.job_id


def test_saving_shows_size_and_what_is_left_out_before(as_alice, as_bob, boxed):
    page = as_alice.get(f"/images/save/{boxed.pk}/").content.decode()

    assert bytes_(5000) in page
    assert "<li>.netrc</li>" in page
    assert ".git-credentials" in page
    assert as_bob.get(f"/images/save/{boxed.pk}/").status_code == 404


def test_saving_says_beforehand_that_packages_of_the_system_stay_behind(as_alice, boxed):
    usual = as_alice.get(f"/images/save/{boxed.pk}/").content.decode()
    Job.objects.filter(pk=boxed.pk).update(root_inside=True)
    lists = places.box(boxed.pk) / "system/dpkg/info"
    lists.mkdir(parents=True)
    for name in ("tree.list", "libtree1:amd64.list", "tree.md5sums"):
        (lists / name).touch()
    page = as_alice.get(f"/images/save/{boxed.pk}/").content.decode()

    assert "system-left-out" not in usual
    assert "Users of the image install them again." in page
    assert "libtree1 tree" in page
    assert "md5sums" not in page


def test_page_and_api_save_a_box_and_refuse_its_name_twice(
    as_alice, api, boxed, sent, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        page = as_alice.post(f"/images/save/{boxed.pk}/", {"name": "mine", "tag": "2", "visibility": "private"})
    again = api.post("/api/v1/images/save/", {"job": boxed.pk, "name": "mine", "tag": "2"}, format="json")

    row = Image.objects.get(tag="2")
    assert page.url == f"/images/{row.pk}/"
    assert (row.kind, row.state, row.parent.name, row.job) == ("saved", "saving", "mine", boxed)
    assert ("images.save", {"image_id": row.pk}) in sent
    assert (again.status_code, again.json()["code"]) == (409, "name_taken")


def test_api_saves_no_box_of_another_person(bob, boxed, cluster):
    client = APIClient()
    client.force_authenticate(bob)
    answer = client.post("/api/v1/images/save/", {"job": boxed.pk, "name": "theirs"}, format="json")

    assert (answer.status_code, Image.objects.filter(name="theirs").exists()) == (400, False)


def test_shared_image_can_be_used_and_not_changed(as_alice, as_bob, bob, saved):
    assert not Image.objects.usable_by(bob).filter(pk=saved.pk).exists()

    shared = as_alice.put(
        f"/api/v1/shares/image/{saved.pk}/", {"person": "bob", "level": "use"}, content_type="application/json"
    )

    assert shared.status_code == 200
    assert Image.objects.usable_by(bob).filter(pk=saved.pk).exists()
    assert as_bob.get(f"/images/{saved.pk}/").status_code == 200
    assert as_bob.get(f"/images/{saved.pk}/edit/").status_code == 404
    assert as_bob.delete(f"/api/v1/images/{saved.pk}/").status_code == 403
    assert as_bob.get(f"/api/v1/images/{saved.pk}/").json()["owner"] == "alice"


def test_visibility_opens_an_image_to_the_owners_groups(api, alice, bob, saved):
    group = UserGroup.objects.create(name="Lab")
    group.users.add(alice, bob)

    answer = api.patch(f"/api/v1/images/{saved.pk}/", {"visibility": "group"}, format="json")

    assert answer.json()["visibility"] == "group"
    assert Image.objects.usable_by(bob).filter(pk=saved.pk).exists()


def test_image_in_use_is_not_deleted_and_says_by_whom(api, as_alice, image, saved, boxed):
    refused = api.delete(f"/api/v1/images/{image.pk}/")
    page = as_alice.post(f"/images/{image.pk}/delete/", {"confirm": "mine"}, follow=True)

    said = f"mine is still used by Custom job lab ({boxed.pk}) of Alice, image torch plus:2 of Alice."
    assert (refused.status_code, refused.json()["code"], refused.json()["detail"]) == (409, "still_in_use", said)
    assert said in page.content.decode()
    saved.delete()
    ImageUse.objects.update(node="")
    assert as_alice.post(f"/images/{image.pk}/delete/", {"confirm": "nine"}).url == f"/images/{image.pk}/"
    assert as_alice.post(f"/images/{image.pk}/delete/", {"confirm": "mine"}).url == "/images/"
    assert not Image.objects.filter(pk=image.pk).exists()


def test_platforms_images_are_nobodys_to_delete(as_olga, machine, root):
    image = catalog.builtin("jupyter")

    page = as_olga.get(f"/images/{image.pk}/").content.decode()
    assert "Built in" in page
    assert "Not built yet" not in page
    assert as_olga.delete(f"/api/v1/images/{image.pk}/").status_code == 403
    assert as_olga.post(f"/images/{image.pk}/delete/", {"confirm": "jupyter"}).status_code == 404


def test_job_page_shows_the_image_and_offers_to_save_it(as_alice, as_olga, boxed):
    page = as_alice.get(f"/jobs/{boxed.pk}/").content.decode()

    assert f'href="/images/save/{boxed.pk}/"' in page
    assert f'action="/images/forget/{boxed.pk}/"' in page
    assert "stored on node1" in page
    plain = work.job(boxed.owner, boxed.cluster, state="stopped")
    assert "h-image" not in as_alice.get(f"/jobs/{plain.pk}/").content.decode()


def test_own_packages_are_forgotten_by_the_page(as_alice, as_bob, boxed, sent, django_capture_on_commit_callbacks):
    assert as_bob.post(f"/images/forget/{boxed.pk}/").status_code == 404
    with django_capture_on_commit_callbacks(execute=True):
        as_alice.post(f"/images/forget/{boxed.pk}/", {"confirm": "bal"})
        assert ImageUse.objects.get(job=boxed).node == "node1"
        as_alice.post(f"/images/forget/{boxed.pk}/", {"confirm": "lab"})

    assert ImageUse.objects.get(job=boxed).node == ""
    assert ("images.clean", {"job_id": boxed.pk}) in sent


def test_own_packages_are_forgotten_by_the_api(api, as_bob, boxed, sent, django_capture_on_commit_callbacks):
    route = f"/api/v1/images/boxes/{boxed.pk}/"
    assert as_bob.delete(route).status_code == 404
    with django_capture_on_commit_callbacks(execute=True):
        answer = api.delete(route)
    again = api.delete(route)

    assert answer.status_code == 204
    assert ImageUse.objects.get(job=boxed).node == ""
    assert ("images.clean", {"job_id": boxed.pk}) in sent
    assert again.json()["code"] == "no_box"


def test_packages_in_use_are_not_forgotten_by_the_api(api, boxed):
    Job.objects.filter(pk=boxed.pk).update(state="running")

    answer = api.delete(f"/api/v1/images/boxes/{boxed.pk}/")

    assert "Stop the job first:" in answer.json()["detail"]
    assert ImageUse.objects.get(job=boxed).node == "node1"


def test_waiting_job_is_bound_to_the_machine_of_its_packages_until_they_are_forgotten(as_alice, boxed, sent):
    work.node("node2")
    Job.objects.filter(pk=boxed.pk).update(state="queued")
    assert held_back.reasons(now())[boxed.pk].code == "machine_removed"  # no machine is called node1 here
    assert f'action="/images/forget/{boxed.pk}/"' in as_alice.get(f"/jobs/{boxed.pk}/").content.decode()

    as_alice.post(f"/images/forget/{boxed.pk}/", {"confirm": "lab"})

    assert boxed.pk not in held_back.reasons(now())


def test_job_page_says_what_a_restored_job_would_wait_for(as_alice, boxed, machine):
    where = f"/jobs/{boxed.pk}/"
    assert "stores its installed packages" not in as_alice.get(where).content.decode()
    Node.objects.filter(pk=machine.pk).update(state="draining", drain=True)

    assert (
        "Node node1 stores its installed packages and was drained by an operator."
        in as_alice.get(where).content.decode()
    )


def test_machine_says_whose_packages_it_keeps_before_it_is_drained(as_olga, boxed, machine):
    ImageUse.objects.create(
        job=work.job(boxed.owner, boxed.cluster, state="running"), name="x", boxed=True, node=machine.name
    )

    page = as_olga.get(f"/cluster/nodes/{machine.pk}/").content.decode()
    drained = as_olga.post(f"/api/v1/nodes/{machine.pk}/drain/").json()

    assert "Installed packages of jobs are stored on this node (1 running, 0 waiting, 1 stopped)." in page
    assert drained["keeps"] == {"live": 1, "waiting": 0, "over": 1}
    said = nodes._held_back(drained)
    assert said == " Installed packages of jobs are stored there (1 running, 1 stopped): these jobs start nowhere else."
    assert nodes._held_back({"keeps": {"live": 0, "waiting": 0, "over": 0}}) == ""


def test_failed_build_is_tried_again_by_page_and_api(as_alice, api, machine, root, alice):
    image = engines.build(user=alice, name="lab", requirements="ring")
    first = image.engine.job
    Job.objects.filter(pk=first.pk).update(state="failed")
    engines.failed(image.engine, first, message("image.build_failed", job=first.pk))

    shown = as_alice.get(f"/images/{image.pk}/").content.decode()
    as_alice.post(f"/images/{image.pk}/build/")
    same = api.post(f"/api/v1/images/{image.pk}/build/").json()

    assert ", which built the image, failed. See its log." in shown
    assert f'href="/images/new/?like={image.pk}"' in shown
    form = as_alice.get(f"/images/new/?like={image.pk}").context["form"]
    assert [form[name].value() for name in ("name", "tag", "requirements")] == ["lab", "2", "ring"]
    assert same["state"] == "building"
    assert same["build_job"] != first.pk


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_pages_of_images_are_whole_in_both_languages(alice, saved, boxed, language, settings):
    client = signed_in(alice)
    client.cookies[settings.LANGUAGE_COOKIE_NAME] = language
    type(alice).objects.filter(pk=alice.pk).update(language=language)

    paths = ["/images/", "/images/new/", f"/images/{saved.pk}/", f"/images/{saved.pk}/edit/",
             f"/images/save/{boxed.pk}/", "/commands/new/"]  # fmt: skip

    word = {"en": "Image", "zh-hans": "镜像"}[language]
    assert all(word in client.get(path).content.decode() for path in paths)


def test_command_runs_in_an_image_by_form_and_api_and_clones_it(as_alice, api, image, machine):
    form = as_alice.get(f"/commands/new/?image={image.pk}").content.decode()
    answer = api.post("/api/v1/commands/", {"command": "ring", "image": image.pk, "cpus": 1}, format="json")

    assert f'<option value="{image.pk}" selected>' in form
    assert answer.json()["image"] == {"id": image.pk, "name": "mine"}
    clone = as_alice.get(f"/commands/new/?clone={answer.json()['id']}").content.decode()
    assert f'<option value="{image.pk}" selected>' in clone


def test_command_in_an_image_of_another_person_is_refused(as_bob, bob, image, saved, machine):
    client = APIClient()
    client.force_authenticate(bob)
    answer = client.post("/api/v1/commands/", {"command": "ring", "image": image.pk, "cpus": 1}, format="json")

    assert (answer.status_code, set(answer.json()["errors"])) == (400, {"image"})


def test_command_in_an_image_that_was_made_private_is_not_restored(alice, bob, image, cluster):
    Image.objects.filter(pk=image.pk).update(visibility="public")
    job = work.job(bob, cluster, state="stopped")
    uses.attach(job, Image.objects.get(pk=image.pk))
    uses.check_restore(job)
    Image.objects.filter(pk=image.pk).update(visibility="private")

    with pytest.raises(uses.ImageGone, match="owner can no longer access image"):
        uses.check_restore(job)
