"""A question that stays open while the page refreshes itself still does what it says."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.factories import work
from workers.core.models import Job


def test_job_is_stopped_after_a_long_look_at_the_question(open_as, alice, cluster):
    job = work.job(alice, cluster, name="waits")
    page = open_as(alice)
    page.goto(f"/jobs/{job.pk}/")
    page.locator("#job-stop").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()  # Enter pressed at once stops nothing

    page.wait_for_timeout(11_000)  # pause: two refreshes of the header pass meanwhile
    dialog.get_by_role("button", name="Stop").click()

    expect(page.locator("#job-head")).to_have_attribute("data-job-state", "stopped")
    assert Job.objects.get(pk=job.pk).state == "stopped"
