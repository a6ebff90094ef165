"""Everyday acts on files: by the API and by the pages, with refusals that say what to do."""

from __future__ import annotations

import io
import os
import zipfile

import pytest

from aiplatform import env
from datasets.files import changes, homes, listing, tasks, usage
from datasets.files.models import HomeUsage
from datasets.models import Upload
from tests.files.helpers import arrived, read


def test_files_are_brought_listed_and_read(files, home):
    made = files.put("data/a/b.txt", b"hello")

    assert made.status_code == 201
    assert made.json() | {"changed_at": ""} == {
        "name": "b.txt", "path": "data/a/b.txt", "kind": "file", "size_bytes": 5, "changed_at": "",
    }  # fmt: skip
    assert files.names() == ["data"]
    assert files.names(path="data/a") == ["b.txt"]
    answer = files.get("content/", path="data/a/b.txt")
    assert read(answer) == b"hello"
    assert answer["Content-Disposition"].startswith("attachment")
    assert (home / "data/a/b.txt").read_bytes() == b"hello"


def test_upload_is_gone_once_its_file_is_placed(files, alice):
    upload = Upload.objects.get(pk=arrived(alice, b"data"))

    first = files.post("put", path="a", upload=upload.pk)
    again = files.post("put", path="b", upload=upload.pk)

    assert (first.status_code, again.status_code) == (201, 404)
    assert not Upload.objects.exists()
    assert not upload.folder.exists()


def test_upload_of_another_or_half_an_upload_is_not_placed(files, bobs, alice, bob):
    half = Upload.objects.get(pk=arrived(alice, b"data"))
    Upload.objects.filter(pk=half.pk).update(state=Upload.State.OPEN)

    assert files.post("put", path="a", upload=arrived(bob, b"data")).status_code == 404
    assert files.post("put", path="a", upload=half.pk).json()["errors"].keys() == {"upload"}
    assert files.names() == []


def test_upload_with_another_checksum_is_refused(files, alice):
    upload = arrived(alice, b"data")
    Upload.objects.filter(pk=upload).update(sha256="0" * 64)

    assert files.post("put", path="a", upload=upload).status_code == 400
    assert files.names() == []


def test_put_is_answered_again_for_the_same_key(files, alice):
    body = {"path": "a", "upload": arrived(alice, b"data")}
    key = {"HTTP_IDEMPOTENCY_KEY": "one-intention"}

    first = files.client.post("/api/v1/files/put/", body, format="json", **key)
    again = files.client.post("/api/v1/files/put/", body, format="json", **key)

    assert (first.status_code, again.status_code) == (201, 201)
    assert again["Idempotency-Replayed"] == "true"


def test_taken_name_is_refused_unless_it_may_be_replaced(files, home):
    files.put("a", b"old")
    (home / "folder").mkdir()

    assert files.put("a", b"new").json()["code"] == "name_taken"
    assert files.post("check", path="a", size_bytes=1).json()["code"] == "name_taken"
    assert files.post("check", path="a", size_bytes=1, replace=True).status_code == 204
    assert files.put("a", b"new", replace=True).status_code == 201
    assert files.put("folder", b"new", replace=True).json()["code"] == "name_taken"
    assert files.put("a/b", b"new").status_code == 404
    assert (home / "a").read_bytes() == b"new"


@pytest.mark.parametrize("name", ["a\nb", "\\xff", "x" * 256, "\u202egpj.exe", "é" * 128, "a/" + "y" * 300])
def test_names_nobody_could_see_or_use_are_not_given(files, home, name):
    assert files.post("folder", path=name).json()["code"] == "invalid"
    assert files.put(name).json()["code"] == "invalid"
    assert files.post("check", path=name, size_bytes=0).status_code == 400
    assert [path for path in home.rglob("*") if path.name != "a"] == []


def test_folders_are_made_moved_and_deleted(files, home):
    assert files.post("folder", path="a/b").status_code == 201
    assert files.post("folder", path="a/b").json()["code"] == "name_taken"
    files.put("a/b/c.txt")

    assert files.post("move", path="a/b", to="d").json()["path"] == "d"
    assert files.post("move", path="d", to="d/inside").json()["code"] == "invalid"
    assert files.post("move", path="d", to="nowhere/d").status_code == 404
    assert files.post("move", path="gone", to="e").status_code == 404
    assert files.post("move", path="", to="e").status_code == 400
    assert files.post("move", path="d", to="a").json()["code"] == "name_taken"
    assert (home / "d/c.txt").exists()

    assert files.post("remove", path="d").status_code == 204
    assert files.post("remove", path="d").status_code == 404
    assert files.post("remove", path="/").status_code == 400
    assert files.names() == ["a"]


