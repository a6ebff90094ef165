"""Static files may be kept for a year: their addresses say which content they have."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest
from django.contrib.staticfiles import finders
from django.http import HttpResponse
from django.templatetags.static import static
from django.test import Client, RequestFactory

from aiplatform.lib import static_files
from datasets import shapes
from inference.kit.task_kinds import TASKS

ROOT = Path(__file__).parents[2]
PAGES = ["/", "/styleguide/", "/datasets/new/", "/training/", "/cluster/", "/people/", "/admin/", "/api/docs/"]
IN_PAGES = re.compile(r"""(?:href|src)="(/static/[^"#]+)""")
IN_TEMPLATES = re.compile(r"{% static ['\"]([^'\"]+)['\"] %}")
IN_SCRIPTS = re.compile(
    r"""^\s*(?:import|export)\b[^"';=(]*?\bfrom\s*["']([^"']+)["']|^\s*import\s*["']([^"']+)["']|"""
    r"""\bimport\(\s*["']([^"']+)["']\s*\)|"""
    r"""\bnew URL\(\s*["']([^"']+)["'],\s*import\.meta\.url\)""",
    re.MULTILINE,
)
IN_SHEETS = re.compile(r"""(?:url\(|@import\s+)["']?(?!data:|#)([^"')]+)""")


def named_in(address: str, text: str) -> set[str]:
    """Addresses that a script or a style sheet names."""
    pattern = {".js": IN_SCRIPTS, ".css": IN_SHEETS}.get(Path(urlsplit(address).path).suffix)
    found = [next(filter(None, match.groups())) for match in pattern.finditer(text)] if pattern else []
    names = [name for name in found if not name.endswith("/")]  # a folder is no file
    return {urlsplit(urljoin(address, name))._replace(fragment="").geturl() for name in names}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The only folder with static files, holding one script."""
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "frame.js").write_text("one();")
    finder = finders.FileSystemFinder()
    storage = finders.FileSystemStorage(location=str(tmp_path))
    storage.prefix = ""
    monkeypatch.setattr(finder, "list", lambda _ignored: [("base/frame.js", storage)])
    monkeypatch.setattr(finders, "get_finders", lambda: [finder])
    forget()
    yield tmp_path
    forget()


def forget() -> None:
    static_files.digests.cache_clear()
    static_files.fingerprint.cache_clear()


def served(method: str = "GET", address: str = "") -> HttpResponse:
    """Answer of a server that starts now."""
    middleware = static_files.StaticMiddleware(lambda _request: HttpResponse(status=404))
    return middleware(RequestFactory().generic(method, address or static("base/frame.js")))


def test_static_files_are_all_addressed_by_fingerprint_and_kept_a_year(olga):
    client, stranger = Client(), Client()
    client.force_login(olga)
    todo = set()
    for page in PAGES:
        answer = client.get(page, follow=True)
        assert (page, answer.status_code) == (page, 200)
        assert "no-store" in answer["Cache-Control"] or "no-cache" in answer["Cache-Control"]
        named = set(IN_PAGES.findall(answer.content.decode()))
        assert named, page
        todo |= named
    todo |= {static(f"annotation/shapes/{kind.tool}.js") for kind in shapes.drawable()}
    todo |= set(IN_PAGES.findall(stranger.get("/login/").content.decode()))
    for template in (ROOT / "templates").rglob("*.html"):
        todo |= {static(name) for name in IN_TEMPLATES.findall(template.read_text())}
    for task in TASKS.values():
        todo |= {static(name) for name in (task.pages.script, task.pages.try_script) if name}

    seen: set[str] = set()
    while todo - seen:
        address = (todo - seen).pop()
        seen.add(address)
        answer = stranger.get(address)
        assert (address, answer.status_code) == (address, 200)
        assert address.startswith(f"/static/{static_files.fingerprint()}/"), address
        assert (address, answer["Cache-Control"]) == (address, "max-age=31536000, public, immutable")
        if address.endswith((".js", ".css")):
            todo |= named_in(address, answer.content.decode())

    paths = {address.split("/", 3)[3] for address in seen}
    ours = {str(path.relative_to(path.parents[1])) for path in ROOT.glob("*/static/*/*.js")}
    assert ours - paths == {
        "base/modules.js"
    }  # every script is reached from some page; this one is in the frame's bundle
    assert {"annotation/shapes/box.js", "annotation/shapes/kind.js", "base/icons.svg", "uplot/uPlot.iife.js"} <= paths


def test_static_files_are_never_addressed_by_hand_in_sources():
    sources = [*ROOT.glob("*/static/**/*.js"), *ROOT.glob("*/static/**/*.css"), *(ROOT / "templates").rglob("*.html")]

    assert [str(path.relative_to(ROOT)) for path in sources if re.search(r"""["'(`]/static/""", path.read_text())] == []


