"""What every page's frame shows."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from accounts.permissions import Action
from aiplatform import __version__, env


def frame(request: HttpRequest) -> dict[str, Any]:
    """Version, and what the reader may do: `{% if may.training_submit %}`."""
    user = getattr(request, "user", None)
    actions = user.actions() if user is not None and user.is_authenticated else frozenset()
    return {
        "version": __version__,
        "may": {action.name.lower(): action in actions for action in Action},
        "simulated_gpus": env.FAKE_GPUS,
    }