def test_list_is_sorted_searched_and_paged(files, home, monkeypatch):
    monkeypatch.setattr(listing, "PAGE", 2)
    (home / "z").mkdir()
    for name, size in (("b", 1), ("A", 3), ("c", 2)):
        (home / name).write_bytes(b"x" * size)
        os.utime(home / name, (size, size))

    assert files.names() == ["z", "A"]
    assert files.names(ordering="-name") == ["z", "c"]
    assert files.names(ordering="-size") == ["z", "A"]
    assert files.names(ordering="changed") == ["z", "b"]
    second = files.client.get(files.get().json()["next"]).json()
    assert ([row["name"] for row in second["results"]], second["total"], second["next"]) == (["b", "c"], 4, None)
    assert files.names(search="B") == ["b"]
    assert files.get(ordering="owner").status_code == 400
    assert files.get(page="0").status_code == 400


def test_list_of_a_folder_with_too_many_entries_says_so(files, home, monkeypatch):
    monkeypatch.setattr(listing, "MAX_ENTRIES", 3)
    for number in range(5):
        (home / str(number)).touch()

    answer = files.get().json()

    assert (len(answer["results"]), answer["more"]) == (3, True)


def test_zip_of_a_folder_can_be_resumed(files, home):
    for name in ("a", "b/c"):
        files.put(f"data/{name}", name.encode())
    whole = files.get("zip/", path="data")
    data = read(whole)

    part = files.client.get("/api/v1/files/zip/?path=data", HTTP_RANGE="bytes=20-", HTTP_IF_RANGE=whole["ETag"])

    assert (part.status_code, read(part)) == (206, data[20:])
    assert sorted(zipfile.ZipFile(io.BytesIO(data)).namelist()) == ["a", "b/c"]
    assert files.get("zip/", path="nothing").status_code == 404


def test_home_quota_is_shown_and_kept(files, home, alice, monkeypatch):
    monkeypatch.setattr(env, "HOME_QUOTA_BYTES", 10)
    files.put("a", b"12345678")

    refused = files.put("b", b"123")

    assert (refused.status_code, refused.json()["code"]) == (413, "home_full")
    assert "Your storage quota has 2 bytes left." in refused.json()["detail"]
    assert files.post("check", path="b", size_bytes=3).status_code == 413
    assert files.post("check", path="b", size_bytes=2).status_code == 204
    shown = files.get("usage/").json()
    assert (shown["size_bytes"], shown["files"], shown["quota_bytes"], shown["whole"]) == (8, 1, 10, True)
    files.post("remove", path="a")
    assert files.put("b", b"123").status_code == 201


def test_home_that_takes_long_is_measured_by_a_sweep(files, home, alice, monkeypatch):
    (home / "a").write_bytes(b"12345")
    monkeypatch.setattr(usage, "MAX_DURATION_S", -1.0)
    assert files.get("usage/").json()["whole"] is False
    HomeUsage.objects.update(measured_at="2020-01-01T00:00:00Z")

    tasks.sweep()

    assert files.get("usage/").json() | {"measured_at": ""} == {
        "size_bytes": 5, "files": 1, "whole": True, "measured_at": "", "quota_bytes": 0,
    }  # fmt: skip


def test_sweep_removes_what_a_dead_process_left(home):
    for name in (".deleted", ".incoming"):
        (home.parent / name).mkdir()
    (home.parent / ".deleted" / "tree" / "below").mkdir(parents=True)
    (home.parent / ".incoming" / "old").touch()
    os.utime(home.parent / ".incoming" / "old", (1, 1))
    (home.parent / ".incoming" / "new").touch()

    tasks.sweep()

    assert sorted(path.name for path in home.parent.rglob("*")) == [".deleted", ".incoming", "alice", "new"]


def test_home_goes_to_whoever_takes_over(alice, bob, olga, home, django_capture_on_commit_callbacks):
    from accounts.services import account_deletion

    (home / "mine.txt").write_text("x")
    taken = homes.home_of(bob)
    (taken / "alice").mkdir()

    with django_capture_on_commit_callbacks(execute=True):
        moved = account_deletion.transfer(giver=alice, taker=bob, by=olga)

    assert moved["home"] == 1
    [found] = taken.rglob("mine.txt")
    assert found.parent.name.startswith("alice_")
    assert found.stat().st_uid == taken.stat().st_uid
    assert not home.exists()


def test_disk_on_another_file_system_gets_the_file_by_copy(files, home, monkeypatch):
    import errno

    from aiplatform.lib import trees

    plain = trees.move

    def other_disk(source, name, *rest, **how):
        if name == b"data":
            raise OSError(errno.EXDEV, "other disk")
        return plain(source, name, *rest, **how)

    monkeypatch.setattr(changes.trees, "move", other_disk)

    assert files.put("a", b"hello").status_code == 201
    assert (home / "a").read_bytes() == b"hello"
    assert list((home.parent / ".incoming").iterdir()) == []
    assert (home / "a").stat().st_uid == home.stat().st_uid
