"""Requests for evaluations, as the API and steps of pipelines send them, turned into arguments of `submit`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accounts.models import User
from inference.scripted import scripts
from training.api.inputs import with_code


def taken(user: User, given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a request with its code as a snapshot, from wherever it came.

    Raises:
        BadCode, ArchiveRefused: and what else is wrong with the words of the script.
    """
    return with_code(user, dict(given), _check)


def _check(fields: Mapping[str, Any]) -> None:
    scripts.check_parts(arguments=fields.get("arguments", ""), output_path=fields.get("output_path", ""))
