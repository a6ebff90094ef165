"""A service is made that shares a process; its page says with whom, and why it left."""

import pytest
from playwright.sync_api import expect

from aiplatform.lib import wording
from inference.serving import endpoints
from inference.serving.models import Service
from tests.factories import models as factory

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(
    ("width", "dark", "language"), [(1440, False, "en"), (390, True, "zh-CN")], ids=["wide", "narrow-chinese"]
)
def test_service_shares_a_process_and_its_page_says_with_whom(
    open_as, alice, site, tmp_path, accessible, fits, shot, width, dark, language
):
    version = factory.model_version(alice, tmp_path)
    endpoints.create(user=alice, name="first", model_version=version, share_process=True)
    page = open_as(alice, width=width, height=1000, dark=dark, language=language)
    page.goto(f"/services/new/?model_version={version.pk}")
    page.locator("#id_name").fill("second")
    page.locator("#id_share_process").check()
    accessible(page)
    fits(page)
    shot(page, f"service-new-shared-{width}", full=True)

    page.locator("#submit-form .btn-primary").click()
    expect(page.locator("#shares a")).to_have_text("first")
    second = Service.objects.get(name="second")

    message = wording.message("service.parted_crash", service="second", model=str(version))
    Service.objects.filter(pk=second.pk).update(sharing_message=message)
    page.reload()
    expect(page.locator("#service-head .notice-warn")).to_be_visible()
    accessible(page)
    fits(page)
    shot(page, f"service-shared-{width}", full=True)
