"""Controls written by Python are those that Django's templates write."""

from __future__ import annotations

import datetime

import pytest
from django import forms
from django.forms.renderers import DjangoTemplates
from django.utils.safestring import mark_safe
from django.utils.translation import gettext_lazy

from aiplatform.lib.widgets import Renderer

CHOICES = [
    ("", gettext_lazy("Choose")),
    (1, "one & <two>"),
    ("a'b", mark_safe("<b>bold</b>")),
    (3, 1234567),
    ('Group "x"', [("g1", "first"), (None, "second")]),
]
ATTRS = {"class": 'a "b"', "disabled": True, "hidden": False, "data-x": 3, "min": 0.5}


@pytest.mark.parametrize(
    "widget",
    [
        forms.TextInput(attrs=ATTRS), forms.NumberInput(), forms.EmailInput(), forms.URLInput(), forms.PasswordInput(),
        forms.HiddenInput(), forms.DateInput(), forms.DateTimeInput(), forms.TimeInput(),
        forms.CheckboxInput(attrs=ATTRS), forms.FileInput(), forms.Textarea(attrs=ATTRS),
       
        forms.Select(attrs=ATTRS, choices=CHOICES), forms.SelectMultiple(choices=CHOICES),
        forms.NullBooleanSelect(), forms.RadioSelect(choices=CHOICES),
        forms.CheckboxSelectMultiple(choices=CHOICES), forms.MultipleHiddenInput(), forms.ClearableFileInput(),
    ],
    ids=lambda widget: type(widget).__name__,
)  # fmt: skip
@pytest.mark.parametrize(
    "value", [None, "", "a'b", '1 < 2 & "3"', 3, 1234567, True, ["1", "g1"], datetime.date(2026, 1, 2)], ids=str
)
def test_control_is_that_of_the_template(widget, value):
    if isinstance(widget, forms.MultipleHiddenInput) and not isinstance(value, list):
        value = ["x"]
    if isinstance(widget, forms.NullBooleanSelect) and isinstance(value, list):
        value = "true"

    ours, theirs = (
        widget.render("na<me", value, {"id": "id_1"}, renderer) for renderer in (Renderer(), DjangoTemplates())
    )

    assert ours == theirs
