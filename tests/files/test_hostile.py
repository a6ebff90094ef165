"""What a job may leave in a home, and what it may swap while the platform looks."""

from __future__ import annotations

import io
import os
import threading
import zipfile
from pathlib import Path

import pytest

from aiplatform.lib import file_names
from datasets.files import homes, tasks
from tests.files.helpers import HOSTILE, chain, exchange, hostile_names, read, special_files


@pytest.mark.parametrize("name", HOSTILE)
def test_file_of_any_name_is_listed_read_moved_and_deleted(files, home, name):
    hostile_names(home)
    shown = file_names.shown(name)

    listed = [row for row in files.get().json()["results"] if row["name"] == shown]

    assert len(listed) == 1
    assert "\n" not in shown
    path = listed[0]["path"]
    assert read(files.get("content/", path=path)) == b"hostile"
    assert files.post("move", path=path, to="plain").status_code == 200
    assert (home / "plain").read_bytes() == b"hostile"
    assert files.post("move", path="plain", to=f"{path}").status_code in {200, 400}  # some are no names to give
    for left in ("plain", path):
        files.post("remove", path=left)
    assert shown not in files.names()
    assert len(files.names()) == len(HOSTILE) - 1


@pytest.mark.parametrize(
    "path", ["..", "../bob", "a/../../bob", "\\x2e\\x2e/bob", "a\\x2fb", "a\\x00b", "\ud800", "/.."]
)
def test_path_leads_nowhere_else(files, home, bob, path):
    (homes.home_of(bob) / "secret").write_text("secret")

    for what in ("", "content/", "zip/", "about/"):
        assert files.get(what, path=path.encode("utf-8", "surrogatepass")).status_code in {400, 403, 404}
    for what in ("folder", "remove"):
        assert files.post(what, path=path).status_code in {400, 403, 404}
    assert files.post("move", path=path, to="mine").status_code in {400, 403, 404}
    assert files.post("put", path=path, upload="0" * 32).status_code in {400, 403, 404}
    assert (homes.home_of(bob) / "secret").exists()


def test_links_are_shown_and_never_followed(files, home, bob):
    secret = homes.home_of(bob) / "secret"
    secret.write_text("secret")
    (home / "file").symlink_to(secret)
    (home / "folder").symlink_to(secret.parent)
    (home / "all").mkdir()
    (home / "all" / "own.txt").write_text("own")
    (home / "all" / "way").symlink_to(secret.parent)

    kinds = {row["name"]: row["kind"] for row in files.get().json()["results"]}

    assert kinds == {"all": "folder", "file": "link", "folder": "link"}
    for path in ("file", "folder/secret", "all/way/secret"):
        assert files.get("content/", path=path).status_code == 400
        assert files.get("about/", path=path).status_code == (200 if path == "file" else 400)
    assert files.get(path="folder").status_code == 400
    assert files.put("folder/mine").status_code == 400
    assert files.put("file", replace=True).status_code == 201  # the link itself is replaced
    assert (home / "file").read_bytes() == b"data"
    with zipfile.ZipFile(io.BytesIO(read(files.get("zip/", path="all")))) as packed:
        assert packed.namelist() == ["own.txt"]
    for path in ("folder", "all"):
        assert files.post("remove", path=path).status_code == 204
    assert secret.read_text() == "secret"


@pytest.mark.sockets("a socket file in a home")
def test_special_files_are_shown_and_not_touched(files, home):
    listening = special_files(home)
    (home / "file").write_text("x")
    try:
        kinds = {row["name"]: row["kind"] for row in files.get().json()["results"]}
        special = set(kinds) - {"file"}

        assert {kinds[name] for name in special} == {"other"}
        for name in special:
            assert files.get("content/", path=name).status_code == 400
            assert files.client.get("/files/show/", {"path": name}).status_code == 200
        with zipfile.ZipFile(io.BytesIO(read(files.get("zip/")))) as packed:
            assert packed.namelist() == ["file"]
        for name in special:
            assert files.post("remove", path=name).status_code == 204
        assert files.names() == ["file"]
    finally:
        listening.close()


