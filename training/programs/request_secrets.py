"""Requests as people read them who need not know what is secret in them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from accounts.models import User
from aiplatform.lib import secret_names
from training.programs import script
from workers.core.models import Job

LINES = ("command", "worker_command", "arguments")  # fields that are command lines


def hidden(request: Mapping[str, Any], *, lines: Collection[str] = LINES) -> dict[str, Any]:
    """Return the request with every value hidden whose name says that it is secret.

    Args:
        lines: the fields that are command lines.
    """
    return {name: _hidden(value, is_line=name in lines) for name, value in request.items()}


def as_known_to(
    user: User | None, job: Job, request: Mapping[str, Any], *, lines: Collection[str] = LINES
) -> dict[str, Any]:
    """Return the request of a job as this person may copy it: whole for its owner, `hidden` for everybody else."""
    is_owner = user is not None and job.owner_id == user.pk
    return dict(request) if is_owner else hidden(request, lines=lines)


def _hidden(value: Any, *, is_line: bool) -> Any:
    if isinstance(value, Mapping):
        return secret_names.mask_params(value)
    return script.shown(value) if is_line and isinstance(value, str) else value
