"""Container images and credentials on pages, in the API and at the command line."""

from __future__ import annotations

import pytest

from accounts.models import UserGroup
from tests.conftest import signed_in
from tests.fakes.registry import layer
from workers.images.containers import adding, logins, registry_client
from workers.images.models import Image, RegistryLogin, State

pytestmark = [pytest.mark.django_db, pytest.mark.sockets("a registry of the tests")]


@pytest.fixture
def as_alice(alice):
    return signed_in(alice)


@pytest.fixture
def as_bob(bob):
    return signed_in(bob)


def test_credentials_are_kept_tested_and_never_shown(registry, alice, as_alice, as_bob, api):
    registry.users["alice"] = "opensesame"
    given = {"host": registry.host, "username": "alice", "password": "opensesame", "ca": registry.ca}

    made = as_alice.post("/images/credentials/new/", given | {"visibility": "private"}, follow=True)
    row = RegistryLogin.objects.get()
    edit = as_alice.get(f"/images/credentials/{row.pk}/").content.decode()
    told = api.get("/api/v1/registry-logins/").json()["results"][0]

    assert "responds and accepts these credentials." in made.content.decode()
    assert told["works"] is True
    assert "password" not in told
    for text in (made.content.decode(), edit, str(told), row.secret):
        assert "opensesame" not in text
    assert as_bob.get(f"/images/credentials/{row.pk}/").status_code == 404


def test_credentials_that_are_wrong_say_so(registry, as_alice, api):
    registry.users["alice"] = "opensesame"
    given = {"host": registry.host, "username": "alice", "password": "guessed", "ca": registry.ca}

    made = api.post("/api/v1/registry-logins/", given, format="json").json()
    told = api.post(f"/api/v1/registry-logins/{made['id']}/test/").json()

    assert (told["works"], "does not accept these credentials, or they do not permit" in told["message"]) == (
        False,
        True,
    )


def test_page_and_api_refuse_alike_and_all_at_once(as_alice, api, tier4):
    wrong = {"name": "x", "reference": "http://registry.example.org/x", "source": "hub", "policy": "pinned"}

    page = as_alice.post("/images/container/", wrong | {"visibility": "private"})
    answer = api.post("/api/v1/images/container/", wrong, format="json")

    assert page.status_code == 422
    assert "Registries must use HTTPS: write the name without http://." in str(page.context["form"].errors["reference"])
    assert answer.status_code == 400
    assert "Registries must use HTTPS: write the name without http://." in answer.content.decode()


def test_credentials_of_another_person_or_registry_are_refused(registry, login, alice, bob, tier4):
    for user, reference in ((bob, f"{registry.host}/lab/x"), (alice, "registry.example.org/x")):
        with pytest.raises(Exception, match=r"[Cc]redentials"):
            adding.add(user=user, name="x", reference=reference, source="registry", login=login)


def test_credentials_shared_with_a_group_are_usable_by_its_people_alone(login, alice, bob, anna, olga):
    group = UserGroup.objects.create(name="Lab")
    group.users.add(alice, bob)
    logins.change(login=login, by=alice, ca=login.ca, visibility="group")

    usable = [RegistryLogin.objects.usable_by(user).exists() for user in (alice, bob, anna, olga)]

    assert usable == [True, True, False, False]


def test_changed_credentials_keep_the_password_where_none_is_given(registry, login, alice):
    logins.change(login=login, by=alice, ca=registry.ca, visibility="private")

    assert logins.test(login)


def test_credentials_are_deleted_whoever_uses_them_and_their_images_say_so(registry, added, login, as_alice):
    registry.put("lab/torch", "2", [layer({"a": b"b"})])
    image = added()

    as_alice.post(f"/images/credentials/{login.pk}/delete/", {"confirm": str(login)})
    image.refresh_from_db()

    assert not RegistryLogin.objects.exists()
    assert (image.state, image.login) == (State.FAILED, None)
    assert image.why.startswith(f"The credentials for {registry.host} of this image were deleted.")


def test_look_that_goes_on_does_not_revive_an_image_without_its_credentials(added, login, alice, monkeypatch):
    image = added("lab/none:1")
    adding.look_up_again(image)
    found = {"digest": "sha256:0", "size_bytes": 1, "facts": {}}
    monkeypatch.setattr(adding, "_remote", lambda _image: (logins.delete(login=login, by=alice), found)[1])

    adding.run(image.pk)
    image.refresh_from_db()

    assert image.state == State.FAILED


def test_credentials_that_are_no_longer_shared_fetch_nothing_more(registry, added, login, alice, bob, placed, tier4):
    """Neither a look, nor a copy, nor the newest of a tag."""
    registry.put("lab/torch", "2", [layer({"a": b"b"})])
    group = UserGroup.objects.create(name="Lab")
    group.users.add(alice, bob)
    logins.change(login=login, by=alice, ca=login.ca, visibility="group")
    bobs = added(user=bob)
    assert bobs.state == State.READY
    logins.change(login=login, by=alice, ca=login.ca, visibility="private")
    before = len(registry.seen)

    for act in (registry_client.look_up, registry_client.for_image):
        with pytest.raises(registry_client.RegistryRefused, match="not shared with its owner any more"):
            act(Image.objects.get(pk=bobs.pk))

    assert len(registry.seen) == before
    assert registry_client.look_up(added("lab/torch:2", tag="own")).digest == bobs.digest


def test_page_of_a_container_image_says_where_it_comes_from(registry, added, as_alice, as_bob):
    digest = registry.put("lab/torch", "2", [layer({"a": b"b"})])
    image = added()

    page = as_alice.get(f"/images/{image.pk}/").content.decode()

    assert digest in page
    assert f"{registry.host}/lab/torch:2" in page
    assert f'href="/environments/new/?image={image.pk}"' in page
    assert "torch" in as_alice.get("/images/?kind=container").content.decode()
    assert as_bob.get(f"/images/{image.pk}/").status_code == 404
    as_alice.post(f"/images/{image.pk}/look/")
    image.refresh_from_db()
    assert image.state == "looking"


@pytest.mark.parametrize(
    ("reference", "local", "source"),
    [
        ("ubuntu", False, "hub"), ("docker.io/lab/x", False, "hub"), ("ghcr.io/lab/x", False, "registry"),
        ("https://registry.example.org:5000/x", False, "registry"), ("lab/x", True, "local"),
    ],
)  # fmt: skip
def test_aip_takes_the_source_from_the_name(reference, local, source):
    from aiplatform.client.commands.container_images import source_of

    assert source_of(reference, local=local) == source


def test_image_that_was_saved_is_not_looked_up_again_and_says_so(as_alice, alice):
    made = Image.objects.create(
        kind="container", source="saved", name="mine", owner=alice, state="ready", reference="x:1"
    )

    answer = as_alice.post(f"/api/v1/images/{made.pk}/look/")
    page = as_alice.post(f"/images/{made.pk}/look/", follow=True)

    assert (answer.status_code, answer.json()["code"]) == (409, "cannot_look_up")
    assert "Only external container images" in page.content.decode()
    made.refresh_from_db()
    assert made.state == "ready"
