"""The help site: what is built, what it contains, and how it is served."""

from __future__ import annotations

import gzip
import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import brotli
import pytest
from django.core.management import CommandError, call_command
from django.template.loader import render_to_string
from django.urls import Resolver404, resolve
from django.utils import translation

from aiplatform import env
from aiplatform.frame import navigation
from aiplatform.lib import guides
from aiplatform.lib.problems import problem
from aiplatform.pages.help import reference, site
from tests.cases import case_table
from tests.help_site import built_site
from workers.core.states import JobState

LOADED = re.compile(r'<(?:script|img|source|iframe|link)\b[^>]*?\b(?:src|href)="?((?:https?:)?//[^"\s>]+)')
INLINE = re.compile(r'<script(?![^>]*(?:src=|type="application/json"))|<style|\sstyle=|\son[a-z]+="')


@pytest.fixture
def help_folder(monkeypatch):
    folder = built_site()
    monkeypatch.setattr(site, "root", lambda: folder)
    return folder


def is_page(path):
    try:
        return resolve(path) is not None
    except Resolver404:
        return False


def pages(folder):
    return sorted((folder / site.CURRENT).rglob("*.html"))


def test_site_loads_nothing_from_other_hosts_and_has_no_inline_code(help_folder):
    assert len(pages(help_folder)) > 90
    for page in pages(help_folder):
        text = page.read_text()
        assert LOADED.findall(text) == [], page
        assert INLINE.findall(text) == [], page
    for sheet in (help_folder / site.CURRENT).rglob("*.css"):
        assert re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", sheet.read_text()) == [], sheet


def test_links_to_the_product_and_to_the_other_language_lead_somewhere(help_folder):
    broken = set()
    for page in pages(help_folder):
        for address in re.findall(r'<a[^>]*\shref="?(/[^"\s>]*)', page.read_text()):
            path = urlsplit(address).path
            name = path.removeprefix("/help/")
            file = f"{name}index.html" if name == "" or name.endswith("/") else name
            if not (site.find_file(file) if path.startswith("/help/") else is_page(path)):
                broken.add((page.parent.name, address))
    assert broken == set()


def test_site_is_built_again_only_after_a_change(help_folder):
    from aiplatform.pages.help import build

    pages_of_today = {language: reference.generated_pages(language) for language in build.LANGUAGES}

    assert not build.build_site(help_folder)
    version = site.current_version(help_folder)
    assert version.startswith(build.source_digest(pages_of_today) + "-")
    pages_of_today["en"]["glossary.md"] += "another term"
    assert not version.startswith(build.source_digest(pages_of_today))


def test_forced_build_replaces_no_folder_that_is_served(tmp_path, monkeypatch):
    from aiplatform.pages.help import build

    monkeypatch.setattr(site, "root", lambda: tmp_path)
    monkeypatch.setattr(build, "_build_language", _write_page)
    assert build.build_site(tmp_path)
    first = site.find_file("index.html")
    assert build.build_site(tmp_path, is_forced=True)

    second = site.find_file("index.html")
    assert first.path != second.path
    assert first.path.read_text() == second.path.read_text()


def test_builds_at_the_same_time_wait_for_each_other(tmp_path, monkeypatch):
    from aiplatform.pages.help import build

    at_once = []

    def slow(name, target, pages):
        at_once.append(len(list(tmp_path.glob("draft-*"))))
        time.sleep(0.1)  # pause: others would begin meanwhile
        _write_page(name, target, pages)

    monkeypatch.setattr(build, "_build_language", slow)
    with ThreadPoolExecutor(3) as pool:
        built = list(pool.map(lambda _number: build.build_site(tmp_path), range(3)))

    assert sorted(built) == [False, False, True]
    assert at_once == [1, 1]


def _write_page(_name, target, _pages):
    target.mkdir(exist_ok=True)
    (target / "index.html").write_text("<h1>Help</h1>")


def test_site_that_could_not_be_read_once_is_found_by_the_next_request(tmp_path, monkeypatch):
    monkeypatch.setattr(site, "root", lambda: tmp_path)
    (tmp_path / site.CURRENT).symlink_to("version")
    before = site.find_file("index.html")
    (tmp_path / "version").mkdir()
    (tmp_path / "version" / site.MANIFEST).write_text(
        json.dumps({"index.html": {"digest": "", "immutable": False, "encodings": []}})
    )

    assert before is None
    assert site.find_file("index.html") is not None


def test_broken_link_fails_the_build_and_keeps_the_site(tmp_path, monkeypatch):
    from aiplatform.pages.help import build

    pages_with_error = {"glossary.md": "# Glossary\n[nothing](no-such-page.md)\n"}
    monkeypatch.setattr(build, "generated_pages", lambda _language: pages_with_error)
    (tmp_path / "before").mkdir()
    (tmp_path / site.CURRENT).symlink_to("before")

    with pytest.raises(CommandError, match=r"no-such-page\.md"):
        call_command("help_site", to=tmp_path)

    assert site.current_version(tmp_path) == "before"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("draft")] == []


