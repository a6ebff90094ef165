"""The story a new user lives in the browser: one command, three people, images in, a model in use."""

from __future__ import annotations

import pytest

from tests.browser.conftest import CHROMIUM, accessible, chromium, shot  # noqa: F401 - fixtures
from tests.browser.walk import Walk
from tests.journeys.up import running

pytestmark = [
    pytest.mark.journey,
    pytest.mark.skipif(not CHROMIUM, reason="no Chromium found (/usr/bin/chromium or AIP_CHROMIUM)"),
]
JUDGED = {"account-made", "import-report", "annotator", "converted", "training", "evaluation", "service", "tasks"}


def test_pages_lead_from_a_bare_folder_to_a_model_in_use(tmp_path, chromium, accessible, shot):  # noqa: F811 - a fixture is named as it was imported
    judged = set()

    def look(page, name):
        if name in JUDGED - judged:
            accessible(page)
            judged.add(name)
        shot(page, f"story-{name}")

    with running(tmp_path / "data", bare=True) as up:
        walk = Walk(up, chromium, tmp_path, look=look)
        try:
            walk.all()
        finally:
            walk.close()
    assert judged == JUDGED
    assert [line for watch in walk.watches for line in watch.verdict()] == []
