"""The files page as a person uses it: bring, look, rename, share, delete."""

from __future__ import annotations

import json
import re
import shutil

import pytest
from playwright.sync_api import expect

from datasets.files import homes
from tests.browser.conftest import in_both_looks
from tests.files.helpers import hostile_names


@pytest.fixture
def home(alice, site):
    """Alice's home, in the data folder of this session's site: empty."""
    folder = homes.home_of(alice)
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    return folder


def test_files_page_brings_files_and_shows_them(open_as, alice, home, accessible, fits, shot, tmp_path):
    (tmp_path / "notes.txt").write_text("hello <script>alert(1)</script>\n")
    (tmp_path / "big.bin").write_bytes(bytes(20_000_000))
    page = open_as(alice)
    page.goto("/files/")
    accessible(page)
    shot(page, "files-empty")

    page.set_input_files("[data-file]", [tmp_path / "notes.txt", tmp_path / "big.bin"])

    row = page.get_by_role("row", name=re.compile("notes.txt"))
    expect(row).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("big.bin"))).to_be_visible()
    assert (home / "big.bin").stat().st_size == 20_000_000
    accessible(page)
    fits(page)
    shot(page, "files-list")
    row.get_by_role("link", name="notes.txt", exact=True).click()
    expect(page.get_by_text("hello <script>")).to_be_visible()
    accessible(page)
    with page.expect_download() as download:
        page.get_by_role("link", name="Download", exact=True).click()
    assert download.value.suggested_filename == "notes.txt"


def test_files_page_says_what_is_there_already(open_as, alice, home, tmp_path):
    (home / "a.txt").write_text("old")
    (tmp_path / "a.txt").write_text("new")
    page = open_as(alice)
    page.watch.allow("status of 409")
    page.goto("/files/")

    page.set_input_files("[data-file]", [tmp_path / "a.txt"])
    expect(page.get_by_text("“a.txt” already exists.")).to_be_visible()
    assert (home / "a.txt").read_text() == "old"
    page.get_by_label("Replace files of the same name").check()
    page.set_input_files("[data-file]", [tmp_path / "a.txt"])

    expect(page.get_by_text("There", exact=True)).to_be_visible()
    assert (home / "a.txt").read_text() == "new"


def test_files_page_works_by_keyboard_and_asks_before_it_deletes(open_as, alice, bob, home, accessible):
    page = open_as(alice)
    page.goto("/files/")
    page.get_by_role("link", name="New folder").focus()
    page.keyboard.press("Enter")
    page.get_by_label("Name").fill("results")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="results")).to_be_visible()
    page.get_by_role("navigation", name="Breadcrumb").get_by_role("link", name="Files").click()
    page.get_by_role("link", name="Rename or move results").click()
    accessible(page)
    page.get_by_label("Name").fill("findings")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Share findings").click()
    expect(page.get_by_role("heading", name="Share findings")).to_be_visible()
    page.goto("/files/")
    page.get_by_role("button", name="Delete findings").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Delete findings?")).to_be_visible()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()

    expect(page.get_by_text("findings deleted.")).to_be_visible()
    assert list(home.iterdir()) == []


@in_both_looks
def test_hostile_names_and_notebooks_stay_on_the_page(
    open_as, alice, home, accessible, fits, shot, width, dark, language
):
    hostile_names(home)
    evil = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    cells = [
        {"cell_type": "markdown", "source": evil},
        {"cell_type": "code", "source": evil, "execution_count": 1, "outputs": [
            {"output_type": "display_data", "data": {"text/html": evil}},
            {"output_type": "stream", "text": "x" * 500},
        ]},
    ]  # fmt: skip
    (home / "a.ipynb").write_text(json.dumps({"cells": cells}))
    (home / "evil.svg").write_text(f"<svg xmlns='http://www.w3.org/2000/svg'>{evil}</svg>")
    page = open_as(alice, width=width, dark=dark, language=language)
    page.on("dialog", lambda dialog: pytest.fail(f"something ran: {dialog.message}"))

    for path in ("/files/", "/files/show/?path=a.ipynb", "/files/show/?path=evil.svg", "/files/shared/"):
        page.goto(path)
        accessible(page)
        fits(page)
        shot(page, f"files-{width}-{path.strip('/').replace('/', '-').replace('?', '-')}")
    answer = page.goto("/files/show/?path=a.ipynb")
    assert answer is not None
    assert answer.status == 200
