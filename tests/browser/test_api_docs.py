"""The interactive description of the API shows something, with nothing from other hosts."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect


@pytest.mark.parametrize("path", ["/api/docs/", "/api/redoc/"])
def test_description_of_the_api_is_shown(open_as, alice, path):
    page = open_as(alice)

    page.goto(path)

    expect(page.locator("#swagger-ui")).to_contain_text("/api/v1/datasets/")
    assert page.url.endswith("/api/docs/")
