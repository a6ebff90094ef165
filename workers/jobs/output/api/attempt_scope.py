"""Whose output a request asks for: machine and attempt of a job. One that the job does not have is a 404."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import Http404

from aiplatform.lib import queries
from workers.core.models import Job


def rank(job: Job, params: Mapping[str, Any]) -> int:
    """The requested rank, 0 by default."""
    number = queries.read_int(params, "rank", 0) or 0
    if number not in job.ranks:
        raise Http404
    return number


def attempt(job: Job, params: Mapping[str, Any]) -> int | None:
    """The requested attempt; None is the newest."""
    number = queries.read_int(params, "attempt")
    if number and number > job.attempt_number:
        raise Http404
    return number or None
