"""Whose output a request asks for: machine and attempt of a job. One that the job does not have is a 404."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import Http404

from aiplatform.lib import queries
from workers.core.models import Job


def rank(job: Job, given: Mapping[str, Any]) -> int:
    """The machine that is asked for, the first one unless said."""
    number = queries.read_int(given, "rank", 0) or 0
    if number not in job.ranks:
        raise Http404
    return number


def attempt(job: Job, given: Mapping[str, Any]) -> int | None:
    """The attempt that is asked for; None is the newest."""
    number = queries.read_int(given, "attempt")
    if number and number > job.attempt_number:
        raise Http404
    return number or None
