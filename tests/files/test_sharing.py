"""Folders of a home that others read: only they, only there, only reading."""

from __future__ import annotations

import io
import zipfile

import pytest

from accounts.models import UserGroup
from datasets.files.models import SharedFolder
from tests.conftest import signed_in
from tests.files.helpers import read


@pytest.fixture
def share(files, home):
    """`results` of Alice's home, shared with nobody yet; the id of the share."""
    (home / "results" / "deep").mkdir(parents=True)
    (home / "results" / "deep" / "a.txt").write_text("a")
    (home / "private.txt").write_text("private")
    return files.post("share", path="results").json()["id"]


def give(files, share, **whom):
    return files.client.put(f"/api/v1/shares/folder/{share}/", {"level": "view", **whom}, format="json")


def test_share_opens_its_folder_to_one_person(files, bobs, olgas, share):
    assert bobs.get(shared=share).status_code == 404

    assert give(files, share, person="bob").status_code == 200

    assert bobs.names(shared=share) == ["deep"]
    assert read(bobs.get("content/", shared=share, path="deep/a.txt")) == b"a"
    with zipfile.ZipFile(io.BytesIO(read(bobs.get("zip/", shared=share)))) as packed:
        assert packed.namelist() == ["deep/a.txt"]
    assert bobs.get("shared/").json() == [{"id": share, "owner": "alice", "path": "results", "name": "results"}]
    for client in (bobs, olgas):
        assert client.get("content/", shared=share, path="../private.txt").status_code in {400, 404}
        assert client.get("content/", path="results/deep/a.txt").status_code == 404


def test_operators_see_no_home_and_no_share_of_others(olgas, olga, files, share):
    give(files, share, person="bob")

    for what in ("", "zip/", "about/"):
        assert olgas.get(what, shared=share).status_code == 404
    assert olgas.get("shared/").json() == []
    assert olgas.client.put(f"/api/v1/shares/folder/{share}/", {"level": "view", "person": "olga"}).status_code == 404
    assert signed_in(olga).get("/files/", {"shared": share}).status_code == 404


def test_share_opens_to_a_group_and_closes_again(files, bobs, alice, bob, share):
    team = UserGroup.objects.create(name="Team", description="All")
    team.users.add(alice, bob)
    give(files, share, group=team.pk)
    assert bobs.names(shared=share) == ["deep"]

    team.users.remove(bob)

    assert bobs.get(shared=share).status_code == 404


def test_share_is_read_only(files, bobs, bob, share, home):
    give(files, share, person="bob")

    for what, body in (
        ("remove", {"path": "results"}),
        ("move", {"path": "results", "to": "mine"}),
        ("share", {"path": "results"}),
    ):
        assert bobs.post(what, **body).status_code == 404
    bobs.put("results/b.txt")  # his own
    page = signed_in(bob).get("/files/", {"shared": share}).content.decode()
    assert "/files/delete/" not in page
    assert "files-upload" not in page
    assert sorted(path.name for path in (home / "results").iterdir()) == ["deep"]
    refused = files.client.put(f"/api/v1/shares/folder/{share}/", {"level": "manage", "person": "bob"}, format="json")
    assert refused.json()["code"] == "wrong_level"


def test_share_goes_with_its_folder_and_ends_with_it(files, bobs, share, home):
    give(files, share, person="bob")

    files.post("move", path="results", to="other")
    assert bobs.names(shared=share) == ["deep"]
    assert SharedFolder.objects.get().path == "other"

    files.post("remove", path="other")
    files.post("folder", path="other")
    assert bobs.get(shared=share).status_code == 404
    assert not SharedFolder.objects.exists()


def test_share_whose_folder_became_a_link_leads_nowhere(files, bobs, share, home):
    give(files, share, person="bob")
    (home / "results").rename(home / "away")
    (home / "results").symlink_to(home)

    assert bobs.get(shared=share).status_code == 400
    assert bobs.get("content/", shared=share, path="private.txt").status_code == 400


@pytest.mark.parametrize("path", ["", "private.txt", "nothing", "../bob"])
def test_only_folders_inside_the_home_are_shared(files, share, path):
    assert files.post("share", path=path).status_code in {400, 404}
    assert SharedFolder.objects.count() == 1


def test_share_of_a_deleted_account_is_over(files, bobs, alice, share):
    give(files, share, person="bob")
    alice.deleted_at = alice.date_joined
    alice.save()

    assert bobs.get("shared/").json() == []
    assert bobs.get(shared=share).status_code == 404


def test_shared_pages_show_both_sides(files, alice, bob, share):
    mine = signed_in(alice)
    assert mine.post("/files/share/", {"path": "results"})["Location"] == f"/share/folder/{share}/"
    page = mine.get(f"/share/folder/{share}/").content.decode()
    assert "See and download." in page
    assert "Also change, delete and share it." not in page
    mine.post(f"/share/folder/{share}/", {"person": "bob", "level": "view"})

    assert "results" in mine.get("/files/shared/").content.decode()
    assert f"/files/?shared={share}" in signed_in(bob).get("/files/shared/").content.decode()
    assert "Shared with you by" in signed_in(bob).get("/files/", {"shared": share}).content.decode()