def test_static_fingerprint_changes_with_any_file(folder):
    before = static("base/frame.js")
    assert served()["Cache-Control"] == static_files.KEPT_FOR_A_YEAR

    (folder / "base" / "frame.js").write_text("two();")
    forget()  # as a new process begins

    assert static("base/frame.js") != before
    assert re.fullmatch(r"/static/[0-9a-f]{16}/base/frame\.js", before)
    assert served(address=before)["Cache-Control"] == "no-cache"
    assert served().content == b"two();"


def test_static_file_changed_under_a_running_server_is_whole_and_not_kept(folder):
    middleware = static_files.StaticMiddleware(lambda _request: HttpResponse(status=404))
    request = RequestFactory().get(static("base/frame.js"))
    assert middleware(request)["Cache-Control"] == static_files.KEPT_FOR_A_YEAR

    (folder / "base" / "frame.js").write_text("something_longer();")
    answer = middleware(request)

    assert answer["Cache-Control"] == "no-cache"
    assert (answer.content, answer["Content-Length"]) == (b"something_longer();", "19")


def test_static_fingerprinted_address_takes_get_and_head_of_known_names(folder):
    head = served("HEAD")

    assert (head.content, head["Content-Length"], head["Cache-Control"]) == (b"", "6", static_files.KEPT_FOR_A_YEAR)
    assert served("POST").status_code == 405
    assert served(address=static("base/other.js")).status_code == 404
    assert served(address=static("../settings.py")).status_code == 404


def test_static_plain_address_is_kept_for_minutes_only(folder):
    assert served(address="/static/base/frame.js")["Cache-Control"] == "max-age=300, public"


def test_static_addresses_are_plain_while_debugging(folder, settings):
    settings.DEBUG = True

    assert static("base/frame.js") == "/static/base/frame.js"


def requested(method: str = "GET", **headers: str) -> HttpResponse:
    """Response to a request for the script under its address without fingerprint."""
    middleware = static_files.StaticMiddleware(lambda _request: HttpResponse(status=404))
    return middleware(RequestFactory().generic(method, "/static/base/frame.js", headers=headers))


def test_static_plain_address_is_compressed_with_a_weak_etag(folder, settings, tmp_path):
    settings.RUN_DIR = tmp_path / "run"
    text = "const one = 1;\n" * 200
    (folder / "base" / "frame.js").write_text(text)
    plain = requested()

    compressed = requested(accept_encoding="gzip")

    assert gzip.decompress(compressed.content).decode() == plain.content.decode() == text
    assert (compressed["Content-Encoding"], compressed["Vary"]) == ("gzip", "Accept-Encoding")
    assert compressed["Content-Length"] == str(len(compressed.content))
    assert compressed["ETag"] == f"W/{plain['ETag']}"
    head = requested("HEAD", accept_encoding="gzip")
    assert (head.content, head["Content-Length"]) == (b"", str(len(compressed.content)))
    for etag in (plain["ETag"], compressed["ETag"]):
        assert requested(accept_encoding="gzip", if_none_match=etag).status_code == 304


def test_static_ranges_are_parts_of_the_plain_file(folder):
    (folder / "base" / "frame.js").write_text("const one = 1;\n" * 200)

    part = requested(accept_encoding="gzip", range="bytes=15-29")

    assert (part.status_code, part.content, "Content-Encoding" in part) == (206, b"const one = 1;\n", False)
    assert not part["ETag"].startswith("W/")
    assert requested("POST", accept_encoding="gzip").status_code == 405
