"""Parameters of people's own code as lines of text, `name = value`."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext as _

from aiplatform.lib.typed import typed


def read_pairs(text: str) -> dict[str, Any]:
    """Lines `name = value` as typed pairs: whole number, number, true/false, else text.

    Raises:
        ValidationError: a line without "=", or a name given twice.
    """
    pairs: dict[str, Any] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, equals, raw = line.partition("=")
        name = name.strip()
        if not equals or not name:
            raise forms.ValidationError(_("Line %(number)s: write it as name = value.") % {"number": number})
        if name in pairs:
            raise forms.ValidationError(_("Duplicate parameter %(name)s.") % {"name": name})
        pairs[name] = typed(raw.strip())
    return pairs


def written_pairs(params: dict[str, Any]) -> str:
    """The lines that `read_pairs` reads into `params`."""

    def shown(value: Any) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, str) and typed(value) != value:
            return f'"{value}"'
        return str(value)

    return "\n".join(f"{name} = {shown(value)}" for name, value in params.items())
