"""The table of runs in a real browser: find, sort, group, mark, save a view, compare."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import in_both_looks
from tests.factories import curves, work
from tests.factories import training as factory
from training.experiments.models import Run, Star, Tag, View


@pytest.fixture
def many(alice, live_server):
    """Three rates by three seeds, and 60 runs that a script elsewhere reported."""
    work.node(cores=4)
    data = factory.version(alice, "digits", task="classification")
    made = []
    for rate in (0.01, 0.03, 0.1):
        for seed in range(3):
            training = factory.training(
                alice, data=data, name=f"rate-{rate}-{seed}", state="running", preset="classify",
                params={"lr": rate, "seed": seed},
            )  # fmt: skip
            curves.report(training.job.attempts.get(), "val/accuracy", [(1, 0.5 + rate + seed / 100)])
            curves.report(training.job.attempts.get(), "train/loss", [(1, 0.5 - rate)])
            made.append(training.job.run)
    Run.objects.bulk_create(Run(owner=alice, name=f"laptop-{n}", state="succeeded") for n in range(60))
    return made


@in_both_looks
def test_runs_are_found_sorted_and_compared(open_as, alice, many, accessible, fits, shot, width, dark, language):
    page = open_as(alice, width=width, height=900, dark=dark, language=language)
    page.goto("/experiments/")
    rows = page.locator("[data-rows] tr:not(.runs-gap)")
    expect(page.locator("[data-said]")).to_contain_text("69")
    assert rows.count() < 69  # those in the window
    accessible(page)
    fits(page)
    shot(page, f"runs-{width}")

    page.locator("#runs-filter").fill("params.lr > 0.02 and best(val/accuracy) > 0.54")
    page.locator("#runs-filter").press("Enter")
    expect(rows).to_have_count(4)
    page.locator("thead button[title=lr]").click()
    expect(rows.first).to_contain_text("rate-0.1")
    expect(page.locator("th[aria-sort=descending] button[title=lr]")).to_have_count(1)
    assert "sort=-params.lr" in page.url

    page.watch.allow("status of 400")  # says what is wrong with the filter
    page.locator("#runs-filter").fill("params.lr >")
    page.locator("#runs-filter").press("Enter")
    expect(page.locator("[aria-invalid=true]")).to_have_count(1)
    expect(rows).to_have_count(4)

    page.locator("thead input[type=checkbox]").check()
    page.locator("[data-acts] [data-act=compare]").click()
    page.wait_for_url("**/training/compare/?*")
    expect(page.locator(".compare-chart").first).to_be_visible()


def test_runs_are_grouped_marked_and_kept_as_a_view(open_as, alice, bob, many, shot, accessible):
    page = open_as(alice, width=1440, height=900)
    page.goto("/experiments/?filter=preset+%3D+classify")
    rows = page.locator("[data-rows] tr:not(.runs-gap)")
    expect(rows).to_have_count(9)
    page.get_by_role("button", name="Group by").first.click()
    page.locator("#runs-group input[value='params.lr']").check()
    page.locator("#runs-group button[value=yes]").click()
    expect(rows).to_have_count(3)
    expect(rows.first).to_contain_text("3 runs")
    expect(rows.first).to_contain_text("±")
    shot(page, "runs-grouped")
    accessible(page)
    rows.first.get_by_role("button", name="3 runs").click()
    expect(rows).to_have_count(6)

    rows.first.locator("input[type=checkbox]").check()
    page.locator("[data-acts] [data-act=star]").click()
    expect(page.locator(".runs-star[aria-pressed=true]")).to_have_count(3)
    page.get_by_role("button", name="Tags").click()
    page.locator("#runs-tags [name=add]").fill("golden, author=Ada")
    page.locator("#runs-tags button[value=yes]").click()
    expect(page.locator("[data-said]")).to_contain_text("9 runs")
    page.get_by_role("button", name="Save view").click()
    page.locator("#runs-view [name=name]").fill("by rate")
    page.locator("#runs-view [name=visibility]").select_option("public")
    page.locator("#runs-view button[value=yes]").click()
    page.wait_for_url("**/experiments/?view=*")
    expect(rows).to_have_count(3)
    expect(page.locator("[aria-current=page]", has_text="by rate")).to_be_visible()
    assert (Star.objects.count(), Tag.objects.filter(key="golden").count()) == (3, 3)

    assert View.objects.get().query["group"] == ["params.lr"]
    page.locator("[data-view-delete]").click()
    page.locator("dialog[open] button[value=yes]").click()
    page.wait_for_url(re.compile(r"/experiments/$"))
    assert not View.objects.exists()


def test_columns_are_chosen_and_runs_archived(open_as, alice, many):
    page = open_as(alice, width=1440, height=900)
    page.goto("/experiments/?filter=preset+%3D+classify")
    rows = page.locator("[data-rows] tr:not(.runs-gap)")
    expect(rows).to_have_count(9)
    page.get_by_role("button", name="Columns").click()
    page.locator("#runs-columns [data-find]").fill("batch")
    page.locator("#runs-columns [data-differing]").uncheck()
    page.locator("#runs-columns input[value='params.batch_size']").check()
    page.locator("#runs-columns button[value=yes]").click()
    expect(page.locator("thead")).to_contain_text("Batch size")
    rows.first.locator("input[type=checkbox]").check()
    page.locator("[data-act=archive]").click()
    expect(rows).to_have_count(8)
    page.get_by_label("Include archived").check()
    expect(rows).to_have_count(9)


@pytest.mark.parametrize(("width", "dark", "language"), [(1440, True, "en"), (390, False, "zh-CN")])
def test_run_page_holds_notes_tags_and_figures(open_as, alice, many, accessible, fits, shot, width, dark, language):
    Run.objects.create(owner=alice, parent=many[0], name="part one", state="running")
    page = open_as(alice, width=width, height=900, dark=dark, language=language)
    page.goto(f"/experiments/runs/{many[0].pk}/")
    expect(page.locator(".compare-chart canvas").first).to_be_visible()
    expect(page.locator(".chart-numbers strong").first).to_have_text(re.compile(r"^0\.\d+"))
    page.locator("#run-notes").fill("# Found\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")
    page.locator("[data-notes] button").click()
    expect(page.locator(".prose h3")).to_have_text("Found")
    page.locator("#run-tag").fill("golden")
    page.locator("[data-tag] button").click()
    expect(page.locator("[data-untag=golden]")).to_be_visible()
    page.locator("[data-star]").click()
    expect(page.locator("[data-star]")).to_have_attribute("aria-pressed", "true")
    accessible(page)
    fits(page)
    shot(page, f"run-{width}")
    page.locator("[data-untag=golden]").click()
    expect(page.locator("[data-untag=golden]")).to_have_count(0)
    assert Star.objects.count() == 1


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (390, True)], ids=["wide", "narrow"])
def test_charts_of_runs_show_what_mattered(open_as, alice, many, accessible, fits, shot, width, dark):
    page = open_as(alice, width=width, height=1100, dark=dark)
    page.goto("/experiments/")
    charts = page.locator("[data-run-charts]")
    charts.locator("summary").first.click()
    expect(charts.locator("[data-scatter] circle")).to_have_count(9)
    expect(charts.locator("[data-parallel] path")).to_have_count(9)
    expect(charts.locator("[data-importance] li").first).to_contain_text("lr")
    expect(charts.locator("[data-told]")).to_contain_text("9 runs")
    charts.scroll_into_view_if_needed()
    accessible(page)
    fits(page)
    shot(page, f"runs-charts-{width}", full=True)

    charts.locator("[data-across]").select_option(label="seed")
    expect(charts.locator("[data-scatter] svg")).to_have_attribute("aria-label", re.compile("seed"))
    page.locator("#runs-filter").fill("params.lr > 0.02")
    page.locator("#runs-filter").press("Enter")
    expect(charts.locator("[data-scatter] circle")).to_have_count(6)
    page.locator("tbody input[type=checkbox]").first.check()
    expect(charts.locator("[data-scatter] circle")).to_have_count(1)
