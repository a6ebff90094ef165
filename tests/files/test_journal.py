"""Shares of folders that are renamed or deleted, also where the process is killed in between."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction
from django.utils.timezone import now
from rest_framework.test import APIClient

from aiplatform.lib import trees
from datasets.files import changes, journal
from datasets.files.models import HomeChange, SharedFolder
from datasets.files.tasks import sweep
from tests.files.helpers import Files

pytestmark = pytest.mark.django_db
DEAD = "host:nowhere-0:1:1:x"
RENAMED = ("renamed", "renamed by the API")
ACTS = {
    "renamed": lambda user: changes.move(user, "results", "old"),
    "renamed by the API": lambda user: _calls(user, "move", path="results", to="old"),
    "deleted": lambda user: changes.delete(user, "results"),
    "deleted by the API": lambda user: _calls(user, "remove", path="results"),
}


def _calls(user, what, **body):
    client = APIClient()
    client.force_login(user)
    assert Files(client, user).post(what, **body).status_code < 300


class Killed(BaseException):
    """What the process gets to know of a kill: nothing."""


@pytest.fixture
def share(files, home):
    """`results` of Alice's home, which Bob reads; the id of the share."""
    (home / "results" / "deep").mkdir(parents=True)
    (home / "results" / "a.txt").write_text("a")
    pk = files.post("share", path="results").json()["id"]
    files.client.put(f"/api/v1/shares/folder/{pk}/", {"level": "view", "person": "bob"}, format="json")
    return pk


@pytest.fixture
def killed(alice, monkeypatch):
    """`killed("renamed", before=True)`: the act, by a process that is killed before or after the disk is changed."""

    def one(act: str, *, before: bool) -> None:
        with monkeypatch.context() as patched:
            for name in ("move", "move_out"):
                patched.setattr(trees, name, _dies(getattr(trees, name), before=before))
            with pytest.raises(Killed):
                ACTS[act](alice)
        HomeChange.objects.update(holder=DEAD, created_at=now() - timedelta(hours=1))

    return one


def _dies(real, *, before):
    def dies(*given, **more):
        if not before:
            real(*given, **more)
        raise Killed

    return dies


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("by", ["reader", "sweep", "owner"])
def test_share_does_not_outlive_its_folder_when_the_process_is_killed(files, bobs, alice, home, share, killed, act, by):
    killed(act, before=False)
    (home / "results").mkdir()  # something else, of the same name
    (home / "results" / "private.txt").write_text("private")
    if by == "sweep":
        sweep()
    elif by == "owner":
        changes.delete(alice, "results/private.txt")

    seen = bobs.get(shared=share)

    assert not HomeChange.objects.exists()
    if act in RENAMED:
        assert sorted(bobs.names(shared=share)) == ["a.txt", "deep"]
        assert SharedFolder.objects.get().path == "old"
    else:
        assert seen.status_code == 404
        assert not SharedFolder.objects.exists()


@pytest.mark.parametrize("act", ACTS)
def test_share_stays_when_the_process_is_killed_before_anything_changed(bobs, share, killed, act):
    killed(act, before=True)

    assert sorted(bobs.names(shared=share)) == ["a.txt", "deep"]
    assert (HomeChange.objects.count(), SharedFolder.objects.get().path) == (0, "results")


@pytest.mark.parametrize("act", ACTS)
def test_share_rests_while_its_folder_is_changed(files, bobs, alice, share, act, monkeypatch):
    seen = []

    def look(real):
        def looks(*given, **more):
            seen.append(bobs.get(shared=share).status_code)
            real(*given, **more)
            seen.append(bobs.get(shared=share).status_code)

        return looks

    for name in ("move", "move_out"):
        monkeypatch.setattr(trees, name, look(getattr(trees, name)))

    ACTS[act](alice)

    assert seen[:2] == [404, 404]
    assert bobs.get(shared=share).status_code == (200 if act in RENAMED else 404)


def test_change_that_is_refused_leaves_shares_as_they_are(files, home, bobs, share):
    (home / "taken").mkdir()

    assert files.post("move", path="results", to="taken").status_code == 409

    assert sorted(bobs.names(shared=share)) == ["a.txt", "deep"]
    assert not HomeChange.objects.exists()


def test_change_whose_end_nobody_can_tell_closes_the_share(files, home, alice, bobs, share, killed):
    """A job put something else where the renamed folder is to be."""
    killed("renamed", before=False)
    (home / "old").rename(home / "elsewhere")
    (home / "old").mkdir()

    journal.settle_left()

    assert bobs.get(shared=share).status_code == 404
    assert not SharedFolder.objects.exists()


def test_change_is_refused_where_its_note_would_come_after_it(alice, home, share):
    with pytest.raises(RuntimeError), transaction.atomic():
        changes.move(alice, "results", "old")

    assert (home / "results" / "a.txt").exists()
