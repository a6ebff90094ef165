"""The page of an annotation project: members, roles, conversion, and its rows on a narrow screen."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from annotation.models import ProjectMember
from tests.browser.conftest import in_both_looks
from tests.factories import people


@in_both_looks
def test_members_are_added_in_a_dialog_and_change_role_at_once(
    open_as, alice, work, accessible, fits, shot, width, dark, language
):
    people.user("olaf")
    page = open_as(alice, width=width, height=900, dark=dark, language=language)
    page.goto(f"/annotation/projects/{work.project_id}/")
    expect(page.locator(".total-progress progress")).to_be_visible()
    accessible(page)
    fits(page)
    shot(page, f"project-{width}", full=True)

    page.locator("[data-dialog-open=add-members]").click()
    dialog = page.locator("#add-members")
    field = dialog.get_by_role("combobox").first
    field.fill("olaf")
    field.press("Enter")
    accessible(page)
    shot(page, f"project-members-{width}")
    dialog.locator(".btn-primary").click()
    expect(page.locator(".member-list > li")).to_have_count(2)
    expect(dialog).to_be_hidden()

    with page.expect_navigation():
        page.locator(".member-list select[name=role]").first.select_option("reviewer")
    assert ProjectMember.objects.get(project=work.project, user__username="anna").role == "reviewer"


@pytest.mark.parametrize("path", ["", "datasets/{set}/"])
def test_conversion_explains_the_chosen_format_alone(open_as, alice, work, accessible, path):
    page = open_as(alice)
    page.goto(f"/annotation/projects/{work.project_id}/" + path.format(set=work.pk))
    page.locator(f"[data-dialog-open=convert-{work.pk}]").first.click()
    dialog = page.locator(f"#convert-{work.pk}")
    notes = dialog.locator("[data-format-help]:visible")

    expect(notes).to_have_count(0)  # COCO loses nothing
    dialog.locator("select[name=target]").select_option("yolo")
    expect(notes).to_have_count(1)
    expect(notes).to_have_attribute("data-format-help", "yolo")
    accessible(page)
