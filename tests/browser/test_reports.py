"""Reports in a real browser: written with the keyboard, read in light and dark, a file that asks for nothing."""

from __future__ import annotations

import os
import re
import subprocess

import numpy as np
import pytest
from playwright.sync_api import expect

from aiplatform.client import printing
from tests.browser.conftest import ARGS, CHROMIUM, in_both_looks
from tests.factories import reports as factory
from training.experiments.models import Run
from training.experiments.reports import exporting, writing
from training.experiments.reports.models import Report

TEXT = """Learning rates from 0.001 to 0.3, three seeds each. **The middle is best.**

```figure
title: Best accuracy
filter: experiment = rates
value: best(val/accuracy)
```

```runs
title: The best six
filter: experiment = rates
columns: [state, best(val/accuracy), last(train/loss), params.lr, params.seed, duration, created]
sort: -best(val/accuracy)
limit: 6
```

## By learning rate

```curves
title: Mean of three seeds
filter: experiment = rates
keys: [val/accuracy]
group_by: params.lr
```

```curves
filter: experiment = rates
keys: [train/loss]
log: true
limit: 9
```

```scatter
filter: experiment = rates
x: params.lr
y: best(val/accuracy)
colour: params.seed
log_x: true
```

1. See [the paper](https://paper.example/a) and [the table](/experiments/).

```runs
limt: 3
```
"""


@pytest.fixture
def report(alice, site):
    rng = np.random.default_rng(1)
    for lr in (0.001, 0.003, 0.01, 0.03, 0.1, 0.3):
        for seed in range(3):
            step = np.arange(400)
            top = 0.92 - 0.09 * abs(np.log10(lr) + 1.7)
            factory.run(
                alice, f"rate-{lr}-{seed}", experiment="rates", params={"lr": lr, "seed": seed},
                curves={
                    "val/accuracy": top * (1 - np.exp(-step / 60)) + rng.normal(0, 0.008, 400),
                    "train/loss": 2 * np.exp(-step * lr) + 0.02 + rng.random(400) * 0.02,
                },
            )  # fmt: skip
    made = writing.create(user=alice, title="Which learning rate?", text=TEXT.partition("```runs\nlimt")[0])
    Report.objects.filter(pk=made.pk).update(text=TEXT)  # as if a later version knew fewer fields
    made.refresh_from_db()
    return made


@pytest.mark.parametrize(
    ("width", "dark", "language"),
    [(1440, False, "en"), (1440, True, "en"), (390, True, "zh-CN")],
    ids=["wide", "wide-dark", "narrow-chinese"],
)
def test_report_is_read(open_as, alice, report, accessible, fits, shot, width, dark, language):
    page = open_as(alice, width=width, height=900, dark=dark, language=language)
    page.goto("/reports/")
    fits(page)
    accessible(page)
    page.get_by_role("link", name=report.title).click()

    expect(page.locator("svg.rc")).to_have_count(3)
    expect(page.locator(".report-number")).to_have_text(re.compile(r"0\.9"))
    expect(page.locator(".report-broken")).to_have_count(1)
    accessible(page)
    fits(page)
    shot(page, f"report-{width}-{'dark' if dark else 'light'}")

    for number in range(3):
        page.locator(".report-chart, .report-panel:has(> .rc-frame)").nth(number).scroll_into_view_if_needed()
        page.mouse.wheel(0, 500)
        shot(page, f"report-{width}-{'dark' if dark else 'light'}-{number}")

    chart = page.locator(".report-chart.is-live .chart-card").first
    expect(chart.locator("canvas")).to_be_visible()
    expect(page.locator(".report-chart.is-live svg.rc").first).to_be_hidden()  # it is for paper
    accessible(page)
    fits(page)
    page.keyboard.press("e")
    page.wait_for_url("**/edit/")


@in_both_looks
def test_report_is_written_with_the_keyboard(open_as, alice, report, accessible, fits, shot, width, dark, language):
    page = open_as(alice, width=width, height=900, dark=dark, language=language)
    page.goto("/reports/new/")
    page.locator("[name=title]").fill("Second")
    page.locator("[data-report-text]").fill("# Started")
    page.locator("[data-snippet]").first.click()
    expect(page.locator("[data-report-text]")).to_have_value(re.compile(r"^# Started\n\n```runs\n"))
    page.keyboard.press("Control+Enter")
    expect(page.locator("[data-preview-box] h3")).to_have_text("Started")
    expect(page.locator("[data-preview-box] table")).to_be_visible()
    accessible(page)
    fits(page)
    shot(page, f"report-edit-{width}")
    page.keyboard.press("Control+s")
    page.wait_for_url(re.compile(r"/reports/\d+/$"))
    expect(page.locator("article h2")).to_have_text("Started")
    assert Report.objects.get(title="Second").author == alice


