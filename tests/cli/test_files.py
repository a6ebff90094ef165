"""`aip files`: what it lists, brings, fetches and shares."""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path

import pytest

from aiplatform.client.commands import files
from datasets.files import homes
from tests.cli.platform_double import Uploads

pytestmark = pytest.mark.sockets("a platform's double")

API = "/api/v1/files/"


@pytest.fixture(autouse=True)
def nobody_waits(monkeypatch):
    monkeypatch.setitem(files._patiently.__kwdefaults__, "pause", lambda _seconds: None)


@pytest.fixture
def placed(platform):
    """The platform takes every file; the bodies of what was placed."""
    uploads = Uploads(platform)
    platform.answers(f"POST {API}check/", {})
    platform.answers(f"POST {API}put/", {"path": "x"}, status=201)

    def bodies():
        rows = [request.json() for request in platform.asked(f"POST {API}put/")]
        return {row["path"]: bytes(uploads.data[row["upload"]]) for row in rows}

    return bodies


def test_files_put_brings_files_and_folders_with_their_paths(aip, platform, placed, tmp_path):
    (tmp_path / "project" / "src").mkdir(parents=True)
    (tmp_path / "project" / "src" / "a.py").write_text("a")
    (tmp_path / "project" / "way.py").symlink_to("/etc/hostname")
    Path(os.fsdecode(os.fsencode(tmp_path / "project") + b"/odd\xff\\.txt")).write_text("odd")
    (tmp_path / "one.txt").write_text("one")

    assert aip("files", "put", tmp_path / "project", tmp_path / "one.txt", "--to", "work/") == 0

    assert placed() == {
        "work/project/src/a.py": b"a",
        "work/project/odd\\xff\\\\.txt": b"odd",
        "work/one.txt": b"one",
    }
    [first, *_others] = platform.asked(f"POST {API}put/")
    assert first.headers["idempotency-key"]


def test_files_put_goes_on_where_it_was_cut(aip, platform, placed, tmp_path, monkeypatch):
    from aiplatform.client import tus

    monkeypatch.setattr(tus, "CHUNK", 4)
    monkeypatch.setattr(tus, "TRIES", 1)
    (tmp_path / "big").write_bytes(b"0123456789")
    uploads = Uploads(platform)
    uploads.cut_after = 8

    assert aip("files", "put", tmp_path / "big") == 1
    assert placed() == {}
    uploads.cut_after = None
    assert aip("files", "put", tmp_path / "big") == 0

    assert [bytes(data) for data in uploads.data.values()] == [b"0123456789"]


def test_files_put_tries_its_last_step_again_as_one_intention(aip, platform, placed, tmp_path):
    (tmp_path / "one.txt").write_text("one")
    answers = [ConnectionAbortedError, (503, {"detail": "Starting."}), (201, {"path": "one.txt"})]

    def place(_request):
        answer = answers.pop(0)
        if answer is ConnectionAbortedError:
            raise answer
        return answer

    platform.routes[f"POST {API}put/"] = place

    assert aip("files", "put", tmp_path / "one.txt") == 0

    tries = platform.asked(f"POST {API}put/")
    assert (len(tries), len({request.headers["idempotency-key"] for request in tries})) == (3, 1)


def test_files_put_leaves_out_what_is_there_when_told(aip, platform, placed, tmp_path, capsys):
    (tmp_path / "one.txt").write_text("one")
    platform.answers(f"POST {API}check/", {"code": "name_taken", "detail": "It is there already."}, status=409)

    assert aip("files", "put", tmp_path / "one.txt") == 1
    assert aip("files", "put", tmp_path / "one.txt", "--skip") == 0

    assert "0 files uploaded, 1 already exist." in capsys.readouterr().err
    assert placed() == {}
    assert aip("files", "put", tmp_path / "one.txt", "--skip", "--replace") == 2
    assert aip("files", "put", tmp_path / "nothing") == 5


def test_files_get_fetches_a_file_and_unpacks_a_folder(aip, platform, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a/b.txt", "b")
    platform.answers(f"GET {API}about/", {"name": "results", "kind": "folder"}, {"name": "m.bin", "kind": "file"})
    platform.answers(f"GET {API}zip/", packed.getvalue())
    platform.answers(f"GET {API}content/", b"model")

    assert aip("files", "get", "results", "--shared", "3") == 0
    assert aip("files", "get", "x/m.bin") == 0

    assert (tmp_path / "results" / "a" / "b.txt").read_text() == "b"
    assert (tmp_path / "m.bin").read_bytes() == b"model"
    assert [request.query for request in platform.asked(f"GET {API}zip/")] == [{"path": "results", "shared": "3"}]
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == ["a"]


def test_files_acts_reach_the_real_platform(real_aip, alice, bob, capsys):
    home = homes.home_of(alice)

    assert real_aip(alice, "files", "mkdir", "a/b") == 0
    (home / "a" / "b" / "c.txt").write_text("x")
    assert real_aip(alice, "files", "mv", "a/b", "d") == 0
    assert real_aip(alice, "files", "share", "d", "--person", "bob") == 0
    capsys.readouterr()
    assert real_aip(bob, "files", "shared", "--json") == 0
    [row] = json.loads(capsys.readouterr().out)
    assert real_aip(bob, "files", "ls", "--shared", row["id"]) == 0
    assert "c.txt" in capsys.readouterr().out
    assert real_aip(alice, "files", "share", "d", "--person", "bob", "--stop") == 0
    assert real_aip(bob, "files", "ls", "--shared", row["id"]) == 5
    assert real_aip(alice, "files", "usage") == 0
    assert "1 files" in capsys.readouterr().err
    assert real_aip(alice, "files", "rm", "d") == 2
    assert real_aip(alice, "files", "rm", "d", "a", "--yes") == 0
    assert real_aip(alice, "files", "share", "d") == 2
    assert list(home.iterdir()) == []
