"""Pages of files, and what they show of a file: never anything that could act."""

from __future__ import annotations

import base64
import io
import json

import pytest

from aiplatform import env
from datasets.files import homes, notebooks
from tests.conftest import signed_in

PICTURE = b"\x89PNG\r\n\x1a\n" + b"0" * 20
PIXEL = base64.b64encode(PICTURE).decode()
EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>"


def notebook(*cells, **more):
    return json.dumps({"cells": list(cells), "nbformat": 4, **more})


@pytest.fixture
def page(as_alice, home):
    """The page of a file of Alice's."""

    def shown(name, data):
        (home / name).write_bytes(data if isinstance(data, bytes) else data.encode())
        answer = as_alice.get("/files/show/", {"path": name})
        assert answer.status_code == 200
        return answer.content.decode()

    return shown


def test_files_page_lists_and_leads_on(as_alice, home):
    (home / "data" / "inner").mkdir(parents=True)
    (home / "data" / "a b&c.txt").write_text("x")

    top, below = as_alice.get("/files/"), as_alice.get("/files/", {"path": "data"}).content.decode()

    assert "/files/?path=data" in top.content.decode()
    assert "/files/show/?path=data%2Fa%20b%26c.txt" in below
    assert "/files/?path=data%2Finner" in below
    part = as_alice.get("/files/", {"path": "data", "q": "inner"}, headers={"hx-request": "true"}).content.decode()
    assert "inner" in part
    assert "a b&amp;c.txt" not in part
    assert "</html>" not in part


def test_files_page_leaves_out_names_with_a_dot_unless_asked(as_alice, home):
    (home / ".cache" / "inner").mkdir(parents=True)
    bare = as_alice.get("/files/").content.decode()
    (home / "notes.txt").write_text("x")

    usual = as_alice.get("/files/").content.decode()
    whole = as_alice.get("/files/", {"hidden": "1"}).content.decode()

    assert "1 hidden file or folder" in bare
    assert 'href="?hidden=1"' in bare
    assert "notes.txt" in usual
    assert ".cache" not in usual
    assert "/files/?path=.cache&amp;hidden=1" in whole
    assert "Modified" in whole


def test_files_pages_are_closed_to_who_runs_no_jobs(client, anna):
    assert client.get("/files/").status_code == 302
    assert signed_in(anna).get("/files/").status_code == 403
    assert signed_in(anna).post("/files/put/", {}).status_code == 403
    assert signed_in(anna).get("/api/v1/files/").status_code == 403


def test_files_page_makes_renames_and_deletes(as_alice, home):
    made = as_alice.post("/files/folder/?path=", {"name": "new"})
    assert made["Location"] == "/files/?path=new"
    assert as_alice.post("/files/folder/", {"name": "new"}).status_code == 422
    assert as_alice.get("/files/move/", {"path": "new"}).status_code == 200
    assert as_alice.post("/files/move/?path=new", {"name": "a/b", "folder": ""}).status_code == 422
    assert as_alice.post("/files/move/?path=new", {"name": "newer", "folder": "nowhere"}).status_code == 422

    moved = as_alice.post("/files/move/?path=new", {"name": "newer", "folder": ""})

    assert moved["Location"] == "/files/"
    assert as_alice.post("/files/delete/", {"path": "newer"})["Location"] == "/files/"
    assert list(home.iterdir()) == []


def test_files_page_takes_files_without_scripts(as_alice, home):
    sent = [io.BytesIO(b"one"), io.BytesIO(b"two")]
    sent[0].name, sent[1].name = "one.txt", "two.txt"

    answer = as_alice.post("/files/put/", {"path": "in", "files": sent}, follow=True)

    assert "2 files uploaded." in answer.content.decode()
    assert sorted(path.name for path in (home / "in").iterdir()) == ["one.txt", "two.txt"]
    again = io.BytesIO(b"new")
    again.name = "one.txt"
    assert (
        "already exists" in as_alice.post("/files/put/", {"path": "in", "files": again}, follow=True).content.decode()
    )
    assert (home / "in" / "one.txt").read_bytes() == b"one"


def test_files_page_says_how_much_is_used(as_alice, home, monkeypatch):
    monkeypatch.setattr(env, "HOME_QUOTA_BYTES", 10)
    (home / "a").write_bytes(b"x" * 20)

    page = as_alice.get("/files/").content.decode()

    assert "20 B of 10 B used" in page
    assert "Your home is full" in page


@pytest.mark.parametrize("query", ["path=gone", "shared=1", "shared=x", "path=..", "page=x"])
def test_files_page_refuses_what_is_not_there(as_alice, home, query):
    assert as_alice.get(f"/files/?{query}").status_code in {400, 404}


