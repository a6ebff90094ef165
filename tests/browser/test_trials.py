"""Another version tried at a service, in a real browser."""

from __future__ import annotations

from playwright.sync_api import expect

from inference.serving import endpoints
from inference.serving.models import ServiceTrial
from inference.serving.traffic.counters import Counter, Slot
from tests.browser.conftest import in_both_looks
from tests.factories import models as factory
from tests.inference.running import set_state


@in_both_looks
def test_version_is_tried_its_figures_shown_and_rolled_back(
    open_as, alice, site, tmp_path, accessible, fits, shot, width, dark, language
):
    version = factory.model_version(alice, tmp_path)
    newer = factory.model_version(alice, tmp_path, name="newer")
    service = endpoints.create(user=alice, name="demo", model_version=version)
    set_state(service.job, "running")
    page = open_as(alice, width=width, height=1000, dark=dark, language=language)
    page.goto(f"/services/{service.pk}/trial/")
    accessible(page)
    fits(page)
    page.locator("#id_model_version").select_option(str(newer.pk))
    shot(page, f"trial-form-{width}", full=True)
    page.locator("main form.card button.btn-primary").click()
    expect(page.locator(".service-trial")).to_be_visible()

    trial = ServiceTrial.objects.get()
    set_state(trial.job, "running")
    ServiceTrial.objects.update(ready_attempt=1)
    counter = Counter()
    for number in range(400):
        slot = Slot(service.pk, version.pk, trial.pk, number % 4 == 0, alice.pk)
        counter.count_response(slot, 502 if number == 37 else 200, 0.01 + (number % 9) / 1000, 40_000, 700)
    counter.flush()
    page.reload()
    expect(page.locator(".service-trial tbody tr")).to_have_count(2)
    expect(page.locator(".service-trial tbody tr").first).to_contain_text("100")
    accessible(page)
    fits(page)
    shot(page, f"trial-{width}", full=True)

    page.goto(f"/services/{service.pk}/usage/")
    expect(page.locator("[data-usage-charts] .uplot")).to_have_count(2)
    accessible(page)
    fits(page)
    shot(page, f"usage-{width}", full=True)

    page.goto(f"/services/{service.pk}/")
    page.locator("form[action$='roll-back/'] button").click()
    expect(page.locator(".service-trial")).to_have_count(0)
    assert ServiceTrial.objects.get().outcome == "rolled_back"
