"""How other apps plug work into the queue without being imported by it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from django.core.exceptions import ObjectDoesNotExist

from aiplatform.lib.files import write_json
from aiplatform.lib.registry import Registry

if TYPE_CHECKING:
    from workers.models import Attempt, Job
    from workers.runs import RunDir


@dataclass(frozen=True)
class Capabilities:
    """Which buttons a job has."""

    pause: bool = True
    suspend: bool = False  # leaves a checkpoint when asked and can go on elsewhere
    finish: bool = True
    restore: bool = False


@dataclass(frozen=True)
class Launch:
    """What to start, made by a kind's `prepare`; the supervisor adds the run contract's own variables."""

    argv: list[str]
    env: dict[str, str] = field(default_factory=dict)
    read_only: list[Path] = field(default_factory=list)  # mounted for the job beside its run directory
    read_write: list[Path] = field(default_factory=list)
    ports: int = 0  # how many ports to lease; the first is AIP_PORT
    secrets: list[str] = field(default_factory=list)  # values to star out in the log
    finish_grace_s: float = 900.0  # how long "finish" may take after the word in the control file, before TERM

    def keep(self, path: Path) -> None:
        """Write it down for the other parts of a gang; only the platform may read it."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        write_json(path, values | {name: [str(p) for p in values[name]] for name in ("read_only", "read_write")})
        path.chmod(0o600)

    @classmethod
    def kept(cls, path: Path) -> Launch:
        """What `keep` wrote.

        Raises:
            OSError: nothing was.
        """
        values = json.loads(path.read_text())
        return cls(**values | {name: [Path(p) for p in values[name]] for name in ("read_only", "read_write")})


class JobKind(Protocol):
    """One meaning of a job. Methods may be called again after a crash: they are idempotent."""

    name: str
    label: Any  # a word for people, usually translated lazily
    # `idle_guard = False` on a kind whose jobs hold cards in order to be ready, see `guarded`

    def prepare(self, job: Job, attempt: Attempt, run: RunDir) -> Launch:
        """Fill `run.code` and `run.inputs`, write parameters, return what to start.

        At most 2 s; after a minute the attempt ends as failed (workers.execution.launching).
        """

    def capabilities(self, job: Job) -> Capabilities: ...

    def ended(self, job: Job, attempt: Attempt) -> None:
        """Keep what the run left behind (publish a model, close a record)."""

    def check_restore(self, job: Job) -> None:
        """Refuse with a DomainError what the owner may no longer use: it was submitted long ago."""

    def url(self, job: Job) -> str:
        """Path of the page that shows this job best."""


KINDS: Registry[JobKind] = Registry("job kind", order=lambda kind: kind.name)

register = KINDS.register  # called once per kind from the owning app's AppConfig.ready()
get = KINDS.get  # KeyError for a name nobody registered
names = KINDS.names  # sorted


def guarded(name: str) -> bool:
    """Whether jobs of this kind are warned and ended when their cards do nothing."""
    return name in KINDS and getattr(KINDS.get(name), "idle_guard", True)


def label_of(name: str) -> str:
    """The word people see for a kind; its name where it is not installed."""
    try:
        return str(get(name).label)
    except KeyError:
        return name


def url_of(job: Job) -> str:
    """The page that shows this job best; "" for a kind that has none, or whose own record is gone."""
    try:
        return get(job.kind).url(job)
    except (KeyError, ObjectDoesNotExist):
        return ""


def capabilities_of(job: Job) -> Capabilities:
    """What the job's kind says it can do; nothing but pause and stop for a kind that is not installed."""
    try:
        return get(job.kind).capabilities(job)
    except KeyError:
        return Capabilities(finish=False)
