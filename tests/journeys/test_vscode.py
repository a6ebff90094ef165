"""VS Code as a person opens it: by the button of an environment's page, in a tab of its own, again after a kill."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from playwright import sync_api as playwright

from tests.browser.conftest import CHROMIUM
from tests.journeys.test_environments import OVER, chromium, created, signed_in  # noqa: F401 - a fixture among them
from tests.journeys.up import call, first_admin, running, until

pytestmark = [pytest.mark.journey, pytest.mark.skipif(not CHROMIUM, reason="no Chromium found")]
FAKES = Path(__file__).parents[1] / "fakes"


def installed(folder: Path, fake: str, name: str) -> str:
    """A stand-in as programs are installed."""
    program = folder / "bin" / name
    program.parent.mkdir(parents=True)
    text = (FAKES / fake).read_text()
    program.write_text(text.replace("#!/usr/bin/env python3", f"#!{sys.executable} -I", 1))
    program.chmod(0o755)
    return str(program)


def opened(page):
    """VS Code in a tab of its own."""
    with page.context.expect_page() as coming:
        page.locator("#environment-vscode").click()
    editor = coming.value
    playwright.expect(editor.locator("h1")).to_have_text("Code", timeout=60_000)
    return editor


@pytest.mark.timeout(600)
def test_vscode_opens_from_the_page_of_an_environment(tmp_path, chromium):  # noqa: F811 - the fixture
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
            editor = opened(page)
            assert f"/jobs/{job}/vscode/" in editor.url

            assert up.kill("ports"), "there is no origin to kill"
            page.reload()
            assert f"/jobs/{job}/vscode/" in opened(page).url
