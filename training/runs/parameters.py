"""Parameters of presets: read and checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from aiplatform.lib.errors import DomainError, Refusals
from training.presets import plateau
from training.presets.catalog import PRESETS
from training.presets.preset import Param, Preset
from training.presets.run import Refused
from training.runs import custom_networks, folds

MAX_PAIRS = 200
MAX_TEXT = 2000
MAX_LINES = 32_768  # characters of a text in several lines


class BadParameter(DomainError, code="bad_parameter", status=400, field="params"): ...


class UnknownPreset(DomainError, code="unknown_preset", status=400, field="preset"): ...


def preset_named(name: str) -> Preset:
    """The preset with this name.

    Raises:
        UnknownPreset: with the names that exist.
    """
    try:
        return PRESETS[name]
    except KeyError:
        names = ", ".join(PRESETS)
        raise UnknownPreset(
            _("Unknown preset %(name)s. Available presets: %(names)s.") % {"name": name, "names": names}
        ) from None


def presets_like(query: str) -> list[Preset]:
    """Return presets whose name, title, purpose or architectures contain each word; names match with gaps."""

    def holds(preset: Preset, word: str) -> bool:
        text = " ".join([preset.name, preset.title, preset.purpose, preset.task, *preset.architectures]).lower()
        letters = iter(preset.name + preset.title.lower())
        return word in text or all(letter in letters for letter in word)

    return [preset for preset in PRESETS.values() if all(holds(preset, word) for word in query.lower().split())]


def read(preset: Preset, raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return all parameters of `preset`: the defaults, overridden by `raw`, typed.

    Raises:
        BadParameter: unknown, of the wrong type or out of bounds; the sentence names the bounds.
    """
    by_name = {param.name: param for param in preset.parameters}
    refusals, values = Refusals(), {}
    for name in raw:
        with refusals:
            if name not in by_name:
                names = ", ".join(by_name)
                raise BadParameter(
                    _("%(preset)s has no parameter %(name)s. Available parameters: %(names)s.")
                    % {"preset": preset.name, "name": str(name)[:60], "names": names}
                )
    for name, param in by_name.items():
        with refusals:
            values[name] = read_one(param, raw[name]) if name in raw else param.default
    with refusals:
        folds.check(values)
    with refusals:
        custom_networks.check(values)
    refusals.end()
    return values


def read_complete(preset: Preset, raw: Mapping[str, Any]) -> dict[str, Any]:
    """Like `read`, for a training: its parameters have to end it.

    Raises:
        BadParameter: see `read` and `check_end`.
    """
    values = read(preset, raw)
    check_end(values)
    return values


def check_end(values: Mapping[str, Any]) -> None:
    """Refuse parameters that never end a training, before it is queued; `presets.plateau` refuses the same.

    Raises:
        BadParameter: no time budget, epochs, steps or patience; or a patience without evaluations.
    """
    if "patience" not in values or "budget_minutes" not in values:
        return  # the preset ends by itself, or one of these is refused already
    patient = values["patience"] or values.get("anneal") == plateau.NAME
    if not (patient or values["budget_minutes"] or values.get("epochs") or values.get("steps")):
        raise BadParameter(
            _("Set a time budget, epochs, steps or patience; otherwise the training never ends."),
            field="param_budget_minutes",
            name="budget_minutes",
        )
    if patient and not values.get("eval_share", 1):
        raise BadParameter(
            _("Patience needs evaluations during the training. Set eval_share above 0, or patience to 0."),
            field="param_patience",
            name="patience",
        )


def read_one(param: Param, raw: Any) -> Any:
    """Return one parameter, typed.

    Raises:
        BadParameter: blaming the field `param_<name>`, with the bounds.
    """
    try:
        if isinstance(raw, float) and not math.isfinite(raw):
            raise Refused("")
        limit = MAX_LINES if param.kind == "text" else MAX_TEXT
        if isinstance(raw, str) and (len(raw) > limit or "\0" in raw):
            raise Refused("")
        return param.read(raw)
    except (Refused, OverflowError):
        raise BadParameter(bounds(param), field=f"param_{param.name}", name=param.name) from None


def bounds(param: Param) -> str:
    """Return the permitted values of a parameter as a sentence: "lr is a number from 1e-07 to 10."."""
    unit = f" {_(param.unit)}" if param.unit else ""
    facts = {"name": param.name, "unit": unit, "choices": ", ".join(param.choices)}
    if param.choices:
        return _("%(name)s must be one of %(choices)s.") % facts
    if param.kind == "bool":
        return _("%(name)s must be true or false.") % facts
    if param.kind == "str":
        return _("%(name)s must be a short text.") % facts
    if param.kind == "text":
        return _("%(name)s must be a text of at most %(limit)s characters.") % (facts | {"limit": MAX_LINES})
    low, high = param.minimum, param.maximum
    facts |= {"low": "" if low is None else f"{low:.7g}", "high": "" if high is None else f"{high:.10g}"}
    is_int = param.kind == "int"
    if low is not None and high is not None:
        message = (
            _("%(name)s must be an integer from %(low)s to %(high)s%(unit)s.")
            if is_int
            else _("%(name)s must be a number from %(low)s to %(high)s%(unit)s.")
        )
    elif low is not None:
        message = (
            _("%(name)s must be an integer of at least %(low)s%(unit)s.")
            if is_int
            else _("%(name)s must be a number of at least %(low)s%(unit)s.")
        )
    else:
        message = _("%(name)s must be an integer.") if is_int else _("%(name)s must be a number.")
    return message % facts


def changed(preset: Preset, params: Mapping[str, Any]) -> dict[str, Any]:
    """Only what differs from the preset's defaults."""
    defaults = {param.name: param.default for param in preset.parameters}
    return {name: value for name, value in params.items() if name in defaults and defaults[name] != value}


def plain_pairs(pairs: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters of custom code: names with numbers, texts or true/false, as written to AIP_PARAMS.

    Raises:
        BadParameter: a name or value of another kind, or more than 200 of them.
    """
    if len(pairs) > MAX_PAIRS:
        raise BadParameter(_("At most %(limit)s parameters.") % {"limit": MAX_PAIRS})
    for name, value in pairs.items():
        if not name.isprintable() or not 0 < len(name) <= 100:
            raise BadParameter(_("A parameter name must have 1 to 100 printable characters."))
        good = isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value))
        if not good or (isinstance(value, str) and (len(value) > MAX_TEXT or "\0" in value)):
            raise BadParameter(_("%(name)s must be a number, a short text, or true or false.") % {"name": name})
        if isinstance(value, int) and abs(value) > 2**63:
            raise BadParameter(_("%(name)s is too large.") % {"name": name})
    return dict(pairs)
