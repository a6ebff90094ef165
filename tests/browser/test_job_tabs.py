"""Tabs of a job's page and its console in a real browser: by keyboard, at every width, in both languages."""

import json
import re
import time

import pytest
from playwright.sync_api import expect

from tests.factories import work
from workers.execution.agent import device_errors
from workers.jobs.output.device_errors import FOLDER

TABS = ("overview", "console", "metrics", "ports", "files", "events", "spec")
LOG = """[environment] attempt number=1
[environment] machine node=node1 rank=0 nodes=2 devices=gpu0,gpu1
[network] own_with_proxy
[variables] given number=14 secret=3
[image] layer number=2 of=3 bytes=23908352 seconds=1.2
[command] line argv="python train.py --lr 0.1"
[rank1]: epoch 1
[rank0]: epoch 1
ModuleNotFoundError: No module named 'timm'
[program] exited code=1 seconds=12.5
"""


@pytest.fixture
def failed(site, alice, cluster):
    node = work.node("node1", gpus=2, simulated=True)
    job = work.job(alice, cluster, name="digits", state="failed", reason="user_code", nodes=2, gpus_per_node=2)
    work.hold(job, *node.devices.filter(kind="gpu"))
    run = work.run_dir(job)
    run.log.write_text(LOG)
    (run.path / "ranks" / "1").mkdir(parents=True)
    (run.path / "ranks" / "1" / "log.txt").write_text("[network] host\nfrom the second machine\n")
    (run.path / FOLDER).mkdir()
    line = device_errors.Line(
        "1", time.time(), "gpu1", 79, "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."
    )
    device_errors.append_lines(run.path / FOLDER / "node1.jsonl", [line])
    (run.outputs).mkdir(parents=True)
    (run.outputs / "model.json").write_text(json.dumps({"a": 1}))
    return job


@pytest.mark.parametrize(("width", "dark", "language"), [(1440, False, "en"), (390, True, "zh-hans")])
def test_job_tabs_fit_and_are_accessible(open_as, failed, alice, accessible, fits, shot, width, dark, language):
    page = open_as(alice, width=width, dark=dark, language=language)

    for tab in TABS:
        page.goto(f"/jobs/{failed.pk}/?tab={tab}")
        page.wait_for_timeout(400)
        shot(page, f"tabs-{tab}-{width}", full=True)
        fits(page)
        accessible(page)


def test_job_tabs_are_links_that_the_keyboard_reaches(open_as, failed, alice):
    page = open_as(alice, java_script_enabled=False)
    page.goto(f"/jobs/{failed.pk}/")

    page.locator(".job-tabs a", has_text="Console").press("Enter")

    page.wait_for_url("**/?tab=console")
    assert page.locator(".job-tabs a[aria-current]").inner_text() == "Console"
    assert page.locator("#h-causes").count() == 1
    assert page.locator("#h-device-errors").count() == 1


def test_job_console_tells_phases_in_words_and_shows_those_that_are_wanted(open_as, failed, alice):
    page = open_as(alice)
    page.goto(f"/jobs/{failed.pk}/?tab=console")
    lines = page.locator("[data-log-lines]")
    page.get_by_text("Exited with code 1 after").wait_for()

    everything = lines.inner_text()
    page.locator("[data-log-phase=network]").press("Enter")
    page.locator(".log-line", has_text="epoch").first.wait_for(state="detached")
    network = lines.inner_text()
    page.locator("[data-log-phase=image]").press("Enter")
    page.locator(".log-line").nth(1).wait_for()
    both = page.locator(".log-line").count()

    assert "14 set, 3 of them secret" in everything
    assert "python train.py --lr 0.1" in everything
    assert "[rank1]: epoch 1" in everything
    assert "outgoing connections use the proxy of the platform" in network
    assert "epoch" not in network
    assert both == 2


def test_job_console_shows_one_process_until_another_log_is_chosen(open_as, failed, alice):
    page = open_as(alice)
    page.goto(f"/jobs/{failed.pk}/?tab=console")
    page.get_by_text("Exited with code 1 after").wait_for()
    lines, choice = page.locator("[data-log-lines]"), page.locator("[data-log-process]")

    first = page.locator(".log-line", has_text="[rank0]").first
    choice.select_option("1")
    first.wait_for(state="detached")
    one = lines.inner_text()
    choice.select_option("-1")
    first.wait_for()
    choice.select_option("0")
    page.locator("[data-log-rank]").select_option("1")
    page.get_by_text("from the second machine").wait_for()

    assert "[rank1]: epoch 1" in one
    assert "[rank0]" not in one
    assert choice.is_hidden()


def test_job_console_orders_by_card_and_changes_the_machine(open_as, failed, alice):
    page = open_as(alice)
    page.goto(f"/jobs/{failed.pk}/?tab=console")
    page.get_by_text("Exited with code 1 after").wait_for()

    page.locator("[data-log-cards]").click()
    expect(page.locator("[data-log-lines]")).to_have_text(re.compile(r"\[rank0\].*\[rank1\]", re.DOTALL))
    page.locator("[data-log-rank]").select_option("1")
    page.get_by_text("from the second machine").wait_for()

    assert page.locator(".log-line", has_text="epoch").count() == 0
    assert page.locator("[data-log-download]").get_attribute("href").endswith("?attempt=1&rank=1")


def test_job_console_speaks_the_readers_language(open_as, failed, alice):
    page = open_as(alice, language="zh-hans")
    page.goto(f"/jobs/{failed.pk}/?tab=console")

    page.get_by_text("退出码 1").wait_for()

    assert "共 14 个，其中 3 个为机密" in page.locator("[data-log-lines]").inner_text()
