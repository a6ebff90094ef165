"""Arrays of jobs: one request that becomes many jobs, which differ by an index."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import Count
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.errors import DomainError, Invalid
from workers.core.models import Job, JobArray
from workers.core.states import FINAL, JobState
from workers.jobs import actions
from workers.jobs.transitions import StaleReport

MAX_JOBS = 1000
HIGHEST = 1_000_000
MAX_LENGTH = 200  # characters
TURNS = 3
"""How often the stop of a job is tried that others move at the same moment."""
_PART = re.compile(r"(\d{1,7})(?:-(\d{1,7})(?::(\d{1,7}))?)?")


@dataclass(frozen=True)
class Indices:
    """The indices of an array in order, the text they were parsed from, and how many of its jobs run at a time."""

    text: str
    numbers: tuple[int, ...]
    at_once: int | None


def parse(text: str) -> Indices:
    """Read `0-99`, `1,3,7`, `0-90:10`, each also with `%8`: eight at a time.

    Raises:
        Invalid: anything else, an index named twice, or too many.
    """
    plain = "".join(text.split())
    spans, percent, at_once = plain.partition("%")
    parts = [_PART.fullmatch(part) for part in spans.split(",")]
    if len(plain) > MAX_LENGTH or not all(parts) or (percent and not re.fullmatch(r"[1-9]\d{0,5}", at_once)):
        raise Invalid(_("Write indices such as 0-99, 1,3,7, or 0-99%8 for eight at a time."), field="array")
    numbers: list[int] = []
    for part in parts:
        numbers += _span(*part.groups()) if part else ()
        if len(numbers) > MAX_JOBS:
            raise Invalid(_("An array can have at most %(most)s jobs.") % {"most": MAX_JOBS}, field="array")
    if len(set(numbers)) < len(numbers):
        raise Invalid(_("Duplicate index."), field="array")
    return Indices(plain, tuple(sorted(numbers)), int(at_once) if at_once else None)


def _span(first: str, last: str | None, step: str | None) -> range:
    begin, end, stride = int(first), int(last or first), int(step or 1)
    if end < begin or end > HIGHEST or stride < 1:
        raise Invalid(
            _("The range %(first)s-%(last)s is empty. Start with the lower index.") % {"first": begin, "last": end},
            field="array",
        )
    if (end - begin) // stride >= MAX_JOBS:
        raise Invalid(_("An array can have at most %(most)s jobs.") % {"most": MAX_JOBS}, field="array")
    return range(begin, end + 1, stride)


def states(array: JobArray) -> Mapping[str, int]:
    """How many of its jobs are in each state."""
    rows = array.jobs.order_by().values_list("state").annotate(jobs=Count("pk"))
    return Counter(dict(rows))


def stop(array: JobArray, *, by: User) -> int:
    """Stop all of its jobs that have not ended; return how many stops were requested. Queued jobs end first."""
    left = array.jobs.exclude(state__in=FINAL)
    waiting = list(left.filter(state=JobState.QUEUED).order_by("-array_index"))
    count = 0
    for job in [*waiting, *left.exclude(state=JobState.QUEUED)]:
        count += _stop(job, by)
    return count


def _stop(job: Job, by: User) -> bool:
    """Stop one job; one that changed concurrently is tried again."""
    for _turn in range(TURNS):
        try:
            actions.stop(job, by=by)
        except StaleReport:
            continue
        except DomainError:  # it ended, or is stopping already
            return False
        return True
    return False
