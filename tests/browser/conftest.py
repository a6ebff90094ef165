"""A real browser on a real server: what pages ask, what they log, what they show.

    @pytest.mark.browser
    def test_something(open_as, alice):
        page = open_as(alice)                 # a signed-in Playwright page; width=, dark=, language= as wanted
        page.goto("/datasets/")

Every page is watched: a request to a foreign host, an error on the console, an uncaught exception or a
refused policy fails the test at its end. Say `page.watch.allow("status of 422")` for an error you provoke.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.test import Client

from tests.running import free_port

os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")  # Playwright's sync API keeps a loop in this thread

#: The first of them draws the same pages and has no windows around them, for half the processor time.
BROWSERS = [f"/usr/bin/{name}" for name in ("chromium-headless-shell", "chromium", "chromium-browser")]
CHROMIUM = next((p for p in (os.environ.get("AIP_CHROMIUM", ""), *BROWSERS) if p and Path(p).exists()), "")
ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
PATIENCE_MS = 60_000  # what a page may take on a machine that is busy with other things
#: What axe-core judges by colours; in no more do the themes differ (tests/architecture/test_dark_theme.py).
COLOUR_RULES = ["color-contrast", "link-in-text-block"]
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


#: A test of pages in the look that is harder to get right, and in the long form in the usual one, too.
in_both_looks = pytest.mark.parametrize(
    ("width", "dark", "language"),
    [
        pytest.param(1440, False, "en", id="wide", marks=pytest.mark.long),
        pytest.param(390, True, "zh-CN", id="narrow-chinese"),
    ],
)


def pytest_configure(config: pytest.Config) -> None:
    """Django's ASGI handler leaves the files of an answer to the collector, which may come at any time."""
    config.addinivalue_line("filterwarnings", "ignore:[uU]nclosed file:ResourceWarning")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder is a browser test, and says so where there is no browser."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)
            # A test that hangs in Playwright's loop receives no exception: its process prints its stacks and ends.
            item.add_marker(pytest.mark.timeout(method="thread"))
            if not CHROMIUM:
                item.add_marker(pytest.mark.skip(reason="no Chromium found (/usr/bin/chromium or AIP_CHROMIUM)"))


@dataclass
class Watch:
    """What a page did that it should not have done."""

    own: str  # host:port of the site
    seen: list[str] = field(default_factory=list)
    allowed: list[str] = field(default_factory=list)

    def allow(self, words: str) -> None:
        """An error whose text contains `words` is meant."""
        self.allowed.append(words)

    def request(self, request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in {"http", "https", "ws", "wss"} and parts.netloc != self.own:
            self.seen.append(f"request to a foreign host: {request.url}")

    def console(self, message) -> None:
        if message.type == "error":
            self.seen.append(f"console: {message.text} ({message.location.get('url', '')})")

    def broke(self, error) -> None:
        self.seen.append(f"uncaught: {error}")

    def verdict(self) -> list[str]:
        return [line for line in self.seen if not any(words in line for words in self.allowed)]


@pytest.fixture(scope="session")
def _server(django_db_setup, django_db_blocker) -> Iterator[str]:
    """The whole site (pages, API, raw ASGI, WebSockets) in a thread, on the tests' database."""
    import uvicorn

    from aiplatform.asgi import application

    port = free_port()
    config = uvicorn.Config(
        application, host="127.0.0.1", port=port, log_level="error", lifespan="off", ws="websockets-sansio"
    )
    server = uvicorn.Server(config)
    with django_db_blocker.unblock():
        thread = threading.Thread(target=server.run, name="site", daemon=True)
        thread.start()
        deadline = time.monotonic() + 120
        while not server.started and time.monotonic() < deadline:
            thread.join(0.05)
        assert server.started, "the site did not start"
        yield f"http://127.0.0.1:{port}"
        server.should_exit = True
        thread.join(10)


@pytest.fixture
def site(transactional_db, _server) -> str:
    """Address of the running site. Rows a test makes are committed, and gone after it; preset roles stay."""
    return _server


@pytest.fixture(scope="session")
def chromium():
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        yield browser
        browser.close()


@pytest.fixture
def open_as(site, chromium) -> Iterator[Callable]:
    """`open_as(user_or_None, width=1440, height=900, dark=False, language="en")` → a watched page."""
    contexts, watches = [], []

    def open_page(user=None, *, width=1440, height=900, dark=False, language="en", **more):
        context = chromium.new_context(
            base_url=site,
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
            locale=language,
            **more,
        )
        contexts.append(context)
        if user is not None:
            client = Client()
            client.force_login(user)
            cookie = client.cookies[settings.SESSION_COOKIE_NAME]
            context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": site}])
        watch = Watch(urlsplit(site).netloc)
        watches.append(watch)
        context.on("request", watch.request)
        page = context.new_page()
        page.on("console", watch.console)
        page.on("pageerror", watch.broke)
        page.set_default_timeout(PATIENCE_MS)
        page.watch = watch
        return page

    yield open_page
    for context in contexts:
        context.close()
    found = [line for watch in watches for line in watch.verdict()]
    assert found == []


@pytest.fixture
def accessible() -> Callable:
    """`accessible(page)` fails when axe-core finds a violation of WCAG 2.2 AA or of good practice.

    `accessible(page, rules=COLOUR_RULES)` looks for these alone, where the page was judged whole in the other theme.
    """
    from axe_playwright_python.base import AXE_SCRIPT
    from axe_playwright_python.sync_playwright import Axe

    def judge(page, *, rules: list[str] | None = None) -> None:
        asked = {"type": "rule", "values": rules} if rules else RULES
        script = "0" if page.evaluate("() => 'axe' in window") else AXE_SCRIPT
        result = Axe(script).run(page, options={"runOnly": asked, "resultTypes": ["violations"]})  # else: 4× the time
        assert result.violations_count == 0, f"{page.url}\n{result.generate_report()}"

    return judge


@pytest.fixture
def fits() -> Callable:
    """`fits(page)` fails when the page is wider than the window."""

    def judge(page) -> None:
        wide = page.evaluate(
            """() => document.documentElement.scrollWidth <= innerWidth ? [] :
            [...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1)
              .slice(0, 5).map(e => e.outerHTML.slice(0, 120))"""
        )
        assert wide == [], f"{page.url} is wider than its window"

    return judge


@pytest.fixture
def shot() -> Callable:
    """`shot(page, "name")` keeps a picture where AIP_SCREENSHOTS names a folder; does nothing otherwise."""

    def take(page, name: str, *, full: bool = False) -> None:
        folder = os.environ.get("AIP_SCREENSHOTS")
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            page.screenshot(path=Path(folder) / f"{name}.png", full_page=full)

    return take


@pytest.fixture
def work(alice, anna):
    """Three images of Alice's to annotate, with Anna as a member."""
    from annotation.services import projects
    from tests.factories import annotation as make

    made = make.annotation_set(alice, images=3)
    projects.add_member(made.project, username="anna", by=alice)
    return made


@pytest.fixture
def hands(open_as, alice, work):
    """Alice at the annotator, before the first image."""
    from tests.browser.hands import Hands

    return Hands(open_as(alice), work)
