"""Life of environments: when they became ready, whether anybody uses them, when they are warned and stopped.

The one writer of the columns of `Environment` that belong to an attempt. What a job answers is hostile until proven
otherwise: each environment is judged by itself, so that none keeps another from being judged.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta

from django.db import transaction

from accounts.services.notify import notify
from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError
from training.environments import activity, idle_release, jupyter, jupyter_access, services, vscode
from training.environments.idle_release import idle_for
from training.environments.jupyter import Answers, Server
from training.environments.models import Environment, Sign
from workers.access.proxy.activity import last_request
from workers.access.ssh.activity import last_heard
from workers.core import kinds
from workers.core.clock import now
from workers.core.models import Attempt, Job
from workers.core.states import Desired, JobState, Reason
from workers.execution.exec import channels
from workers.execution.exec.channels import Way
from workers.jobs import actions, transitions
from workers.jobs.output import metrics

log = logging.getLogger(__name__)

COLUMNS = [
    "attempt",
    "ready_at",
    "answered_at",
    "looked_at",
    "alive_at",
    "alive_by",
    "idle_since",
    "warned_at",
    "vscode",
    "gives_at",
]
AT_ONCE = 16  # environments that are asked at a time
UNSEEN = timedelta(minutes=3)  # what lies between two looks is held against nobody
SILENCE_TIMEOUT = timedelta(minutes=1)  # after so long without an answer it is said not to answer
CPU_BUSY = 20.0  # per cent of a core; JupyterLab with an open tab takes 1 to 3
MAX_WARNING = timedelta(minutes=30)

#: Signs that rooms below know of, by a function from a job to the time of the newest one.
SOURCES: tuple[tuple[Sign, Callable[[Job], datetime | None]], ...] = (
    (Sign.REQUEST, last_request),
    (Sign.SSH, last_heard),
)


def look_at_all() -> None:
    """Ask every running environment, and judge each."""
    rows = list(Environment.objects.running().select_related("job__owner", "job__cluster"))
    attempts = _attempts(rows)
    answers = _query_servers(rows, attempts)
    for row in rows:
        if row.pk not in answers:  # paused or away since: nobody saw whether it is used
            continue
        try:
            judge(row, attempts[row.pk], answers[row.pk], now())
        except Exception:
            log.exception("job=%s could not be judged, the others are", row.pk)
    _look_for_vscode([row for row in rows if row.pk in answers and row.vscode == vscode.UNKNOWN], attempts)


def see_ready(environment: Environment) -> Environment:
    """Query a workspace that was not yet seen ready, for a waiting user; the sweep does so less often."""
    job = environment.job
    if job.state != JobState.RUNNING or is_ready(environment):
        return environment
    attempts = _attempts([environment])
    if environment.pk in attempts:
        answers = _query_servers([environment], attempts)
        if environment.pk in answers and judge(environment, attempts[environment.pk], answers[environment.pk], now()):
            _look_for_vscode([environment], attempts)  # whoever else asks goes on; the sweep looks where this one dies
    return environment


def is_ready(environment: Environment) -> bool:
    """Whether the attempt that runs now has answered."""
    return environment.attempt == environment.job.attempt_number and environment.ready_at is not None


def judge(environment: Environment, attempt: Attempt, answers: Answers | None, moment: datetime) -> bool:
    """Bring the row up to what was seen of it at `moment`, and warn or stop it where it is idle.

    Args:
        answers: what JupyterLab said; None where it did not answer.

    Returns:
        Whether this was the first to see this attempt ready; of several who look at a time one is.
    """
    with _locked(environment):  # asking took a while
        if attempt.number < environment.attempt:
            return False
        _reset_for_attempt(environment, attempt)
        first = answers is not None and environment.ready_at is None
        if answers is not None:
            environment.answered_at = moment
        if first:
            _became_ready(environment, attempt, moment)
        if environment.looked_at and environment.idle_since and moment - environment.looked_at > UNSEEN:
            environment.idle_since += moment - environment.looked_at
        environment.looked_at = max(moment, environment.looked_at or moment)
        for sign, at in _signs(environment, attempt, answers, moment):
            _show(environment, sign, at)
        _save(environment)
        idle_release.judge(environment, moment)
    _judge_idle(environment, moment)
    return first


def mark_needed(environment: Environment, moment: datetime) -> None:
    """Record that the owner still needs the workspace: its idle time starts again."""
    attempt = environment.job.attempts.filter(number=environment.job.attempt_number).first()
    with _locked(environment):
        if attempt is not None:
            _reset_for_attempt(environment, attempt)
        _show(environment, Sign.OWNER, moment)
        _save(environment)


def stops_at(environment: Environment) -> datetime | None:
    """When it is stopped if it stays idle; None is never."""
    limit = services.idle_limit(environment)
    if limit is None or environment.idle_since is None:
        return None
    at = environment.idle_since + limit
    return max(at, environment.warned_at + warned_before(limit)) if environment.warned_at else at


def warned_before(limit: timedelta) -> timedelta:
    """How long before it is stopped an idle environment is warned."""
    return min(limit / 4, MAX_WARNING)


def _attempts(rows: Iterable[Environment]) -> dict[int, Attempt]:
    attempts = Attempt.objects.filter(job__in=[row.pk for row in rows], ended_at=None).select_related("job")
    return {attempt.job_id: attempt for attempt in attempts}


def _query_servers(rows: Iterable[Environment], attempts: dict[int, Attempt]) -> dict[int, Answers | None]:
    """Return the responses of all workspaces. Those that cannot be reached now are left out."""
    servers: dict[int, Server] = {}
    for row in rows:
        try:
            servers[row.pk] = jupyter.whom(row.job, attempts[row.pk], services.token_of(row))
        except (KeyError, DomainError) as exc:  # no attempt, no way to its machine, or its token no longer opens
            log.debug("job=%s cannot be asked: %s", row.pk, exc)
    with ThreadPoolExecutor(max_workers=AT_ONCE, thread_name_prefix="environments") as pool:
        return dict(zip(servers, pool.map(jupyter.query_server, servers.values()), strict=True))


def _look_for_vscode(rows: Collection[Environment], attempts: Mapping[int, Attempt]) -> None:
    """Publish VS Code where a workspace has it. Each one gets a time limit, so that none delays the others."""
    ways: dict[int, Way] = {}
    for row in rows:
        with suppress(DomainError):  # it cannot be reached now: the next sweep looks again
            ways[row.pk] = channels.way_to(row.job)
    with ThreadPoolExecutor(max_workers=AT_ONCE, thread_name_prefix="vscode") as pool:
        programs = dict(zip(ways, pool.map(vscode.find_or_none, ways.values()), strict=True))
    for row in rows:
        if row.pk in programs:
            name = vscode.offer(row.job, attempts[row.pk], programs[row.pk])
            Environment.objects.filter(pk=row.pk, attempt=attempts[row.pk].number).update(vscode=name)
            row.vscode = name


@contextmanager
def _locked(environment: Environment) -> Iterator[None]:
    """Hold the row as it is now, so that of several who look at a time none writes what another did not know."""
    with transaction.atomic():
        environment.refresh_from_db(fields=COLUMNS, from_queryset=Environment.objects.select_for_update())
        yield


def _reset_for_attempt(environment: Environment, attempt: Attempt) -> None:
    """Reset the row if another attempt runs than the recorded one."""
    if environment.attempt == attempt.number:
        return
    environment.attempt = attempt.number
    environment.ready_at = environment.answered_at = environment.looked_at = environment.warned_at = None
    environment.gives_at = None
    environment.alive_at, environment.alive_by, environment.vscode = None, "", ""
    environment.idle_since = attempt.started_at or attempt.assigned_at  # what never answers is idle as well


def _became_ready(environment: Environment, attempt: Attempt, moment: datetime) -> None:
    environment.ready_at = moment
    _show(environment, Sign.START, moment)
    token, folder = services.token_of(environment), environment.folder
    jupyter_access.publish(environment.job, socket=jupyter.socket_path(attempt), token=token, folder=folder)
    environment.vscode = vscode.UNKNOWN
    transitions.note(environment.job, "ready", wording.message("environment.ready"))


def _signs(
    environment: Environment, attempt: Attempt, answers: Answers | None, moment: datetime
) -> list[tuple[str, datetime]]:
    signs: list[tuple[str, datetime | None]] = []
    if answers is not None:
        signs.append((Sign.KERNEL, activity.of_kernels(answers.kernels, moment)))
        signs.append((Sign.TERMINAL, activity.of_terminals(answers.terminals, moment)))
    signs += [(sign, source(environment.job)) for sign, source in SOURCES]
    signs.append((Sign.CPU, _cpu_busy_at(environment, attempt)))
    if environment.job.gpus_per_node:  # of a job without cards none is ever seen idle
        signs.append((Sign.CARD, attempt.busy_at))
    return [(sign, at) for sign, at in signs if at is not None]


def _cpu_busy_at(environment: Environment, attempt: Attempt) -> datetime | None:
    """When its processes last took a good part of a core, if that was after what is known."""
    begun = attempt.started_at or attempt.assigned_at
    since = max(environment.idle_since or begun, environment.ready_at or begun)  # its own start is no sign of life
    nodes = attempt.job.nodes
    keys = ["system/cpu"] if nodes == 1 else [f"system/node{number}/cpu" for number in range(1, nodes + 1)]
    first = int((since - begun).total_seconds())
    busy = (
        points["at"][(points["value"] >= CPU_BUSY) & (points["step"] >= first)]
        for points in metrics.recent(attempt, keys, since).values()
    )
    return max((datetime.fromtimestamp(at[-1], UTC) for at in busy if len(at)), default=None)


def _show(environment: Environment, sign: str, at: datetime) -> None:
    """Take a sign of life in; one that is older than what is known says nothing."""
    if environment.alive_at is None or at > environment.alive_at:
        if environment.idle_since is None or at > environment.idle_since:
            environment.idle_since, environment.warned_at, environment.gives_at = at, None, None
        environment.alive_at, environment.alive_by = at, sign


def _judge_idle(environment: Environment, moment: datetime) -> None:
    limit, idle = services.idle_limit(environment), idle_for(environment, moment)
    if limit is None or environment.job.desired != Desired.RUN:
        return
    before = warned_before(limit)
    if environment.warned_at is None:
        if idle >= limit - before:
            _warn(environment, limit, moment)
    elif idle >= limit and moment - environment.warned_at >= before:
        message = wording.message("environment.idle_stopped", idle_s=idle.total_seconds())
        try:
            actions.stop(environment.job, reason=Reason.IDLE, message=message)
        except DomainError as exc:
            log.info("job=%s idle but not stopped: %s", environment.pk, exc)


@transaction.atomic
def _warn(environment: Environment, limit: timedelta, moment: datetime) -> None:
    job = environment.job
    environment.warned_at = moment
    environment.save(update_fields=["warned_at"])
    message = wording.message("environment.idle", idle_s=idle_for(environment, moment).total_seconds())
    transitions.note(job, "idle_warned", message)
    notify(
        job.owner,
        "idle",
        title=wording.message("news.environment_idle", name=job.name),
        text=wording.message("news.environment_stops", limit_s=limit.total_seconds()),
        url=kinds.url_of(job),
        key=f"environment-{job.pk}-{environment.attempt}-{environment.idle_since:%Y%m%d%H%M%S}",
    )


def _save(environment: Environment) -> None:
    environment.save(update_fields=COLUMNS)
