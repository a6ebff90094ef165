"""JupyterLab as a person uses it: opened in a browser, worked in while the platform is killed, stopped and restored."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright import sync_api as playwright

from tests.browser.conftest import ARGS, CHROMIUM
from tests.images.wheels import wheel
from tests.journeys.terminal import aip
from tests.journeys.up import PASSWORD, ROOT, Up, call, first_admin, running, until
from workers.images.store import catalog

pytestmark = pytest.mark.journey
FAKES = Path(__file__).parents[1] / "fakes"
OVER = {"stopped", "failed", "lost", "succeeded"}
CELL = """
const kernels = await (await fetch(`${base}api/kernels`)).json();
const kernel = kernels[0] || await (await fetch(`${base}api/kernels`, {method: "POST", body: "{}", headers})).json();
const socket = new WebSocket(`${base.replace("http", "ws")}api/kernels/${kernel.id}/channels?session_id=s`);
const said = [];
await new Promise((done, failed) => {
  socket.onerror = () => failed(new Error("the socket was refused"));
  socket.onopen = () => socket.send(JSON.stringify({
    channel: "shell", parent_header: {}, metadata: {}, buffers: [],
    header: {msg_id: crypto.randomUUID(), msg_type: "execute_request", username: "", session: "s", version: "5.3",
             date: new Date().toISOString()},
    content: {code, silent: false, store_history: true, user_expressions: {}, allow_stdin: false, stop_on_error: true},
  }));
  socket.onmessage = (event) => {
    const message = JSON.parse(event.data);
    if (message.msg_type === "stream") said.push(message.content.text);
    if (message.msg_type === "error") said.push(message.content.ename + ": " + message.content.evalue);
    if (message.msg_type === "execute_reply") done();
  };
});
socket.close();
return said.join("");
"""


@pytest.fixture(scope="module")
def wheels() -> Path:
    """What the built-in engine is made of, fetched once as this machine fetches packages."""
    folder = ROOT / ".test_cache" / "jupyter-wheels"
    wanted = catalog.BUILT_IN["jupyter"].requirements.split()
    if not list(folder.glob("jupyterlab-*")):
        argv = [sys.executable, "-m", "pip", "download", "-q", "-d", folder, *wanted]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"no package index to fetch JupyterLab from: {done.stderr[-300:]}")
    return folder


@pytest.fixture
def chromium():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        yield browser
        browser.close()


def signed_in(chromium, up: Up):
    page = chromium.new_page()
    page.set_default_timeout(120_000)
    page.goto(f"{up.url}/")
    page.locator("input[name=username]").fill("olga")
    page.locator("input[name=password]").fill(PASSWORD)
    page.keyboard.press("Enter")
    page.locator("[data-bell]").wait_for()
    return page


def run_cell(lab, job: int, code: str) -> str:
    """What a cell prints, run in the page's own kernel as JupyterLab does it; "" where nothing answers."""
    script = f"""async ([base, code]) => {{
      const token = document.cookie.match(/_xsrf=([^;]*)/);
      const headers = {{"Content-Type": "application/json", "X-XSRFToken": token ? token[1] : ""}};
      {CELL}
    }}"""
    base = lab.url.split("/jobs/")[0] + f"/jobs/{job}/jupyter/"
    with contextlib.suppress(playwright.Error):
        return lab.evaluate(script, [base, code])
    return ""


def opened(page, up: Up, job: int):
    """JupyterLab in a tab of its own, by the button of the job's page."""
    page.goto(f"{up.url}/jobs/{job}/")
    with page.context.expect_page() as coming:
        page.locator("#environment-open").click()
    lab = coming.value
    lab.locator("#jp-main-dock-panel").wait_for(timeout=120_000)
    return lab


@contextlib.contextmanager
def created(up: Up, token: str, folder: Path) -> Iterator[int]:
    """An environment of the files of a folder; stopped at the end, as jobs outlive `up`."""
    words = ("create", "mine", "--folder", "work", "--code", ".", "--cpus", "1", "--json")
    said, told = aip(up.url, token, folder, "env", *words).communicate(timeout=120)
    assert said, told
    job = json.loads(said)["id"]
    try:
        yield job
    finally:
        call(up.url, token, "POST", f"jobs/{job}/stop/")
        until(lambda: call(up.url, token, "GET", f"jobs/{job}/")[1]["state"] in OVER, 60, "it did not stop")


