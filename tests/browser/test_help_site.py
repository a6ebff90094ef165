"""The help site in a real browser: search, themes and languages under the Content-Security-Policy of the product."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from aiplatform.pages.help import site
from tests.browser.conftest import PATIENCE_MS
from tests.help_site import built_site


@pytest.fixture(autouse=True)
def help_folder(monkeypatch):
    folder = built_site()
    monkeypatch.setattr(site, "root", lambda: folder)


@pytest.mark.parametrize(
    ("start", "words", "address"),
    [
        ("/help/", "name_taken", "/help/reference/errors/"),
        ("/help/how-to/train/", "import a dataset", "/help/how-to/datasets/"),
        ("/help/zh/", "导入数据集", "/help/zh/how-to/datasets/"),
    ],
    ids=["error code", "guide", "Chinese"],
)
def test_search_finds_a_page_and_opens_it(open_as, alice, start, words, address):
    page = open_as(alice)
    page.goto(start)

    page.locator("[data-md-component=search-query]").fill(words)
    result = page.locator("a.md-search-result__link").first
    result.wait_for(timeout=PATIENCE_MS)
    result.click()

    page.wait_for_url(f"**{address}**")
    expect(page.locator("h1").first).to_be_visible()


def test_colors_follow_the_system_and_the_choice_of_the_user(open_as, alice):
    page = open_as(alice, dark=True)
    page.goto("/help/")
    body = page.locator("body")

    expect(body).to_have_attribute("data-md-color-scheme", "slate")
    page.locator("label.md-header__button[title='Use light colors']").click()
    expect(body).to_have_attribute("data-md-color-scheme", "default")
    page.goto("/help/how-to/train/")
    expect(body).to_have_attribute("data-md-color-scheme", "default")


def test_language_is_changed_on_the_same_page(open_as, alice):
    page = open_as(alice)
    page.goto("/help/how-to/train/")

    page.locator(".md-select .md-header__button").hover()
    page.get_by_role("link", name="中文").click()

    page.wait_for_url("**/help/zh/how-to/train/")
    expect(page.locator("h1").first).to_contain_text("训练模型")


def test_logo_leads_back_to_the_platform(open_as, alice):
    page = open_as(alice)
    page.goto("/help/")

    page.locator("a.md-logo").first.click()

    page.wait_for_url("**/")
    expect(page.locator(".side")).to_be_visible()
