"""Requests for evaluations, as the API and steps of pipelines send them, turned into arguments of `submit`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accounts.models import User
from inference.evaluation import evaluations
from inference.evaluation.custom_scripts import scripts
from inference.evaluation.models import Evaluation
from inference.evaluation.serializers import EvaluationIn
from training.programs.request_schemas import body_of
from training.programs.serializers import with_code


def with_snapshot(user: User, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a request with its code as a snapshot, whatever its source.

    Raises:
        BadCode, ArchiveRefused: and what else is wrong with the words of the script.
    """
    return with_code(user, dict(fields), _check)


def submit(user: User, body: Mapping[str, Any]) -> Evaluation:
    """Queue the evaluation that a request body of the API describes.

    Raises:
        DomainError: all that it is refused for.
    """
    fields = body_of(EvaluationIn, user, body, evaluations.check)
    return evaluations.submit(user=user, **with_snapshot(user, fields))


def _check(fields: Mapping[str, Any]) -> None:
    scripts.check_parts(arguments=fields.get("arguments", ""), output_path=fields.get("output_path", ""))
