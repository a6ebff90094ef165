"""Under every form: what it does, then the way out, so that hands find both where they were on the last page."""

from __future__ import annotations

import re
from pathlib import Path

from django.conf import settings

ACTIONS = re.compile(r'<div class="form-actions">(.*?)</div>', re.DOTALL)
WAY_OUT = '{% translate "Cancel" %}'


def test_forms_offer_what_they_do_before_the_way_out():
    templates = Path(settings.BASE_DIR) / "templates"
    places = [
        (path, found.group(1)) for path in templates.rglob("*.html") for found in ACTIONS.finditer(path.read_text())
    ]
    both = [(path, text) for path, text in places if WAY_OUT in text and "btn-primary" in text]

    assert len(both) > 10
    assert [str(path) for path, text in both if text.index("btn-primary") > text.index(WAY_OUT)] == []
