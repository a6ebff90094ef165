"""What a service is shown, compared with what its model learned from."""

import pytest
from django.utils.timezone import now
from playwright.sync_api import expect

from inference.kit.models import statistics
from inference.registry.baseline_models import ModelBaseline
from inference.registry.models import ModelTask
from inference.serving import endpoints
from inference.serving.monitoring.models import ServiceStatistics
from tests.browser.conftest import in_both_looks
from tests.factories import datasets as dataset_factory
from tests.factories import models as factory
from tests.inference.tallies import statistics_of

pytestmark = pytest.mark.browser


def tally_of(count, shift):
    made = statistics.empty()
    for number in range(count):
        value = (number % 60) / 100 + shift
        answers = [{"name": ("RBC", "WBC", "Platelets")[number % 3 if not shift else 0], "score": 0.4 + value / 2}]
        statistics.add(made, statistics_of(dict.fromkeys(statistics.FEATURES, value), value), answers)
    return made


@in_both_looks
def test_drift_is_seen_against_the_training_images(
    open_as, alice, site, tmp_path, accessible, fits, shot, width, dark, language
):
    version = factory.model_version(alice, tmp_path)
    data = dataset_factory.version(dataset_factory.dataset(alice))
    type(version).objects.filter(pk=version.pk).update(dataset_version=data, dataset_label=str(data))
    service = endpoints.create(user=alice, name="cells", model_version=version)
    page = open_as(alice, width=width, height=1000, dark=dark, language=language)
    page.goto(f"/services/{service.pk}/monitoring/")
    accessible(page)
    fits(page)
    shot(page, f"monitoring-empty-{width}")
    page.locator("main .btn-primary, .page-head .btn-primary").first.click()
    expect(page.locator("a[href^='/jobs/']").first).to_be_visible()
    assert ModelTask.objects.get().act == "baseline"

    ModelBaseline.objects.create(
        version=version,
        data_name=str(data),
        images=300,
        tally=tally_of(300, 0) | {"chance": {"halves": 150, "rare": 0.02}},
    )
    ServiceStatistics.objects.create(
        service=service, version=version, slot="1", begins_at=now(), images=400, tally=tally_of(400, 0.3)
    )
    page.reload()
    expect(page.locator(".drifts > section")).to_have_count(8)
    expect(page.locator("[aria-labelledby=h-looks] .chip-fail")).to_be_visible()
    accessible(page)
    fits(page)
    shot(page, f"monitoring-{width}", full=True)
