"""Tables that scroll on a small screen are reached without a mouse: the frame takes the focus and has a name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture.code import ROOT

TEMPLATES = ROOT / "templates"
FRAME = re.compile(r"<\w+[^>]*\bclass=\"(?:[^\"]* )?table-wrap(?: [^\"]*)?\"[^>]*>")
SCRIPTS = [path for path in ROOT.glob("*/**/static/**/*.js") if ".venv" not in path.parts]


def _missing(text: str, ids: set[str]) -> list[str]:
    """Frames of tables in a template that the keyboard does not reach, or that have no role or no name."""
    found = []
    for frame in FRAME.findall(text):
        by = re.search(r'aria-labelledby="([^"{]+)"', frame)
        is_named = by[1] in ids if by else 'aria-label="' in frame
        if 'tabindex="0"' not in frame or not re.search(r'role="(?:region|group)"', frame) or not is_named:
            found.append(frame)
    return found


def _ids(text: str) -> set[str]:
    return set(re.findall(r'\bid="([^"{]+)"', text))


@pytest.fixture(scope="module")
def templates() -> dict[Path, str]:
    return {path.relative_to(TEMPLATES): path.read_text(encoding="utf-8") for path in TEMPLATES.rglob("*.html")}


def test_scrolling_tables_take_the_focus_and_have_a_name(templates):
    ids = set().union(*map(_ids, templates.values()))
    found = {str(path): bad for path, text in templates.items() if (bad := _missing(text, ids))}

    assert found == {}, 'Write <div class="table-wrap" tabindex="0" role="group" aria-labelledby="ID OF ITS HEADING">.'
    assert sum(len(FRAME.findall(text)) for text in templates.values()) > 60


def test_scrolling_tables_are_made_by_templates_alone():
    assert [path for path in SCRIPTS if "table-wrap" in path.read_text(encoding="utf-8")] == []


@pytest.mark.parametrize(
    "frame",
    [
        '<div class="table-wrap">',
        '<div class="card table-wrap" tabindex="0" role="region">',
        '<div class="table-wrap" tabindex="0" role="group" aria-labelledby="gone">',
        '<div class="table-wrap job-files" role="group" aria-labelledby="h">',
        '<section id="x" class="table-wrap" tabindex="0" aria-label="Files">',
    ],
)
def test_scrolling_table_without_focus_or_name_is_found(frame):
    assert _missing(f'<h2 id="h">Files</h2>{frame}', {"h"}) == [frame]


def test_scrolling_table_with_both_is_right():
    right = '<div class="table-wrap" tabindex="0" role="region" aria-label="{% translate \'Files\' %}">'

    assert FRAME.findall(right) == [right]
    assert _missing(right, set()) == []
