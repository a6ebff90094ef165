"""One standard for all forms: the primary button before the way out, one drop zone around each file field."""

from __future__ import annotations

import re
from pathlib import Path

from django import forms
from django.conf import settings
from django.template import engines

CLOSE = re.compile(
    r'<button[^>]*data-dialog-close[^>]*>|<a class="btn[^"]*"[^>]*>\{% translate "Cancel" %\}'
    r'|<a class="btn(?:(?!<a ).)*?>\{% translate "Cancel" %\}</a>'
)
GROUP = re.compile(r'<div class="(?:form-actions|dialog-foot|row|spread)[^"]*">(.*?)</div>', re.DOTALL)
PRIMARY = re.compile(r'class="btn[^"]*btn-primary')
FILE_INPUT = re.compile(r'<input[^>]*type="file"[^>]*>')
FILE_FIELD = re.compile(r"^\s+(\w+) = (?:forms\.FileField|PicturesField)\(", re.MULTILINE)
TEMPLATES = sorted((Path(settings.BASE_DIR) / "templates").rglob("*.html"))


def way_out_first(text: str) -> list[str]:
    """Return the groups of buttons in which the way out is before the primary button."""
    wrong = []
    for group in GROUP.findall(text):
        close, primary = CLOSE.search(group), PRIMARY.search(group)
        if close and primary and close.start() < primary.start():
            wrong.append(group)
    return wrong


def bare_file_inputs(text: str) -> list[str]:
    """Return the file inputs that look as the browser draws them; hidden ones have a button or zone of their own."""
    return [
        found[0]
        for found in FILE_INPUT.finditer(text)
        if not re.search(r"\bhidden\b|sr-only", found[0]) and "data-drop" not in text[: found.start()]
    ]


def test_forms_offer_what_they_do_before_the_way_out():
    assert {str(path): found for path in TEMPLATES if (found := way_out_first(path.read_text()))} == {}


def test_way_out_before_the_primary_button_is_found():
    cancel = '<a class="btn" href="{% url \'files:list\' %}">{% translate "Cancel" %}</a>'
    close = '<button class="btn" type="button" data-dialog-close>{% translate "Back" %}</button>'
    save = '<button class="btn btn-primary">Save</button>'

    assert len(way_out_first(f'<div class="row">{cancel}{save}</div>')) == 1
    assert len(way_out_first(f'<div class="dialog-foot">{close}{save}</div>')) == 1
    assert way_out_first(f'<div class="form-actions">{save}{cancel}</div>') == []


def test_file_inputs_of_templates_lie_in_a_drop_zone():
    wrong = {str(path): found for path in TEMPLATES if (found := bare_file_inputs(path.read_text()))}

    assert wrong == {}
    assert len(bare_file_inputs('<p><input type="file" name="a"></p>')) == 1


def test_file_fields_of_forms_are_written_by_the_component():
    """`{{ form.file }}` would show the browser's own button; `{% field form.file %}` shows the drop zone."""
    root = Path(settings.BASE_DIR)
    apps = ("accounts", "annotation", "datasets", "inference", "training", "workers")
    names = {
        name for app in apps for path in (root / app).rglob("*.py") for name in FILE_FIELD.findall(path.read_text())
    }
    bare = re.compile(r"\{\{ ?\w*form\.(" + "|".join(sorted(names)) + r") ?\}\}")

    assert {"file", "image", "code_archive", "listed"} <= names
    assert [str(path) for path in TEMPLATES if bare.search(path.read_text())] == []


class _Upload(forms.Form):
    table = forms.FileField(label="Table", help_text="A CSV file.")
    images = forms.FileField(widget=type("Files", (forms.FileInput,), {"allow_multiple_selected": True}))


def test_file_field_is_a_drop_zone():
    template = engines["django"].from_string("{% load ui %}{% field form.table %}{% field form.images %}")

    html = template.render({"form": _Upload()})

    assert html.count("data-drop-file") == 2
    assert html.index("data-drop-file") < html.index('type="file" name="table"')
    assert "or drop it here" in html
    assert "or drop them here" in html