def test_versions_differ_and_are_restored(open_as, alice, report, accessible, fits, shot):
    writing.save(report, user=alice, version=1, title="Other", text="# Other\n")
    page = open_as(alice)
    page.goto(f"/reports/{report.pk}/versions/?version=1&against=2")
    expect(page.locator("[data-sign='-']").first).to_contain_text("# Other")
    accessible(page)
    fits(page)
    shot(page, "report-versions")
    page.get_by_role("button", name="Restore version 1").click()
    page.wait_for_url(f"**/reports/{report.pk}/")
    expect(page.locator("h1")).to_have_text("Which learning rate?")


def test_what_was_typed_stays_when_another_saved(open_as, alice, report, shot, accessible):
    page = open_as(alice)
    page.goto(f"/reports/{report.pk}/edit/")
    page.locator("[data-report-text]").fill("# Mine\n")
    writing.save(Report.objects.get(pk=report.pk), user=alice, version=1, text="# Theirs\n")
    page.watch.allow("status of 422")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("[data-report-text]")).to_have_value("# Mine\n")
    expect(page.locator("[data-sign='-']")).to_contain_text("# Theirs")
    accessible(page)
    shot(page, "report-meanwhile")
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url(f"**/reports/{report.pk}/")
    expect(page.locator("article h2")).to_have_text("Mine")


def test_report_is_printed_light_and_alone(open_as, alice, report, shot):
    page = open_as(alice, dark=True)
    page.goto(f"/reports/{report.pk}/")
    ground = "getComputedStyle(document.querySelector('article')).backgroundColor"
    before = page.evaluate(ground)
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")

    assert before != "rgb(255, 255, 255)"
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    expect(page.locator(".report-printed")).to_contain_text("with the access of Alice")
    expect(page.locator(".page-actions")).to_be_hidden()
    shot(page, "report-printed")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    expect(page.locator("article")).to_have_css("background-color", before)
    expect(page.locator(".report-printed")).to_be_hidden()


def test_comparison_and_table_begin_a_report(open_as, alice, report):
    page = open_as(alice)
    page.goto("/experiments/?filter=params.lr+%3E+0.02&sort=-params.lr")
    expect(page.locator("[data-rows] tr").first).to_be_visible()
    page.get_by_role("link", name="New report").click()
    expect(page.locator("[data-report-text]")).to_have_value(
        "```runs\nfilter: params.lr > 0.02\nsort: -params.lr\n```\n"
    )
    first, second = Run.objects.order_by("pk").values_list("pk", flat=True)[:2]
    page.goto(f"/training/compare/?run={first}&run={second}")
    page.get_by_role("link", name="New report").click()
    expect(page.locator("[data-report-text]")).to_have_value(re.compile(rf"- {first}\n- {second}\n```\n\n```curves"))


@pytest.mark.parametrize("dark", [False, True])
def test_exported_file_opens_without_a_network(chromium, alice, report, tmp_path, accessible, shot, dark):
    evil = '"><img src="https://elsewhere.example/x.png"><script src="https://elsewhere.example/x.js"></script>'
    factory.run(alice, evil, experiment="rates", params={"lr": 1, "seed": evil}, curves={"val/accuracy": [0.99]})
    file = tmp_path / "report.html"
    file.write_text(exporting.html(report, alice))
    asked, said = [], []
    context = chromium.new_context(offline=True, color_scheme="dark" if dark else "light")
    context.on("request", lambda request: asked.append(request.url))
    page = context.new_page()
    page.on("console", lambda message: said.append(message.text))
    page.goto(file.as_uri())

    expect(page.locator("svg.rc")).to_have_count(3)
    expect(page.locator(".report-number")).to_have_text("0.99")
    expect(page.locator("header")).to_contain_text(". The values do not change any more.")
    assert page.locator("img, script, link, iframe").count() == 0
    shot(page, f"report-export-{'dark' if dark else 'light'}")
    context.close()
    assert asked == [file.as_uri()]
    assert said == []


def test_exported_file_is_printed_as_pdf(alice, report, tmp_path, monkeypatch):
    monkeypatch.setenv("AIP_CHROMIUM", CHROMIUM)
    ran, run = [], subprocess.run
    monkeypatch.setattr(
        printing.subprocess, "run", lambda argv, **how: run(ran.append(argv) or [*argv[:1], *ARGS, *argv[1:]], **how)
    )

    printing.as_pdf(exporting.html(report, alice).encode(), tmp_path / "report.pdf")

    data = (tmp_path / "report.pdf").read_bytes()
    assert data.startswith(b"%PDF-")
    assert len(data) > 20_000
    assert os.environ["AIP_CHROMIUM"] == ran[0][0]
