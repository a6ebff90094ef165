"""Django's admin site in a real browser: readable in both themes."""

from __future__ import annotations

import pytest

from accounts.models import User
from tests.browser.conftest import in_both_looks

pytestmark = pytest.mark.long


@in_both_looks
def test_admin_site_is_accessible_in_the_theme_of_its_reader(
    open_as, olga, alice, accessible, shot, width, dark, language
):
    User.objects.filter(pk=olga.pk).update(theme="dark" if dark else "light")
    page = open_as(olga, width=width, dark=not dark, language=language)  # the setting wins over the system
    for name, path in {
        "index": "/admin/",
        "list": "/admin/accounts/user/",
        "form": f"/admin/accounts/user/{alice.pk}/change/",
    }.items():
        page.goto(path)
        page.wait_for_load_state("networkidle")
        shot(page, f"admin-{name}-{width}", full=True)
        assert page.evaluate("document.documentElement.classList.contains('dark')") is dark
        accessible(page)
