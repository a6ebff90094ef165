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


def taken(user: User, given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a request with its code as a snapshot, from wherever it came.

    Raises:
        BadCode, ArchiveRefused: and what else is wrong with the words of the script.
    """
    return with_code(user, dict(given), _check)


def submit(user: User, body: Mapping[str, Any]) -> Evaluation:
    """Queue the evaluation that a body of the API says.

    Raises:
        DomainError: all that it is refused for.
    """
    given = body_of(EvaluationIn, user, body, evaluations.check)
    return evaluations.submit(user=user, **taken(user, given))


def _check(fields: Mapping[str, Any]) -> None:
    scripts.check_parts(arguments=fields.get("arguments", ""), output_path=fields.get("output_path", ""))