@pytest.mark.parametrize("depth", [300, pytest.param(1500, marks=pytest.mark.proof)])
def test_deep_tree_is_listed_refused_as_zip_and_deleted(files, home, depth):
    chain(home, depth)

    assert files.names(path="/".join("d" * depth)) == ["leaf"]
    assert files.get("zip/").json()["code"] == "invalid"
    assert files.get("usage/").json()["files"] == 1
    assert files.post("remove", path="d").status_code == 204
    assert files.names() == []
    for _round in range(100):  # what a slow disk did not manage within the request, sweeps do
        if not list((home.parent / ".deleted").iterdir()):
            break
        tasks.sweep()
    assert list((home.parent / ".deleted").iterdir()) == []


def test_zip_has_no_name_that_leads_out_where_it_is_unpacked(files, home):
    hostile_names(home)
    (home / "..\\..\\evil.txt").write_text("evil")

    with zipfile.ZipFile(io.BytesIO(read(files.get("zip/")))) as packed:
        packed_names = packed.namelist()
        assert packed.testzip() is None

    assert len(packed_names) == len(HOSTILE) + 1
    assert not any("\\" in name or name.startswith("/") or "../" in name for name in packed_names)


def test_folder_that_turns_into_a_link_while_it_is_used_leads_nowhere(files, home, bob):
    secret = homes.home_of(bob)
    (secret / "file").write_text("secret")
    (home / "turning").mkdir()
    (home / "turning" / "file").write_text("own")
    (home / "link").symlink_to(secret)
    over = threading.Event()

    def turn() -> None:
        while not over.is_set():
            exchange(home / "turning", home / "link")

    turning = threading.Thread(target=turn)
    turning.start()
    try:
        for _try in range(40):
            answer = files.get("content/", path="turning/file")
            assert answer.status_code in {200, 400, 404}
            if answer.status_code == 200:
                assert read(answer) == b"own"
            assert files.put("turning/new", replace=True).status_code in {201, 400, 404}
            assert files.post("folder", path="turning/inner").status_code in {201, 400, 404, 409}
            assert files.post("remove", path="turning/new").status_code in {204, 400, 404}
    finally:
        over.set()
        turning.join()
    assert [path.read_text() for path in secret.iterdir()] == ["secret"]


def test_file_that_shrinks_while_it_is_packed_breaks_the_download(files, home):
    (home / "log").write_bytes(b"x" * 5_000_000)
    answer = files.get("zip/")
    (home / "log").write_bytes(b"")

    with pytest.raises(OSError, match="shorter"):
        read(answer)


def test_closed_folder_says_what_to_do_or_is_root_s_to_read(files, home):
    (home / "closed").mkdir()
    (home / "closed" / "file").write_text("x")
    (home / "closed").chmod(0)

    answer = files.get(path="closed")

    assert answer.status_code == (200 if os.geteuid() == 0 else 403)
    assert files.post("remove", path="closed").status_code == 204
    assert not (home / "closed").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_what_the_platform_makes_belongs_to_the_person(files, home, alice, settings):
    files.put("new/deep/file.txt")
    files.post("folder", path="other/inner")
    files.client.post("/files/put/", {"path": "new", "files": io.BytesIO(b"plain")})

    made = [home, *home.rglob("*")]

    assert len(made) == 7
    assert {(path.stat().st_uid, path.stat().st_gid) for path in made} == {(200_000 + alice.pk, 200_000 + alice.pk)}
    assert Path(settings.DATA_ROOT, "home", ".deleted").exists() is False


@pytest.mark.parametrize("moment", [-(2**33), 0, 2**34 - 1])
def test_file_of_any_year_is_listed_and_packed(files, home, moment):
    (home / "file").write_text("x")
    os.utime(home / "file", (moment, moment))

    assert files.names(ordering="-changed") == ["file"]
    with zipfile.ZipFile(io.BytesIO(read(files.get("zip/")))) as packed:
        assert packed.namelist() == ["file"]
