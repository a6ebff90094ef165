"""A program in a job, opened in a real browser: it works, and gains nothing of the platform."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.conftest import ARGS, CHROMIUM
from tests.journeys.up import PASSWORD, ROOT, Up, call, first_admin, running, until
from tests.running import printed_in

pytestmark = pytest.mark.journey
SERVER = ROOT / "tests" / "journeys" / "port_server.py"


def a_port() -> int:
    """One that people may publish and that nobody has: jobs of weaker tiers share the machine's loopback."""
    for port in random.sample(range(40_000, 50_000), 50):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("every port is taken")


@contextlib.contextmanager
def started(up: Up, token: str, port: int) -> Iterator[int]:
    """The server as a job that listens; stopped at the end, as jobs outlive `up`."""
    text = f"#!/usr/bin/env python\nimport sys\nsys.argv = ['server', '{port}', {up.url!r}]\n{SERVER.read_text()}"
    status, made = call(up.url, token, "POST", "commands/", {"command": text, "name": "dashboard", "cpus": 0.5})
    assert status == 201, made
    job = made["id"]

    def state() -> str:
        return call(up.url, token, "GET", f"jobs/{job}/")[1]["state"]

    def listens() -> bool:
        assert state() != "failed", call(up.url, token, "GET", f"jobs/{job}/log/")
        return "listening" in printed_in(call(up.url, token, "GET", f"jobs/{job}/log/")[1]["text"])

    try:
        until(listens, 90, "the server in the job did not start")
        yield job
    finally:
        call(up.url, token, "POST", f"jobs/{job}/stop/")
        until(lambda: state() in {"stopped", "failed", "succeeded"}, 60, "the end of the job")


def by_token(up: Up, job: int, token: str) -> tuple[int, str]:
    """What a script gets at the port."""
    address = f"http://127.0.0.1:{up.ports_port}/jobs/{job}/demo/"
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read().decode()


@pytest.fixture
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        yield browser
        browser.close()


@pytest.mark.long
def test_i03_page_of_a_job_neither_reads_nor_acts_on_the_platform(tmp_path: Path, chromium):
    from playwright.sync_api import expect

    with running(tmp_path / "platform") as up, contextlib.ExitStack() as stack:
        token, port = first_admin(up), a_port()
        job = stack.enter_context(started(up, token, port))
        published = call(up.url, token, "POST", f"jobs/{job}/ports/", {"port": port, "name": "demo"})
        assert published[0] == 201, published
        page = chromium.new_page()
        page.set_default_timeout(90_000)
        page.goto(f"{up.url}/login/")
        page.fill("[name=username]", "olga")
        page.fill("[name=password]", PASSWORD)
        page.press("[name=password]", "Enter")
        page.wait_for_url(f"{up.url}/")
        page.goto(f"{up.url}/jobs/{job}/?tab=ports")

        with page.context.expect_page() as opened:
            page.click("#panel-ports button.btn-primary")
        tab = opened.value
        tab.wait_for_url(f"http://127.0.0.1:{up.ports_port}/jobs/{job}/demo/")
        expect(tab.locator("#found")).not_to_be_empty(timeout=120_000)
        found = json.loads(tab.text_content("#found"))
        address = tab.url

        up.kill("manage.py\0ports")
        until(lambda: by_token(up, job, token)[0] == 200, 60, "the origin did not come back")
        tab.reload()
        expect(tab.locator("#found")).not_to_be_empty(timeout=120_000)
        state = call(up.url, token, "GET", f"jobs/{job}/")[1]["state"]
        still = page.request.get(f"{up.url}/api/v1/me/").status
        log = printed_in(call(up.url, token, "GET", f"jobs/{job}/log/")[1]["text"])

        call(up.url, token, "DELETE", f"jobs/{job}/ports/demo/")
        until(lambda: by_token(up, job, token)[0] == 404, 30, "the withdrawn port is still open")
        outside = tab.reload().status

    assert address == f"http://127.0.0.1:{up.ports_port}/jobs/{job}/demo/"
    assert found["own"] == "echo hello"
    assert {"sessionid", "csrftoken"} & set(found["cookies"].replace("=", ";").split(";")) == set()
    assert (found["read"], found["page"]) == ("refused: TypeError", "refused: TypeError")
    assert (found["socket"], found["worker"][:7], found["opener"]) == ("refused", "refused", "null")
    assert (state, still, outside) == ("running", 200, 403)
    assert [line for line in log.splitlines() if line.startswith("heard")] == ["heard {}"] * log.count("heard")
