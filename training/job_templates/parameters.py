"""Parameters of a template: `{{ name }}` in its request, with defaults, asked for when it is used."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypedDict

from django.utils.translation import gettext as _

from aiplatform.lib.errors import Invalid, Refusals
from aiplatform.lib.typed import typed
from training.programs.request_text import PARAMETER

MAX_PARAMETERS = 50
MAX_LENGTH = 10_000  # characters of a value
_ABOUT = re.compile(r"(?:^|\s)#")  # "#" after a blank begins what it means
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")


class Parameter(TypedDict):
    """A parameter; without a default (None) it has to be given."""

    name: str
    default: Any
    about: str


def names_in(value: Any) -> Iterator[str]:
    """The names of all parameters in a request, in the order in which they stand."""
    if isinstance(value, str):
        yield from PARAMETER.findall(value)
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from names_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from names_in(inner)


def read(text: str) -> list[Parameter]:
    """Lines `name = default  # what it means`; without `=` it has to be given.

    Raises:
        Invalid: naming each line that is wrong.
    """
    refusals, rows = Refusals(), []
    for number, line in enumerate(text.splitlines(), start=1):
        plain, *rest = _ABOUT.split(line, maxsplit=1)
        description = rest[0] if rest else ""
        if not plain.strip():
            continue
        name, equals, default = (part.strip() for part in plain.partition("="))
        with refusals:
            if not _NAME.fullmatch(name):
                raise Invalid(
                    _("Line %(number)s: write it as name = default.") % {"number": number}, field="parameters"
                )
        rows.append(Parameter(name=name, default=typed(default) if equals else None, about=description.strip()))
    refusals.end()
    return rows


def written(parameters: Sequence[Parameter]) -> str:
    """The lines that `read` reads."""
    return "\n".join(_line(parameter) for parameter in parameters)


def _line(parameter: Parameter) -> str:
    default = parameter["default"]
    if isinstance(default, bool):
        default = "true" if default else "false"
    elif (isinstance(default, str) and typed(default) != default) or default == "":
        default = f'"{default}"'  # a number that is meant as a text
    line = parameter["name"] if default is None else f"{parameter['name']} = {default}"
    return f"{line}  # {parameter['about']}" if parameter["about"] else line


def check(request: Mapping[str, Any], parameters: Sequence[Parameter], *, secrets: str) -> None:
    """Refuse parameters that do not belong to a request, and secrets that would be kept with it.

    Args:
        secrets: the field whose values are secret; each of them has to be a parameter without a default.

    Raises:
        Invalid: naming each.
    """
    refusals = Refusals()
    by_name = {parameter["name"]: parameter for parameter in parameters}
    used = list(dict.fromkeys(names_in(request)))
    with refusals:
        if len(parameters) > MAX_PARAMETERS:
            raise Invalid(
                _("A template can have at most %(most)s parameters.") % {"most": MAX_PARAMETERS}, field="parameters"
            )
    with refusals:
        if len(by_name) < len(parameters):
            raise Invalid(_("Duplicate parameter."), field="parameters")
    for name in used:
        with refusals:
            if name not in by_name:
                raise Invalid(
                    _("%(name)s appears in the request but is not a parameter.") % {"name": name}, field="parameters"
                )
    for name in by_name:
        with refusals:
            if name not in used:
                raise Invalid(_("%(name)s does not appear in the request.") % {"name": name}, field="parameters")
    secret_values = request.get(secrets) if secrets else None
    for name, value in secret_values.items() if isinstance(secret_values, Mapping) else ():
        match = PARAMETER.fullmatch(value) if isinstance(value, str) else None
        with refusals:
            if match is None or by_name.get(match[1], {"default": None})["default"] is not None:
                raise Invalid(
                    _("%(name)s: templates cannot store secrets. Use a parameter without a default instead.")
                    % {"name": str(name)[:60]},
                    field=secrets,
                )
    refusals.end()


def values(parameters: Sequence[Parameter], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of each parameter: its input, or else its default.

    Raises:
        Invalid: one that has to be given, one that is none of the template's, or one that is too long.
    """
    refusals, result = Refusals(), {}
    names = [parameter["name"] for parameter in parameters]
    for name in inputs:
        with refusals:
            if name not in names:
                raise Invalid(
                    _("The template has no parameter %(name)s. Available parameters: %(names)s.")
                    % {"name": str(name)[:40], "names": ", ".join(names) or "–"},
                    field="values",
                )
    for parameter in parameters:
        value = inputs.get(parameter["name"])
        if value in (None, ""):
            value = parameter["default"]
        elif isinstance(value, str) and parameter["default"] is not None and not isinstance(parameter["default"], str):
            value = typed(value)
        with refusals:
            if value is None:
                raise Invalid(_("Enter a value for %(name)s.") % {"name": parameter["name"]}, field=parameter["name"])
            if isinstance(value, str) and (len(value) > MAX_LENGTH or "\0" in value):
                raise Invalid(
                    _("%(name)s can have at most %(most)s characters and no NUL.")
                    % {"name": parameter["name"], "most": MAX_LENGTH},
                    field=parameter["name"],
                )
        result[parameter["name"]] = value
    refusals.end()
    return result


def filled(request: Any, chosen: Mapping[str, Any]) -> Any:
    """Return a request with values in place of parameters; a parameter that is the entire text keeps its type."""
    if isinstance(request, str):
        match = PARAMETER.fullmatch(request)
        if match:
            return chosen.get(match[1], request)
        return PARAMETER.sub(lambda placeholder: str(chosen.get(placeholder[1], placeholder[0])), request)
    if isinstance(request, Mapping):
        return {name: filled(value, chosen) for name, value in request.items()}
    if isinstance(request, list):
        return [filled(value, chosen) for value in request]
    return request
