"""The parameters of presets as form fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from django import forms
from django.template.loader import get_template
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from training.catalog import param_labels
from training.presets.catalog import PRESETS
from training.presets.preset import Param, Preset
from training.runs import custom_networks, parameters, pretrained_weights

#: Parameters that are always shown, above the folded ones, with buttons for usual values.
FIRST = frozenset({"budget_minutes"})

#: Time budgets that the form offers by a button, in minutes.
TIME_BUDGETS_MIN = (5, 10, 30, 120, 480)

#: Id of the list of models on a page, from which fields that name one offer some.
MODELS_LIST = "registry-models"


class NumberField(forms.NumberInput):
    """A number without the trailing zero of a float."""

    def format_value(self, value: Any) -> str | None:
        return f"{value:.12g}" if isinstance(value, float) else super().format_value(value)


def control(param: Param, *, explicit: bool = False) -> forms.Field:
    """Return the form field of one parameter of a preset; in explicit mode it is initially empty."""
    texts: dict[str, Any] = {"label": param_labels.label(param.name), "help_text": _(param.help), "required": False}
    if param.choices or (explicit and param.kind == "bool"):
        choices = [(choice, choice) for choice in param.choices] or [("true", _("yes")), ("false", _("no"))]
        return forms.ChoiceField(choices=[("", _("Choose")), *choices] if explicit else choices, **texts)
    if param.kind == "bool":
        return forms.BooleanField(**texts)
    if param.kind == "str":
        offers = {"list": MODELS_LIST} if param.name in pretrained_weights.NAMES else {}
        return forms.CharField(max_length=parameters.MAX_TEXT, widget=forms.TextInput(attrs=offers), **texts)
    if param.kind == "text":
        attrs = {"rows": 18, "wrap": "off", "spellcheck": "false", "class": "mono", "autocapitalize": "off"}
        if param.name == custom_networks.PARAMETER:
            attrs["data-of-choice"] = f"{custom_networks.CHOICE}={custom_networks.OWN}"
        return forms.CharField(
            max_length=parameters.MAX_LINES, widget=forms.Textarea(attrs=attrs), strip=False, **texts
        )
    bounds = {"min": param.minimum, "max": param.maximum, "step": 1 if param.kind == "int" else "any"}
    attrs = {name: f"{value:.12g}" if isinstance(value, float) else value for name, value in bounds.items()}
    widget = NumberField(attrs={name: value for name, value in attrs.items() if value is not None})
    return forms.CharField(widget=widget, **texts)  # the catalog reads it, and its refusal names the bounds


def _as_sent(value: bool | int | float | str) -> str:
    """A default as a form sends it; "" for a box without a tick."""
    if isinstance(value, bool):
        return "on" if value else ""
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _grouped(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return fields by group with the group's label, those seldom changed last; groups without fields are left out."""
    rows = sorted(rows, key=lambda row: bool(row["advanced"]))
    grouped = [
        {"label": label, "fields": [row for row in rows if row["group"] == name]}
        for name, label in param_labels.GROUPS.items()
    ]
    return [group for group in grouped if group["fields"]]


def typed(preset: Preset, data: Mapping[str, str]) -> dict[str, Any]:
    """What was typed into a preset's fields of another form, right or wrong, to begin a form with."""
    return {
        param.name: f"{preset.name}__{param.name}" in data
        if param.kind == "bool"
        else data[f"{preset.name}__{param.name}"]
        for param in preset.parameters
        if param.kind == "bool" or f"{preset.name}__{param.name}" in data
    }


def _fields_of(preset: Preset, values: Mapping[str, Any], *, is_explicit: bool) -> dict[str, forms.Field]:
    """The fields of a preset that begin with `values`, else with its defaults, or empty where all are explicit."""
    fields = {}
    for param in preset.parameters:
        field = control(param, explicit=is_explicit)
        field.code = param.name  # type: ignore[attr-defined]  # beside its words, since files and scripts know it by name
        if not is_explicit:
            field.widget.attrs["data-default"] = _as_sent(param.default)
        chosen = values.get(param.name, None if is_explicit else param.default)
        is_switch = is_explicit and isinstance(chosen, bool)
        field.initial = str(chosen).lower() if is_switch else chosen
        fields[f"{preset.name}__{param.name}"] = field
    return fields


@lru_cache(maxsize=64)
def _usual_fields(name: str, _identity: int, _language: str | None) -> Mapping[str, forms.Field]:
    """The fields of a preset of the catalog with its defaults: forms share them, none changes them."""
    return _fields_of(PRESETS[name], {}, is_explicit=False)


