"""Pages of images in a browser: readable in both themes and languages, narrow and wide, by keyboard."""

from __future__ import annotations

import re

import pytest
from django.conf import settings
from playwright.sync_api import expect

from tests.factories import work as rows
from workers.core.models import Job
from workers.images.models import Engine, Image, ImageUse
from workers.images.store import paths


@pytest.fixture
def pages(site, alice, cluster) -> dict[str, str]:
    """Alice's engine, what she saved on top of it, one that failed, and a job with packages of its own."""
    rows.node(settings.NODE)
    facts = {"python": "3.11.7", "torch": "2.13.0+cu130", "cuda": "13.0", "packages": 212}
    engine = Engine.objects.create(
        digest="d" * 64, requirements="torchmetrics==1.4\npandas", python="3.11.7", state="ready", facts=facts,
        size_bytes=240_000_000,
    )  # fmt: skip
    broken = Engine.objects.create(digest="e" * 64, requirements="no-such==1", python="3.11.7", state="failed")
    lab = Image.objects.create(kind="engine", name="lab", owner=alice, engine=engine, visibility="public")
    failed = Image.objects.create(kind="engine", name="broken", owner=alice, engine=broken)
    job = rows.job(alice, cluster, state="stopped", name="notebook")
    saved = Image.objects.create(
        kind="saved", name="lab with bells", tag="2026-06", owner=alice, engine=engine, parent=lab, state="ready",
        job=job, description="What the group agreed on in June.", sha256="a" * 64, size_bytes=23_000_000, files=8700,
        unpacked_bytes=85_000_000, left_out=["pip.conf", "src/ours/.git"],
    )  # fmt: skip
    ImageUse.objects.create(job=job, image=saved, engine=engine, name=str(saved), boxed=True, node=settings.NODE)
    upper = paths.box(job.pk) / "upper"
    upper.mkdir(parents=True)
    (upper / "new.py").write_text("x" * 5000)
    (upper / ".netrc").write_text("secret")
    return {
        "list": "/images/", "new": "/images/new/", "saved": f"/images/{saved.pk}/", "engine": f"/images/{lab.pk}/",
        "failed": f"/images/{failed.pk}/", "save": f"/images/save/{job.pk}/", "edit": f"/images/{saved.pk}/edit/",
        "job": f"/jobs/{job.pk}/", "share": f"/share/image/{saved.pk}/",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("width", "language", "dark"), [(390, "en", True), (1024, "en", False), (1440, "zh-CN", False)],
    ids=["narrow-dark", "middle", "wide-chinese"],
)  # fmt: skip
def test_pages_of_images_are_accessible_and_fit(open_as, alice, pages, accessible, fits, shot, width, language, dark):
    page = open_as(alice, width=width, language=language, dark=dark)

    for name, path in pages.items():
        assert page.goto(path).status == 200, path
        shot(page, f"images-{name}-{width}", full=True)
        fits(page)
        accessible(page)


def test_image_is_asked_for_and_given_up_by_keyboard(open_as, alice, pages):
    page = open_as(alice)
    page.goto("/images/")
    page.get_by_role("link", name="Build image").press("Enter")
    page.get_by_label("Name").fill("mine")
    page.get_by_label("Packages", exact=True).fill("rings==1.0")
    page.locator("#main").get_by_role("button", name="Build", exact=True).press("Enter")

    expect(page.get_by_role("heading", level=1)).to_have_text("mine")
    expect(page.get_by_text("Building")).to_be_visible()
    assert Job.objects.filter(kind="image_build", name="mine").exists()
    page.locator("summary", has_text="More").press("Enter")
    page.get_by_role("button", name="Delete").first.press("Enter")
    page.get_by_label("to confirm").fill("mine")
    page.get_by_label("to confirm").press("Enter")

    expect(page).to_have_url(re.compile("/images/$"))
    assert not Image.objects.filter(name="mine").exists()
