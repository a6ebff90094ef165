"""Job kinds: what a job means, said by the app that owns it, so that nothing else needs to know.

A kind is one object, registered once from its app's `AppConfig.ready()`. The queue, the planner input, the side bar,
the overview, the search and the filters read what it says here; none of them names a kind. The recipe for a new one is
in aiplatform/docs/subsystems/workers.md.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from django.core.exceptions import ObjectDoesNotExist
from django.urls import reverse

from accounts.access.permissions import Action
from aiplatform.lib.errors import DomainError
from aiplatform.lib.files import write_json
from aiplatform.lib.registry import Registry
from aiplatform.lib.search import Hit, filter_by_text
from workers.core.count_classes import JOB, CountClass
from workers.core.device_kinds import KINDS as DEVICE_KINDS
from workers.core.models import Attempt, Job

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from accounts.models import User
    from workers.core.runs import RunDir


@dataclass(frozen=True)
class Capabilities:
    """Which buttons a job has."""

    pause: bool = True
    suspend: bool = False  # leaves a checkpoint when asked and can go on elsewhere
    finish: bool = True
    restore: bool = False


@dataclass(frozen=True)
class Way:
    """One way to run a job again: its label, a sentence that describes it, and its target.

    `verb` is an act of the job itself, `url` a page. `why` says why it is not possible now; empty where it is.
    """

    key: str
    label: Any
    icon: str
    description: Any
    verb: str = ""
    url: str = ""
    why: str = ""


@dataclass(frozen=True)
class Fact:
    """A line of what a job is made of, on the queue's own page of it. `code` keeps its lines as they are."""

    label: Any
    value: str
    code: bool = False


_PATHS = ("read_only", "read_write", "own_folders")