@dataclass
class ShownPreset:
    """A preset in the template, with its fields; those that a remembered part of the page shows are not made again."""

    form: Any
    preset: Preset
    key: tuple[object, ...] | None

    @cached_property
    def _rows(self) -> list[dict[str, Any]]:
        return [
            {
                "field": self.form[f"{self.preset.name}__{param.name}"],
                "unit": param.unit and _(param.unit),
                "advanced": param.advanced,
                "group": param.group,
                "first": param.name in FIRST,
                "values": [(minutes, 60 * minutes) for minutes in TIME_BUDGETS_MIN] if param.name in FIRST else (),
                "examples": custom_networks.examples() if param.name == custom_networks.PARAMETER else (),
            }
            for param in self.preset.parameters
            if f"{self.preset.name}__{param.name}" in self.form.fields
        ]

    @property
    def first(self) -> list[dict[str, Any]]:
        """Parameters that are always shown, above the collapsed groups."""
        return [row for row in self._rows if row["first"]]

    @property
    def folded(self) -> list[dict[str, Any]]:
        """The other parameters, by group."""
        return _grouped([row for row in self._rows if not row["first"]])

    @property
    def open(self) -> bool:
        """Whether the folded parameters show: where all are given explicitly, and where one is wrong."""
        if self.form.is_explicit:
            return True
        return self.form.is_bound and any(row["field"].errors for row in self._rows if not row["first"])


class ParamFields:
    """Adds a field per parameter of each preset, named `<preset>__<parameter>`."""

    fields: dict[str, forms.Field]
    called: Mapping[str, str]
    _prefilled: set[str]  # presets whose fields have other initial values than the defaults
    shares_usual_fields = False  # whether the form leaves fields with the usual values as they are
    is_explicit = False  # large-scale mode: nothing is filled in, see `training.runs.explicit_mode`

    def add_params(self, presets: Iterable[Preset], initial_params: dict[str, dict[str, Any]]) -> None:
        self._prefilled = {name for name, values in initial_params.items() if values}
        for preset in presets:
            values = initial_params.get(preset.name, {})
            is_usual = not values and not self.is_explicit and PRESETS.get(preset.name) is preset
            if self.shares_usual_fields and is_usual:
                self.fields.update(_usual_fields(preset.name, id(preset), get_language()))
            else:
                self.fields.update(_fields_of(preset, values, is_explicit=self.is_explicit))

    def params_of(self: Any, preset: Preset) -> dict[str, Any]:
        """What was filled in; an emptied number or text falls back to the default."""
        params = {}
        for param in preset.parameters:
            field = f"{preset.name}__{param.name}"
            value = self.cleaned_data.get(field)
            emptied = value == "" and (
                param.kind not in ("str", "text") or param.choices or self.add_prefix(field) not in self.data
            )
            if value is not None and not emptied:
                params[param.name] = value
        return params

    def check_params(self: Any, preset: Preset) -> None:
        """Report wrong parameters at their fields, and prepare the names of errors that a service reports later."""
        params = self.params_of(preset)
        own = {f"param_{param.name}": f"{preset.name}__{param.name}" for param in preset.parameters}
        self.called = {**getattr(self, "called", {}), **own}
        for param in preset.parameters:
            try:
                parameters.read_one(param, params.get(param.name, param.default))
            except parameters.BadParameter as exc:
                self.add_error(f"{preset.name}__{param.name}", exc.message)

    def _key_of(self: Any, preset: Preset) -> tuple[object, ...] | None:
        """What the fields of a preset stand for while they have their usual values; None where they may differ."""
        if self.is_bound or self.is_explicit or preset.name in self._prefilled or self.prefix:
            return None
        return (preset.name, id(preset))

    def groups(self: Any) -> list[ShownPreset]:
        """For the template: each preset with its first fields, and the others by group."""
        return [
            ShownPreset(self, preset, self._key_of(preset))
            for preset in PRESETS.values()
            if any(f"{preset.name}__{param.name}" in self.fields for param in preset.parameters)
        ]


class UsualParams(ParamFields, forms.Form):
    """The parameters of all presets with their usual values, to render once what pages remember."""

    shares_usual_fields = True

    def __init__(self) -> None:
        super().__init__()
        self.add_params(PRESETS.values(), {})


def preload() -> None:
    """Render the hundreds of controls that the page of a new training remembers."""
    for group in UsualParams().groups():
        get_template("training/_preset_params.html").render({"group": group})
