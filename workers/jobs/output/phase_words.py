"""What people call the phases of a log."""

from __future__ import annotations

from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from workers.supervisor.log_lines import PHASES


def phases() -> list[tuple[str, str]]:
    """Each phase and its label, in their order."""
    labels = (
        pgettext("log", "Environment"),
        _("Network"),
        _("Variables"),
        pgettext("container", "Image"),
        _("Command"),
        _("Program"),
    )
    return list(zip(PHASES, labels, strict=True))
