"""Push targets in a real browser: kept, tested, pushed to, and what a place that refuses says."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from inference.delivery.push import pushes
from inference.delivery.push.models import Push, PushTarget
from tests.browser.conftest import in_both_looks
from tests.factories import models as factory
from tests.inference.far_servers import Folder, serving


@in_both_looks
def test_target_is_kept_and_a_model_pushed_to_it(
    open_as, alice, site, tmp_path, accessible, fits, shot, settings, width, dark, language
):
    settings.PUSH_ALLOWED = ["127.0.0.1"]
    version = factory.model_version(alice, tmp_path)
    page = open_as(alice, width=width, height=1000, dark=dark, language=language)
    with serving(Folder) as far:
        page.goto("/push/")
        accessible(page)
        page.locator("main a.btn-primary").first.click()
        for kind in ("s3", "ssh", "oci", "fd", "put"):
            page.goto(f"/push/new/{kind}/")
            accessible(page)
            fits(page)
        page.locator("#id_name").fill("Shelf")
        page.locator("#id_address").fill(f"{far.address}/models")
        page.locator("#id_secret").fill("right")
        shot(page, f"push-new-{width}", full=True)
        page.locator("main form.card button.btn-primary").click()
        expect(page).to_have_url(re.compile(r"/push/\d+/$"))
        expect(page.locator(".chip-run")).to_be_visible()
        accessible(page)
        fits(page)
        shot(page, f"push-target-{width}", full=True)

        page.goto(f"/models/{version.model_id}/")
        page.locator("main details.menu summary").first.click()
        page.locator(f"a[href='/models/versions/{version.pk}/push/']").click()
        page.locator("#id_target").select_option(str(PushTarget.objects.get().pk))
        page.locator("main form.card button.btn-primary").click()
        expect(page.locator("section[aria-labelledby=h-pushes] tbody tr")).to_have_count(1)
        push = Push.objects.get()
        Push.objects.update(state="running", sent_bytes=push.size_bytes // 2)
        expect(page.locator("section[aria-labelledby=h-pushes] progress")).to_be_visible()
        accessible(page)
        fits(page)
        shot(page, f"push-running-{width}", full=True)
        Push.objects.update(state="waiting")
        pushes.run(push.pk)
        expect(page.locator("section[aria-labelledby=h-pushes] tbody")).to_contain_text("cells_v1_package.zip")

        far.token = "another"
        page.goto(f"/push/{PushTarget.objects.get().pk}/")
        page.locator("form[action$='/test/'] button").click()
        expect(page.locator(".chip-fail").first).to_be_visible()
        accessible(page)
        fits(page)
        shot(page, f"push-refused-{width}", full=True)
        page.goto("/push/")
        accessible(page)
        fits(page)
        shot(page, f"push-list-{width}", full=True)