def test_help_is_readable_before_sign_in_and_compressed(help_folder, client):
    plain = client.get("/help/")
    packed = client.get("/help/", headers={"accept-encoding": "br"})
    zipped = client.get("/help/", headers={"accept-encoding": "gzip"})

    assert plain.status_code == 200
    assert "aiplatform help" in plain.content.decode()
    assert packed["Content-Encoding"] == "br"
    assert brotli.decompress(packed.content) == plain.content
    assert gzip.decompress(zipped.content) == plain.content
    assert len({plain["ETag"], packed["ETag"], zipped["ETag"]}) == 3
    assert "Accept-Encoding" in plain["Vary"]
    assert "script-src 'self'" in plain["Content-Security-Policy"]


def test_help_page_is_revalidated_and_fingerprinted_files_are_kept_for_a_year(help_folder, client):
    page = client.get("/help/how-to/train/")
    again = client.get("/help/how-to/train/", headers={"if-none-match": page["ETag"]})
    script = re.search(r'src="([^"]*bundle[^"]*)"', page.content.decode())[1].removeprefix("../../")

    assert page["Cache-Control"] == "no-cache"
    assert (again.status_code, again.content) == (304, b"")
    assert client.get(f"/help/{script}")["Cache-Control"] == "max-age=31536000, public, immutable"
    assert client.get(f"/help/{script}")["Content-Type"].startswith("text/javascript")
    assert client.get("/help/search/search_index.json")["Cache-Control"] == "no-cache"


@case_table(
    "path",
    [
        "no-such-page/",
        "../settings.py",
        "%2e%2e/manifest.json",
        "manifest.json",
        "index.html.br",
        "how-to/../index.html",
    ],
)
def test_help_serves_only_files_of_the_site(help_folder, client, path):
    assert client.get(f"/help/{path}").status_code == 404


def test_help_address_without_slash_leads_to_its_page(help_folder, client):
    assert client.get("/help/how-to/train").url == "/help/how-to/train/"
    assert client.head("/help/").content == b""
    assert client.post("/help/").status_code == 405


def test_help_says_that_it_is_not_built_yet(monkeypatch, tmp_path, client):
    monkeypatch.setattr(site, "root", lambda: tmp_path)

    page = client.get("/help/how-to/train/")

    assert "The documentation is being built." in page.content.decode()
    assert page["Retry-After"] == "10"


def test_every_guide_exists_in_the_languages_that_it_is_linked_in(help_folder):
    for path in guides.GUIDES:
        for language in ("en", "zh-hans"):
            with translation.override(language):
                address = guides.help_url(f"{path}17/")
            assert site.find_file(f"{address.removeprefix('/help/')}index.html"), (path, address)
        assert is_page(path) or is_page(f"{path}17/"), path


def test_every_page_of_the_navigation_has_a_guide():
    paths = {path for tab in navigation.all_tabs() for path in (tab.path, *tab.also)} - {"/"}

    assert len(paths) > 30
    assert {path for path in paths if guides.guide_of(path) == ""} == set()


def test_help_link_of_the_frame_leads_to_the_guide_of_the_page(rf):
    link = render_to_string("components/help_link.html", {"request": rf.get("/services/12/")})

    assert 'href="/help/how-to/endpoints/"' in link


def test_guide_of_a_page_is_that_of_the_longest_beginning():
    assert guides.help_url("/training/new/") == "/help/how-to/train/"
    assert guides.help_url("/training/compare/?run=1") == "/help/how-to/experiments/"
    assert guides.help_url("/no-page/") == "/help/"
    with translation.override("zh-hans"):
        assert guides.help_url("/training/") == "/help/zh/how-to/train/"
        assert guides.help_url("/alarms/") == "/help/operator/monitoring/"


def test_every_error_code_and_state_is_explained_and_nothing_else(help_folder):
    meanings = reference._meanings()
    page = (help_folder / site.CURRENT / "reference/errors/index.html").read_text()

    assert set(meanings["errors"]) == set(reference.error_classes())
    assert set(meanings["states"]) == set(JobState.values)
    for code in (*meanings["errors"], *meanings["general_errors"]):
        assert f'id="{code}"' in page


def test_problem_names_the_entry_of_its_code(help_folder):
    address = str(problem(409, "name_taken", "Taken.")["type"])

    path, _hash, anchor = address.removeprefix("/help/").partition("#")
    assert f'id="{anchor}"' in (help_folder / site.CURRENT / path / "index.html").read_text()


def test_settings_page_has_every_variable_and_no_value_of_this_installation():
    page = reference.settings()

    assert [name for name in env.documented if f"`{name}`" not in page] == []
    assert str(env.DATA_ROOT) not in page
    assert str(env.BASE_DIR) not in page


def test_search_ranks_pages_before_sections_of_others(help_folder):
    index = json.loads((help_folder / site.CURRENT / "search/search_index.json").read_text())
    boosts = {"#" in entry["location"]: entry.get("boost", 1) for entry in index["docs"]}

    assert boosts[False] > boosts[True]


def test_search_index_of_the_chinese_site_finds_single_characters(help_folder):
    index = json.loads((help_folder / site.CURRENT / "zh/search/search_index.json").read_text())
    titles = [entry["title"].replace("\u200b", "") for entry in index["docs"]]

    assert "导入数据集" in titles
    assert all("数据" not in entry["title"] for entry in index["docs"])
