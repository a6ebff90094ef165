"""The folds of a cross-validation on the page of each of them, in a real browser."""

import pytest
from django.urls import reverse

from tests.factories import training as factory
from tests.factories import work
from training.runs.models import TrainingJob

pytestmark = pytest.mark.long

FIGURES = [
    {"val/ap50": 0.853, "val/ap": 0.512, "val/ap75": 0.55},
    {"val/ap50": 0.881, "val/ap": 0.53, "val/ap75": 0.571},
]


@pytest.fixture
def folds(alice, live_server):
    work.node(cores=4)
    factory.training(alice, name="cells", preset="detect", params={"folds": 3})
    rows = list(TrainingJob.objects.order_by("pk"))
    for row, figures in zip(rows, FIGURES, strict=False):
        factory.move(row, "succeeded")
        TrainingJob.objects.filter(pk=row.pk).update(metrics=figures)
    return rows


@pytest.mark.parametrize(("dark", "width"), [(False, 1440), (True, 390)], ids=["light", "dark"])
def test_page_of_a_fold_leads_to_the_others_and_shows_their_mean(
    open_as, alice, accessible, fits, shot, folds, dark, width
):
    page = open_as(alice, dark=dark, width=width)
    page.goto(reverse("training:job-detail", args=[folds[2].pk]))

    panel = page.locator("section[aria-labelledby=h-folds]")
    assert "0.8670 ± 0.0198" in panel.inner_text()
    panel.scroll_into_view_if_needed()
    shot(page, f"folds-{width}")
    accessible(page)
    fits(page)
    panel.get_by_role("link", name="1", exact=True).click()

    page.wait_for_url(f"**/training/{folds[0].pk}/")
    assert panel.locator("[aria-current=page]").inner_text() == "1"