@pytest.mark.timeout(1500)  # it builds JupyterLab's engine
def test_environment_is_worked_in_while_the_platform_is_killed_and_restored_with_its_packages(
    tmp_path, wheels, chromium
):
    folder = tmp_path / "mine"
    wheel(folder, "ring", "1.0")
    (folder / "note.txt").write_text("hello")
    with running(tmp_path / "platform", AIP_ENGINE_INDEX=str(wheels)) as up, contextlib.ExitStack() as stack:
        token = first_admin(up)
        job = stack.enter_context(created(up, token, folder))

        def stands() -> dict:
            row = call(up.url, token, "GET", f"environments/{job}/")[1]
            assert row["state"] not in OVER, (row, call(up.url, token, "GET", f"jobs/{job}/log/"))
            return row

        until(lambda: stands()["condition"] == "ready", 400, "JupyterLab did not answer")
        page = signed_in(chromium, up)
        lab = opened(page, up, job)
        shown = run_cell(lab, job, "import torch, os; print(torch.ones(2).sum().item(), os.listdir('.'))")
        assert shown.startswith("2.0 ")
        assert "note.txt" in shown
        installed = run_cell(lab, job, "!pip install ./ring-1.0-py3-none-any.whl\nremembered = 41")
        assert "Successfully installed ring-1.0" in installed

        for part in ("agent", "scheduler", "ports", "aiplatform.cli.web", "celery"):
            assert up.kill(part), f"there is no process {part} to kill"
        until(lambda: stands()["state"] == "running", 60, "the platform did not come back")
        until(lambda: run_cell(lab, job, "print(remembered + 1)") == "42\n", 60, "the open tab did not go on")

        aip(up.url, token, folder, "env", "stop", str(job)).communicate(timeout=60)
        until(lambda: call(up.url, token, "GET", f"jobs/{job}/")[1]["state"] == "stopped", 60, "it did not stop")
        back = aip(up.url, token, folder, "env", "restore", str(job), "--wait")
        said, told = back.communicate(timeout=300)
        assert back.returncode == 0, said + told
        lab = opened(page, up, job)
        assert run_cell(lab, job, "import ring; print(ring.VERSION, open('note.txt').read())") == "1.0 hello\n"


def installed(folder: Path, fake: str, name: str) -> str:
    """A stand-in as programs are installed."""
    program = folder / "bin" / name
    program.parent.mkdir(parents=True)
    text = (FAKES / fake).read_text()
    program.write_text(text.replace("#!/usr/bin/env python3", f"#!{sys.executable} -I", 1))
    program.chmod(0o755)
    return str(program)


def vscode_opened(page):
    """VS Code in a tab of its own."""
    with page.context.expect_page() as coming:
        page.locator("#environment-vscode").click()
    editor = coming.value
    playwright.expect(editor.locator("h1")).to_have_text("Code", timeout=60_000)
    return editor


@pytest.mark.timeout(600)
def test_vscode_opens_from_the_page_of_an_environment(tmp_path, chromium):
    jupyter = installed(tmp_path / "jupyter", "jupyter.py", "jupyter-lab")
    coder = installed(tmp_path / "coder", "code_server.py", "code-server")
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "note.txt").write_text("hello")
    with running(tmp_path / "platform", AIP_JUPYTER=jupyter, AIP_CODE_SERVER=coder) as up:
        token = first_admin(up)
        with created(up, token, folder) as job:

            def stands() -> dict:
                row = call(up.url, token, "GET", f"environments/{job}/")[1]
                assert row["state"] not in OVER, (row, call(up.url, token, "GET", f"jobs/{job}/log/"))
                return row

            until(lambda: stands()["condition"] == "ready", 120, "JupyterLab did not answer")
            page = signed_in(chromium, up)
            page.goto(f"{up.url}/jobs/{job}/")
            editor = vscode_opened(page)
            assert f"/jobs/{job}/vscode/" in editor.url

            assert up.kill("ports"), "there is no origin to kill"
            page.reload()
            assert f"/jobs/{job}/vscode/" in vscode_opened(page).url