def test_text_is_shown_as_text(page, as_alice):
    for name in ("a.txt", "a.html", "a.svg", "a.js"):
        shown = page(name, EVIL)
        assert EVIL not in shown
        assert "&lt;script&gt;" in shown
        answer = as_alice.get("/api/v1/files/content/", {"path": name, "inline": "1"})
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert answer["Content-Security-Policy"].startswith("sandbox")
        assert answer["Content-Type"] in {"application/octet-stream", "text/plain"}
        assert b"".join(answer) == EVIL.encode()


def test_long_and_binary_files_are_cut_or_not_shown(page):
    assert "Only the beginning is shown; the download is complete." in page("long.log", b"x" * 300_000)
    assert "cannot be displayed" in page("model.bin", b"\0\1\2")
    assert "This file is empty" in page("empty.txt", b"")
    assert "\ufffd" in page("latin.txt", b"caf\xe9")


def test_picture_is_shown_by_a_closed_address(page, as_alice):
    shown = page("a.png", base64.b64decode(PIXEL))

    assert "/api/v1/files/content/?path=a.png&amp;inline=1" in shown
    answer = as_alice.get("/api/v1/files/content/", {"path": "a.png", "inline": "1"})
    assert (answer["Content-Type"], answer["X-Content-Type-Options"]) == ("image/png", "nosniff")
    answer.close()


def test_notebook_is_shown_and_none_of_it_acts(page):
    book = notebook(
        {"cell_type": "markdown", "source": ["# Title\n", EVIL]},
        {"cell_type": "code", "source": EVIL, "execution_count": 3, "outputs": [
            {"output_type": "stream", "name": "stdout", "text": [EVIL]},
            {"output_type": "display_data", "data": {"text/html": EVIL, "text/plain": "plain"}},
            {"output_type": "display_data", "data": {"application/javascript": EVIL}},
            {"output_type": "display_data", "data": {"image/png": PIXEL}},
            {"output_type": "display_data", "data": {"image/png": base64.b64encode(EVIL.encode()).decode()}},
            {"output_type": "display_data", "data": {"image/svg+xml": EVIL}},
            {"output_type": "error", "traceback": ["\x1b[31mBoom\x1b[0m" + EVIL]},
        ]},
        metadata={"kernelspec": {"display_name": EVIL}},
    )  # fmt: skip

    shown = page("a.ipynb", book)

    assert "<script>alert" not in shown
    assert "onerror=alert(1)>" not in shown
    assert shown.count("data:image/png;base64,") == 1
    assert shown.count("This output cannot be shown here.") == 3
    assert "Boom" in shown
    assert "[3]" in shown


@pytest.mark.parametrize(
    "data",
    [
        b"{}",
        b"[" * 200_000,
        b'{"cells": 3}',
        b'{"cells": [1, null, {"cell_type": [], "source": {"a": 1}, "outputs": {"a": 1}}]}',
        b'{"cells": [{"cell_type": "code", "source": [1, null], "execution_count": 1e999, "outputs": [7, {}]}]}',
        b'{"cells": [{"cell_type": "code", "outputs": [{"data": {"image/png": 5}}]}], "metadata": []}',
        b'{"cells": [{"source": "\\ud800"}]}',
        b"\xff\xfe",
    ],
)
def test_notebook_that_is_none_is_shown_all_the_same(page, data):
    assert "a.ipynb" in page("a.ipynb", data)


def test_notebook_of_many_cells_and_pictures_is_cut():
    encoded = base64.b64encode(PICTURE + bytes(2 << 20)).decode()
    picture = {"output_type": "display_data", "data": {"image/png": encoded}}
    cells = [{"cell_type": "code", "source": "x" * 60_000, "outputs": [picture]} for _number in range(4)]
    cells += [{"cell_type": "raw", "source": "x"} for _number in range(600)]

    book = notebooks.read(notebook(*cells).encode())

    assert (len(book.cells), book.more) == (notebooks.MAX_CELLS, True)
    assert len(book.cells[0].source) == notebooks.MAX_TEXT_LENGTH
    assert [bool(output.picture) for cell in book.cells for output in cell.outputs] == [True, True, False, False]


def test_home_of_another_is_not_reached_by_any_page(as_bob, alice, home):
    (home / "secret.txt").write_text("secret")
    homes.home_of(alice)

    for path in ("secret.txt", "../alice/secret.txt", "/../alice/secret.txt"):
        assert as_bob.get("/files/show/", {"path": path}).status_code in {400, 404}
        as_bob.post("/files/delete/", {"path": path})
    assert (home / "secret.txt").exists()
