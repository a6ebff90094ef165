"""System checks: report wrong settings."""

from typing import Any

from django.core.checks import CheckMessage, Error, register

from aiplatform import env

SETTINGS = "settings"
"""Tag of the checks that long-lived commands run as they start: all others import every page, a third of a start."""


@register(SETTINGS)
def environment(**_: Any) -> list[CheckMessage]:
    """One error for each AIP_* variable that could not be read."""
    return [Error(text, id="aiplatform.E001", obj=name) for name, text in env.problems]