@dataclass(frozen=True)
class Launch:
    """What to start, made by a kind's `prepare`; the supervisor adds the run contract's own variables."""

    argv: list[str]
    env: dict[str, str] = field(default_factory=dict)
    read_only: list[Path] = field(default_factory=list)  # mounted for the job beside its run directory
    read_write: list[Path] = field(default_factory=list)
    own_folders: list[Path] = field(default_factory=list)  # of `read_write`, those that hold this job's files alone
    ports: int = 0  # how many ports to lease; the first is AIP_PORT
    secrets: list[str] = field(default_factory=list)  # values to star out in the log
    overlay: dict[str, Any] = field(default_factory=dict)  # an image that it runs in, see workers.supervisor.ticket
    container: dict[str, Any] = field(default_factory=dict)  # in tier 4: its own `image`, and whether it is `writable`
    finish_grace_s: float = 900.0  # how long "finish" may take after the word in the control file, before TERM
    command: str = ""  # what is run, in people's words, for the log; "": the words of argv
    notes: list[str] = field(default_factory=list)  # lines for the log of what was done before, see log_lines
    own_network: bool = False  # a loopback of its own and nothing else, where the sandbox can give one

    def save(self, path: Path) -> None:
        """Write it for the other ranks of a gang; only the platform may read it."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        write_json(path, values | {name: [str(p) for p in values[name]] for name in _PATHS})
        path.chmod(0o600)

    @classmethod
    def load(cls, path: Path) -> Launch:
        """Read what `save` wrote; an OSError says that it wrote nothing."""
        values = json.loads(path.read_text())
        return cls(**values | {name: [Path(p) for p in values.get(name, ())] for name in _PATHS})


class NotYet(DomainError, code="not_yet"):
    """Raised by `prepare`: the job cannot begin now, through no fault of its own, and is tried again soon."""


class JobKind:
    """One kind of job: a name, a label, `prepare`, and what differs from the defaults here.

    Methods may be called again after a crash: they are idempotent.

    Attributes:
        name: what `Job.kind` holds; at most 20 characters, never changed once jobs of it exist.
        label: a word for one of its jobs, translated lazily.
        plural: what all of them together are called, in the navigation and in lists; "" is the label.
        hint: a few words of what one does there, in the first-run guide.
        icon: a symbol of aiplatform/static/base/icons.svg.
        order: place among the tabs of its section and wherever kinds are listed; equal ones by name.
        section: key of the entry of the side bar (aiplatform.frame.navigation) whose tab its list is.
        list_page: name of the URL of its own list; "": none, so it has neither a tab nor a step.
        step: whether the first-run guide has it as a step.
        step_label: label of that step; "": the plural.
        start_page: name of the URL of the page that starts one, which the guide leads to; "": none.
        start_word: label of the button to that page.
        view_action: what a person must be allowed to see its jobs there and to find them.
        own_tabs: whether the page at `url` has the tabs of a job's page itself, by the same `?tab=`.
        submit_action: what a person must be allowed to start one.
        offered: whether people can submit its jobs at all, by a page or the API.
        counts_as: the class in which a cluster limits how many of its jobs a person may run.
        idle_guard: whether its jobs are warned and ended while their devices are idle; false of those that stay ready.
        approvable: whether its jobs wait for an approval in clusters that ask for one.
        answers_requests: whether requests fail while its jobs wait; they come first among equal priorities.
        builds_image: whether its jobs build the image that other jobs wait for; those name it as the reason.
        evictable: whether the memory of its jobs may be moved off their cards to make room.
        preemptible: whether its jobs may be preempted where the request does not say.
        exec_server: whether people can open terminals, ports and files of its jobs from outside while they run.
        root_inside: whether people can be root inside of its jobs.
        device_kinds: what kinds of devices its programs can compute on.
        can: the buttons of its jobs, unless `capabilities` says more.
        about_restore: what *Restore* does, where that is not to go on from the newest checkpoint.
        phases: values of `JobPhase` that its programs report, in their order; pages show them while a job runs.
        related: one-to-one relations of `Job` that `url` reads; lists load them together with the jobs.
    """

    name: str
    label: Any
    plural: Any = ""
    hint: Any = ""
    icon: str = "tasks"
    order: int = 100
    section: str = "jobs"
    list_page: str = ""
    step: bool = True
    step_label: Any = ""
    start_page: str = ""
    own_tabs: bool = False
    start_word: Any = ""
    view_action: Action = Action.JOBS_VIEW
    submit_action: Action = Action.JOBS_SUBMIT
    offered: bool = True
    counts_as: CountClass = JOB
    idle_guard: bool = True
    approvable: bool = False
    answers_requests: bool = False
    builds_image: bool = False
    evictable: bool = True
    preemptible: bool = False
    exec_server: bool = False
    root_inside: bool = False
    device_kinds: tuple[str, ...] = tuple(DEVICE_KINDS)
    can: Capabilities = Capabilities()
    about_restore: Any = ""
    phases: tuple[str, ...] = ()
    related: ClassVar[tuple[str, ...]] = ()

    def prepare(self, job: Job, attempt: Attempt, run: RunDir) -> Launch:
        """Fill `run.code` and `run.inputs`, write parameters, return what to start.

        At most 2 s; after a minute the attempt ends as failed (workers.execution.launch).
        """
        raise NotImplementedError(f"The job kind {self.name!r} does not say what to start.")

    def sealed(self, job: Job) -> Mapping[str, str]:
        """Sealed texts of its rows that `prepare` needs in the open, by name (`execution.handing_over.opened`)."""
        return {}

    def further(self, job: Job, launch: Launch) -> Launch:
        """Launch of the other ranks of a gang: `launch`, with what is on each node's own disk."""
        return launch

    def capabilities(self, job: Job) -> Capabilities:
        """The buttons of this job."""
        return self.can

    def idle(self, jobs: Collection[int]) -> Collection[int]:
        """Running jobs of this kind, by number, whose devices waiting jobs may have; their owners know that."""
        return ()

    def expected_runtimes(self, jobs: QuerySet[Job]) -> Mapping[int, float]:
        """Return the run times in seconds, by number, of those of `jobs` that have an expected duration."""
        return {}

    def key_metrics(self, jobs: Collection[int]) -> Mapping[int, str]:
        """Return the key metric in words, by number, of those of `jobs` that have one: "AP50 0.912"."""
        return {}

    def ended(self, job: Job, attempt: Attempt) -> None:
        """Keep what the run left behind (publish a model, close a record); nothing by default."""

    def reported(self, job: Job) -> None:
        """Points were added to the curves of a job that runs; called on its machine, after each few seconds of them."""

    def is_quiet(self, job: Job) -> bool:
        """Whether its end causes no notification: that of a larger unit it belongs to does."""
        return False

    def check_restore(self, job: Job) -> None:
        """Refuse with a DomainError what the owner may no longer use: it was submitted long ago."""

    def facts(self, job: Job) -> list[Fact]:
        """What the job is made of, for a kind without a page of its own; nothing secret."""
        return []

    def again(self, job: Job, user: User) -> list[Way]:
        """Further ways to run the job again, in addition to continuing and restoring it, that are open to this user."""
        return []

    def url(self, job: Job) -> str:
        """Path of the page that shows this job best: every job has the queue's own page."""
        return reverse("workers:job", args=[job.pk])

    def plural_label(self) -> Any:
        """What all of them together are called."""
        return self.plural or self.label

    def list_path(self) -> str:
        """Path of its own list, "" without one."""
        return reverse(self.list_page) if self.list_page else ""

    def startable(self, user: User) -> bool:
        """Whether the inputs of one of its jobs are there: data, a model. The guide leads to its page then."""
        return True

    def has_jobs_of(self, user: User, *, without: Collection[int] = ()) -> bool:
        """Whether the user has submitted one, apart from jobs of these ids; that completes its step of the guide."""
        return Job.objects.filter(owner=user, kind=self.name).exclude(pk__in=without).exists()

    def start_path(self) -> str:
        """Path of the page that starts one, "" without one."""
        return reverse(self.start_page) if self.start_page else ""

    def find(self, user: User, query: str, limit: int) -> Iterator[Hit]:
        """Hits of the global search for this kind: its jobs by name."""
        jobs = Job.objects.visible_to(user).filter(kind=self.name).select_related(*self.related)
        for job in filter_by_text(jobs, query, "name").order_by("-pk")[:limit]:
            if url := url_of(job):
                yield Hit(job.name, url)


