"""Watched videos in a real browser: sent, watched, sought in; lines drawn by mouse and by keyboard."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from inference.video.models import VideoAnalysis
from tests.browser.conftest import in_both_looks
from tests.browser.hands import until
from tests.inference import clips, watched


@in_both_looks
def test_video_is_sent_watched_and_counted_once_more_with_a_drawn_line(
    open_as, alice, site, tmp_path, accessible, fits, shot, width, dark, language
):
    version = watched.detector(alice, tmp_path)
    made = clips.clip(tmp_path / "walk.mp4", clips.walkers, seconds=6)
    page = open_as(alice, width=width, height=1000, dark=dark, language=language)
    page.watch.allow("status of 422")
    page.goto("/videos/")
    accessible(page)
    shot(page, f"videos-none-{width}")
    page.locator("main a.btn-primary").first.click()
    page.locator("#id_model_version").select_option(str(version.pk))
    page.locator("#submit-form button.btn-primary").click()
    expect(page.locator("[data-source=file] .form-error")).to_be_visible()
    page.locator("#id_source input[value=url]").check()
    expect(page.locator("#id_url")).to_be_visible()
    page.locator("#id_source input[value=file]").check()
    expect(page.locator("#id_url")).to_be_hidden()
    page.locator("#id_device").select_option("cpu")
    expect(page.locator("#id_gpus_per_node")).to_be_hidden()
    accessible(page)
    fits(page)
    shot(page, f"video-refused-{width}", full=True)
    page.locator("#id_file").set_input_files(str(made))
    page.locator("#submit-form button.btn-primary").click()
    expect(page).to_have_url(re.compile(r"/videos/\d+/$"))
    shot(page, f"video-waits-{width}", full=True)

    watched.ran(VideoAnalysis.objects.get())
    film = page.locator("#film")
    expect(film).to_be_visible(timeout=10_000)
    until(page, "document.getElementById('film').readyState >= 1")
    assert page.evaluate("document.getElementById('film').duration") == pytest.approx(6, abs=0.2)
    page.locator("[data-add=line]").click()
    first = page.locator(".places-points button").first
    expect(first).to_be_focused()
    for _ in range(20):
        page.keyboard.press("ArrowLeft")
    expect(first).to_have_attribute("aria-label", re.compile(r"\b0 %"))
    second = page.locator(".places-points button").nth(1)
    box, frame = second.bounding_box(), page.locator(".places-frame").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(frame["x"] + frame["width"] * 0.95, frame["y"] + frame["height"] * 0.5, steps=4)
    page.mouse.up()
    page.reload()  # as when a job ends: what was drawn stays
    page.locator("[data-add=zone]").click()
    page.locator(".place-row").nth(1).locator("[data-loiter]").fill("1")
    accessible(page)
    fits(page)
    shot(page, f"video-drawn-{width}", full=True)
    before = page.url
    page.locator("#places form button").click()
    expect(page).not_to_have_url(before)
    expect(page).to_have_url(re.compile(r"/videos/\d+/$"))

    again = VideoAnalysis.objects.order_by("pk").last()
    (line,), (zone,) = again.params["lines"], again.params["zones"]
    assert line["points"][0] == [0, 0.5]
    assert line["points"][1] == pytest.approx([0.95, 0.5], abs=0.02)
    assert (len(zone["points"]), zone["loiter_s"]) == (4, 1)
    watched.ran(again)
    seek = page.locator("[data-seek]").first
    expect(seek).to_be_visible(timeout=10_000)
    until(page, "document.getElementById('film').readyState >= 1")
    seek.click()
    at = float(seek.get_attribute("data-seek"))
    until(page, f"Math.abs(document.getElementById('film').currentTime - {at}) < 0.1")
    page.locator("#timeline").click(position={"x": page.locator("#timeline").bounding_box()["width"] / 2, "y": 10})
    until(page, "Math.abs(document.getElementById('film').currentTime - 3) < 0.3")
    accessible(page)
    fits(page)
    shot(page, f"video-counted-{width}", full=True)
    page.goto("/videos/files/")
    accessible(page)
    fits(page)
    shot(page, f"video-files-{width}")
