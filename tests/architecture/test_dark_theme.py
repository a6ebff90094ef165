"""The dark theme differs from the light one in colours alone: what is there, and where, is judged in one of them."""

from __future__ import annotations

import re

from tests.architecture.code import ROOT

OWN = [path for path in sorted(ROOT.glob("*/static/**/*.css")) if "vendor" not in path.parts]
DARK = ROOT / "aiplatform" / "static" / "base" / "dark.css"


def test_dark_style_sheet_sets_only_values_of_the_theme():
    text = re.sub(r"/\*.*?\*/", "", DARK.read_text(), flags=re.DOTALL)
    rules = re.findall(r"([^{}]+)\{([^{}]*)\}", text)
    names = [line.partition(":")[0].strip() for _selector, body in rules for line in body.split(";") if line.strip()]

    assert {selector.strip() for selector, _body in rules} == {':root:not([data-theme="light"])'}
    assert [name for name in names if not name.startswith("--") and name != "color-scheme"] == []
    assert len(names) > 20


def test_no_other_style_sheet_asks_for_the_theme():
    asking = [path.name for path in OWN if re.search(r"prefers-color-scheme|data-theme", path.read_text())]

    assert asking == ["dark.css"]
