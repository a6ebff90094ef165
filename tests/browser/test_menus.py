"""The bell and the menus of heads in a real browser."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils.timezone import now
from playwright.sync_api import expect

from accounts.models import ApiToken, Notification
from accounts.services import notify, tokens
from aiplatform.lib.wording import verbatim
from tests.factories import models, work
from tests.factories import training as trainings
from workers.core.models import Job

pytestmark = pytest.mark.long


def tell(user, words: str, *, kind: str = "finished", url: str = "/training/") -> None:
    notify.notify(user, kind, title=verbatim(words), text=verbatim("After 3 min."), url=url, key=words)


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (390, True)], ids=["wide", "narrow-dark"])
def test_bell_opens_over_the_page_with_the_last_news_and_marks_them_as_read(
    open_as, alice, accessible, fits, shot, width, dark
):
    for number in range(6):
        tell(alice, f"Training cells-{number} completed")
    page = open_as(alice, width=width, height=844, dark=dark)
    page.goto("/account/")

    page.get_by_label("6 unread notifications").click()

    list_ = page.locator("#bell-list")
    expect(list_.locator("a.menu-told")).to_have_count(5)
    accessible(page)
    fits(page)
    shot(page, f"bell-{width}")
    list_.get_by_role("button", name="Mark all as read").click()
    expect(page.locator("#bell summary")).to_have_attribute("aria-label", "Notifications")
    expect(list_.get_by_role("button", name="Mark all as read")).to_have_count(0)
    list_.get_by_role("link", name=re.compile("cells-5")).click()
    page.wait_for_url("**/training/")


def look_again(page) -> None:
    with page.expect_response("**/notifications/bell/*"):
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


def test_toasts_show_nothing_that_came_before_a_new_window(open_as, alice):
    tell(alice, "Training one completed")
    first = open_as(alice)
    first.goto("/account/")
    first.evaluate("localStorage.setItem('aip.bell', '0')")  # the last visit was long ago
    tell(alice, "Training two completed")
    second = first.context.new_page()
    second.goto("/account/")
    look_again(second)
    expect(second.locator(".toast")).to_have_count(0)

    look_again(first)  # it came after this window was opened
    expect(first.locator(".toast")).to_have_text(re.compile("Training two completed"))
    tell(alice, "Training three completed")
    look_again(second)
    expect(second.locator(".toast")).to_have_text(re.compile("Training three completed"))
    look_again(first)
    expect(first.locator(".toast", has_text="three")).to_have_count(0)  # another window has shown it
    third = first.context.new_page()
    third.goto("/account/")
    look_again(third)
    expect(third.locator(".toast")).to_have_count(0)


def test_toasts_of_the_next_page_show_only_what_came_a_moment_ago(open_as, alice):
    page = open_as(alice)
    page.goto("/account/")
    tell(alice, "Training old completed")
    Notification.objects.update(created_at=now() - timedelta(minutes=10))
    tell(alice, "Training new completed")

    with page.expect_response("**/notifications/bell/*"):
        page.goto("/account/tokens/")

    expect(page.locator(".toast")).to_have_text(re.compile("Training new completed"))


def test_bell_says_as_a_toast_what_came_meanwhile_once(open_as, alice, shot):
    tell(alice, "Training of yesterday completed")
    page = open_as(alice)
    asked = []
    page.on("request", lambda request: asked.append(request.url) if "/notifications/bell/" in request.url else None)
    page.goto("/account/")
    assert asked == []  # the page itself says what is unread
    tell(alice, "Training night completed")

    with page.expect_response("**/notifications/bell/*"):
        page.goto("/account/tokens/")

    toast = page.locator(".toast", has_text="Training night completed")
    expect(toast).to_be_visible()
    expect(page.locator(".toast")).to_have_count(1)
    expect(page.locator(".bell-count")).to_have_text("2")
    shot(page, "bell-toast")
    page.goto("/account/")
    expect(page.locator(".toast")).to_have_count(0)
    assert len(asked) == 1


#: A browser without windows has nowhere to show them and says "denied", whatever its user granted.
GRANTED = """() => {
  Object.defineProperty(Notification, "permission", { get: () => "granted" });
  Notification.requestPermission = async () => "granted";
}"""


def test_bell_sends_notifications_of_the_browser_only_by_choice(open_as, alice):
    page = open_as(alice, permissions=["notifications"])
    page.add_init_script(f"({GRANTED})()")
    page.goto("/account/notifications/")
    expect(page.get_by_text("Off: notifications appear only inside the platform.")).to_be_visible()

    page.get_by_role("button", name="Enable in this browser").click()

    expect(page.get_by_text("On: notifications also appear while another window is active.")).to_be_visible()
    page.reload()
    page.get_by_role("button", name="Disable in this browser").click()
    expect(page.get_by_text("Off: notifications appear only inside the platform.")).to_be_visible()


def test_deleting_stands_in_a_menu_never_beside_the_primary_act(open_as, alice, tmp_path, accessible, shot):
    version = models.model_version(alice, tmp_path)
    page = open_as(alice)
    page.goto(f"/models/{version.model_id}/")
    expect(page.get_by_role("button", name="Delete")).to_be_hidden()

    page.locator(".page-actions summary").click()
    shot(page, "more-menu")
    accessible(page)
    page.get_by_role("button", name="Delete").click()

    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".page-actions summary")).to_be_focused()


def test_run_again_is_one_menu_that_explains_each_way_and_why_one_is_shut(open_as, alice, cluster, accessible, shot):
    work.node("n1")
    training = trainings.training(alice, state="paused")
    Job.objects.filter(pk=training.job_id).update(desired="pause")
    page = open_as(alice)
    page.goto(f"/training/{training.pk}/")
    expect(page.locator(".page-actions").get_by_role("link")).to_have_count(0)

    page.get_by_text("Run again").click()

    menu = page.locator("#run-again .menu-list")
    expect(menu.locator(".menu-item")).to_have_count(4)
    expect(menu.get_by_text("Continues where it was paused, on the devices it kept.")).to_be_visible()
    expect(menu.locator("#again-restore[aria-disabled=true]")).to_contain_text(
        "The job can be restored after it has ended."
    )
    accessible(page)
    shot(page, "run-again")
    page.wait_for_timeout(5500)  # pause: the head is fetched every 5 s, but not while its menu is open
    expect(menu).to_be_visible()
    page.locator("#again-continue").click()
    expect(page.locator("#job-continue, #job-pause").first).to_be_visible()
    expect(menu).not_to_be_visible()
    assert Job.objects.get(pk=training.job_id).desired == "run"


def test_revoking_a_token_asks_first(open_as, alice):
    tokens.issue(user=alice, name="laptop")
    page = open_as(alice)
    page.goto("/account/tokens/")

    page.get_by_role("button", name="Revoke laptop").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert ApiToken.objects.get().name == "laptop"
    expect(page.get_by_role("dialog")).to_have_count(0)

    page.get_by_role("button", name="Revoke laptop").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("No tokens yet.")).to_be_visible()