KINDS: Registry[JobKind] = Registry("job kind", order=lambda kind: (kind.order, kind.name))

register = KINDS.register  # called once per kind from the owning app's AppConfig.ready()
get = KINDS.get  # KeyError for a name nobody registered
names = KINDS.names  # in the order of the side bar


def classes() -> dict[str, str]:
    """What jobs count as, by kind; those of a kind that is not installed count as `JOB`."""
    return {kind.name: kind.counts_as.name for kind in KINDS}


def class_of(name: str) -> str:
    """What jobs of this kind count as."""
    return classes().get(name, JOB.name)


def meant_by(names: Collection[str]) -> frozenset[str]:
    """The kinds that a resource group is reserved for: those named, and all of a named class."""
    return frozenset(names) | {kind.name for kind in KINDS if kind.counts_as.name in names}


def has_submittable(names: Collection[str]) -> bool:
    """Whether users can submit jobs of any kind that a resource group is reserved for."""
    return any(KINDS.get(name).offered for name in meant_by(names) if name in KINDS)


def related() -> tuple[str, ...]:
    """Relations of `Job` that lists load together with jobs of all kinds."""
    return tuple(name for kind in KINDS for name in kind.related)


def reported(job: Job) -> None:
    """Tell the kind of a job that its curves grew."""
    if kind := KINDS.find(job.kind):
        kind.reported(job)


def is_quiet(job: Job) -> bool:
    """Whether the end of this job causes no notification."""
    kind = KINDS.find(job.kind)
    return kind is not None and kind.is_quiet(job)


def idle_guarded(name: str) -> bool:
    """Whether jobs of this kind are warned and ended when their cards do nothing."""
    return name in KINDS and KINDS.get(name).idle_guard


def idle(running: Mapping[str, Collection[int]]) -> frozenset[int]:
    """Running jobs, given by kind, that release their devices to waiting jobs."""
    pairs = [(KINDS.get(name), jobs) for name, jobs in running.items() if name in KINDS]
    return frozenset(job for kind, jobs in pairs for job in kind.idle(jobs))


def expected_runtimes(jobs: QuerySet[Job]) -> dict[int, float]:
    """Return the run times in seconds, by number, that the kinds of `jobs` expect; jobs without one are left out."""
    runtimes: dict[int, float] = {}
    for kind in KINDS:
        runtimes |= kind.expected_runtimes(jobs.filter(kind=kind.name))
    return runtimes


def answering_requests() -> frozenset[str]:
    """Return the names of the kinds whose jobs answer requests."""
    return frozenset(kind.name for kind in KINDS if kind.answers_requests)


def builds_image(name: str) -> bool:
    """Return whether jobs of this kind build images that other jobs wait for."""
    return name in KINDS and KINDS.get(name).builds_image


def may_be_evicted(name: str) -> bool:
    """Whether the memory of jobs of this kind may be moved off their cards."""
    return name in KINDS and KINDS.get(name).evictable


def has_exec_server(name: str) -> bool:
    """Whether terminals, ports and files of running jobs of this kind can be opened from outside."""
    return name in KINDS and KINDS.get(name).exec_server


def label_of(name: str) -> str:
    """The word people see for a kind; its name where it is not installed."""
    kind = KINDS.find(name)
    return str(kind.label) if kind else name


def icon_of(name: str) -> str:
    """The icon of a kind; that of any job where it is not installed."""
    return (KINDS.find(name) or JobKind).icon


def url_of(job: Job) -> str:
    """The best page for this job; "" for a kind that has none, or after its own record was deleted."""
    try:
        return get(job.kind).url(job)
    except (KeyError, ObjectDoesNotExist):
        return ""


def sealing() -> list[str]:
    """Names of the kinds with secrets in their rows."""
    return [kind.name for kind in KINDS if getattr(kind.sealed, "__func__", None) is not JobKind.sealed]


def sealed_of(job: Job) -> dict[str, str]:
    """What is sealed in its rows and needed at its start; nothing for a kind that is not installed."""
    kind = KINDS.find(job.kind)
    return {name: text for name, text in kind.sealed(job).items() if text} if kind else {}


def facts_of(job: Job) -> list[Fact]:
    """What the job is made of, as its kind says; nothing for a kind that is not installed."""
    kind = KINDS.find(job.kind)
    return kind.facts(job) if kind else []


def again_of(job: Job, user: User) -> list[Way]:
    """What the job's kind adds to the ways to run it again; nothing for a kind that is not installed."""
    kind = KINDS.find(job.kind)
    return kind.again(job, user) if kind else []


def about_restore(job: Job) -> Any:
    """What *Restore* does, as the job's kind says; "" where it goes on from the newest checkpoint."""
    kind = KINDS.find(job.kind)
    return kind.about_restore if kind else ""


def capabilities_of(job: Job) -> Capabilities:
    """What the job's kind says it can do; nothing but pause and stop for a kind that is not installed."""
    try:
        return get(job.kind).capabilities(job)
    except KeyError:
        return Capabilities(finish=False)
