"""Saving on top of Another user's image: only while one may use it, and for no more people than see that one."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from accounts.access import sharing
from accounts.models import AuditEntry, UserGroup
from accounts.services import shares
from aiplatform.lib.errors import Invalid
from tests.conftest import signed_in
from tests.factories import work
from workers.images.models import Image, ImageUse, State
from workers.images.services import images, saving
from workers.images.store import paths

pytestmark = pytest.mark.django_db


@pytest.fixture
def alices(alice):
    """Alice's private image, which Bob may use."""
    return Image.objects.create(
        kind="container", owner=alice, name="secret", source="registry", state=State.READY, digest="sha256:0",
        reference="registry.example.org/alice/secret:1",
    )  # fmt: skip


@pytest.fixture
def job(alices, bob, cluster, root, settings):
    """Bob's job in it, which is over and keeps packages."""
    sharing.set_level(alices, bob, sharing.USE)
    return boxed(alices, bob, cluster, settings.NODE)


def boxed(image, owner, cluster, node):
    row = work.job(owner, cluster, state="stopped")
    ImageUse.objects.create(job=row, image=image, name=str(image), boxed=True, node=node)
    (paths.box(row.pk) / "upper").mkdir(parents=True)
    return row


@pytest.mark.parametrize("visibility", ["public", "group"])
def test_shared_private_image_is_saved_for_oneself_alone(job, bob, visibility):
    with pytest.raises(Invalid, match="The image is based on secret of Alice, so its visibility can be") as caught:
        saving.request(job=job, by=bob, name="mine", visibility=visibility)

    assert caught.value.blamed == "visibility"
    assert not Image.objects.filter(name="mine").exists()


def test_what_was_saved_stays_for_oneself_alone(job, bob, anna, cluster, settings):
    made = saving.request(job=job, by=bob, name="mine")
    Image.objects.filter(pk=made.pk).update(state=State.READY)
    made.refresh_from_db()

    with pytest.raises(Invalid, match="saved on top of an image of another user") as edited:
        images.edit(image=made, description="", visibility="public")
    with pytest.raises(Invalid, match="saved on top of an image of another user"):
        shares.share(kind="image", pk=made.pk, level="use", by=bob, person=anna.username)
    page = signed_in(bob).post(f"/images/{made.pk}/edit/", {"description": "", "visibility": "public"})
    twice = boxed(made, bob, cluster, settings.NODE)
    with pytest.raises(Invalid, match="at most “Private”"):
        saving.request(job=twice, by=bob, name="twice", visibility="public")

    assert edited.value.blamed == "visibility"
    assert (page.status_code, Image.objects.get(pk=made.pk).visibility) == (422, "private")
    assert "another user" in page.content.decode()


def test_group_of_the_owner_counts_where_all_ones_own_are_theirs(job, alices, alice, bob):
    Image.objects.filter(pk=alices.pk).update(visibility="group")
    lab, other = (UserGroup.objects.create(name=name) for name in ("Lab", "Other"))
    lab.users.add(alice, bob)
    assert saving.request(job=job, by=bob, name="mine", visibility="group").widest == "group"
    other.users.add(bob)

    with pytest.raises(Invalid):
        saving.request(job=job, by=bob, name="more", visibility="group")


def test_public_and_own_images_are_saved_for_whom_one_likes(job, alices, alice, bob, cluster, settings):
    Image.objects.filter(pk=alices.pk).update(visibility="public")
    own = boxed(alices, alice, cluster, settings.NODE)

    public = saving.request(job=job, by=bob, name="mine", visibility="public")
    Image.objects.filter(pk=alices.pk).update(visibility="private")
    alices_own = saving.request(job=own, by=alice, name="own", visibility="public")

    assert (public.widest, alices_own.widest) == ("public", "public")


def test_image_that_is_no_longer_shared_is_not_saved_on_top_of(job, alices, bob):
    sharing.set_level(alices, bob, None)

    with pytest.raises(saving.CannotSave, match=r"The base image secret of Alice is not shared with you any more."):
        saving.request(job=job, by=bob, name="mine")

    assert "not shared with you any more" in signed_in(bob).get(f"/images/save/{job.pk}/").content.decode()


def test_audit_and_page_say_whose_image_it_is(job, alices, bob):
    page = signed_in(bob).get(f"/images/save/{job.pk}/").content.decode()
    saving.request(job=job, by=bob, name="mine")

    assert "of Alice" in page
    facts = AuditEntry.objects.filter(verb="image_saved").get().facts
    assert (facts["below"], facts["of"]) == ("secret", "alice")


def api_as(person) -> APIClient:
    client = APIClient()
    client.force_authenticate(person)
    return client


def test_name_of_the_image_below_is_for_who_sees_that_one(job, alices, bob, alice):
    made = saving.request(job=job, by=bob, name="mine")
    Image.objects.filter(pk=made.pk).update(state=State.READY, visibility="public")

    seen = {}
    for name, person in (("alice", alice), ("bob", bob)):
        seen[name] = alices.reference in signed_in(person).get(f"/images/{made.pk}/").content.decode()
    sharing.set_level(alices, bob, None)
    seen["bob later"] = alices.reference in signed_in(bob).get(f"/images/{made.pk}/").content.decode()
    told = [row for row in api_as(bob).get("/api/v1/images/").json()["results"] if row["id"] == made.pk]

    assert seen == {"alice": True, "bob": True, "bob later": False}
    assert "base" not in told[0]["facts"]
    assert "base" in api_as(alice).get(f"/api/v1/images/{made.pk}/").json()["facts"]
