"""A key is made, used, and revoked; limits are set."""

import re

import pytest
from django.utils.timezone import now
from playwright.sync_api import expect

from inference.serving import endpoints
from inference.serving.keys.models import ServiceKey
from inference.serving.models import Service
from tests.browser.conftest import in_both_looks
from tests.factories import models as factory

pytestmark = pytest.mark.browser


@in_both_looks
def test_key_is_made_shown_once_and_revoked(
    open_as, alice, site, tmp_path, accessible, fits, shot, width, dark, language
):
    service = endpoints.create(user=alice, name="cells", model_version=factory.model_version(alice, tmp_path))
    page = open_as(alice, width=width, height=1000, dark=dark, language=language)
    page.watch.allow("status of 422")
    page.goto(f"/services/{service.pk}/")
    page.locator(f"aside a[href='/services/{service.pk}/keys/']").click()
    page.locator("#id_name").fill("partner")
    page.locator("#id_per_minute").fill("60")
    page.locator("main form .btn-primary").click()
    expect(page.locator("#new-key")).to_contain_text("aik_")
    accessible(page)
    fits(page)
    shot(page, f"service-keys-{width}", full=True)

    page.goto(f"/services/{service.pk}/keys/")
    expect(page.locator("#new-key")).to_have_count(0)
    expect(page.locator("tbody tr")).to_have_count(1)
    page.locator("tbody button").click()
    page.locator("dialog[open] .btn-danger, dialog[open] .btn-primary").last.click()
    expect(page.locator("tbody tr")).to_have_count(0)
    assert ServiceKey.objects.get().revoked_at is not None

    page.goto(f"/services/{service.pk}/edit/")
    page.locator("#id_per_minute").fill("90")
    page.locator("#id_deadline_s").fill("5000")
    page.locator("main form .btn-primary").click()
    expect(page.locator(".field-error, .errorlist, [id$=_error]").first).to_be_visible()
    accessible(page)
    fits(page)
    shot(page, f"service-limits-{width}", full=True)
    page.locator("#id_deadline_s").fill("10")
    page.locator("#id_min_replicas").fill("0")
    page.locator("#id_max_replicas").fill("4")
    page.locator("main form .btn-primary").click()
    expect(page).to_have_url(re.compile(rf"/services/{service.pk}/$"))
    service.refresh_from_db()
    assert (service.options["per_minute"], service.options["deadline_s"]) == (90, 10)
    Service.objects.filter(pk=service.pk).update(asleep_at=now())
    page.reload()
    expect(page.locator(".service-head")).to_have_attribute("data-state", "asleep")
    accessible(page)
    fits(page)
    shot(page, f"service-asleep-{width}", full=True)
