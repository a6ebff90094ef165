"""SSH on the page of a job in a real browser: both themes and languages, narrow and wide, by keyboard alone."""

from __future__ import annotations

import pytest

from tests.factories import work as rows
from tests.running import wait_for
from workers.access.ssh import access, host_key
from workers.access.ssh.models import SshSession

pytestmark = pytest.mark.long


@pytest.fixture
def running(site, alice, cluster):
    host_key.store(b"private", b"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f\n")
    job = rows.job(alice, cluster, name="digits", state="running")
    rows.run_dir(job).log.write_bytes(b"hello\n")
    return job


@pytest.fixture
def session(running, alice):
    return SshSession.objects.create(
        job=running, user=alice, way="key", key_name="laptop", address="2001:db8::dead:beef:cafe", gateway="g"
    )


@pytest.mark.parametrize(("width", "language"), [(390, "en"), (1440, "zh-CN")], ids=["narrow-english", "wide-chinese"])
def test_ssh_panel_and_password_page_are_accessible_and_fit(
    open_as, running, session, alice, accessible, fits, shot, width, language
):
    page = open_as(alice, width=width, height=844, language=language)
    for dark in ("light", "dark"):
        page.emulate_media(color_scheme=dark)
        page.goto(f"/jobs/{running.pk}/?tab=ports")
        page.locator("#panel-ssh summary").click()
        accessible(page)
        fits(page)
        shot(page, f"ssh-panel-{width}-{dark}", full=True)
        page.locator("#ssh-password").click()
        page.locator("#ssh-secret").wait_for()
        accessible(page)
        fits(page)
        shot(page, f"ssh-password-{width}-{dark}")


def test_ssh_password_is_made_and_a_session_ended_by_keyboard_alone(open_as, running, session, alice):
    page = open_as(alice)
    page.goto(f"/jobs/{running.pk}/?tab=ports")
    page.locator("#ssh-password").focus()
    page.keyboard.press("Enter")
    secret = page.locator("#ssh-secret").inner_text()
    page.goto(f"/jobs/{running.pk}/?tab=ports")
    page.get_by_role("button", name="End the session from 2001:db8::dead:beef:cafe").focus()
    page.keyboard.press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="End", exact=True).wait_for()
    page.get_by_role("dialog").get_by_role("button", name="End", exact=True).focus()
    page.keyboard.press("Enter")
    page.get_by_text("The session ends within a few seconds.").wait_for()

    wait_for(lambda: SshSession.objects.get().end_requested_at)
    admission = access.by_password(str(running.pk), secret, address="10.0.0.1")
    assert admission is not None
    assert admission.user == alice.pk
