"""What the simulator is given: machines, limits, costs, and the jobs that arrive. Pure.

A workload file is JSON lines. The first line may be a `Header`, every other line is one job with the fields of
`Work`, in any order of arrival. Empty lines are passed over. Times are seconds from Monday 00:00, see
aiplatform/docs/subsystems/simulate.md.
"""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from workers.core.count_classes import CLASSES, JOB
from workers.planning.planner.snapshot import FULL_CARD, ResourceGroup, Window

Scalar = int | float | str | bool | dict
MAX_DEVICES = 4096
"""More cards than this are a slip of the pen."""


class WrongWorkload(ValueError):
    """A line of a workload cannot be simulated; the message names it."""


@dataclass(frozen=True, slots=True)
class Work:
    """One job as it will really be: `runtime_s` is known to the simulator, `max_runtime_s` to the planner.

    `devices` cards on each of `nodes` machines, `shares` eighths of each card.
    """

    arrival_s: float
    user: str
    runtime_s: float
    max_runtime_s: float | None = None
    cluster: str = "default"
    nodes: int = 1
    devices: int = 1
    shares: int = FULL_CARD
    priority: int = 0
    preemptible: bool = False
    kind: str = "training"

    @property
    def cards(self) -> float:
        """Cards taken on all machines together; a share counts as its eighth."""
        return self.nodes * self.devices * self.shares / FULL_CARD

    @property
    def counts_as(self) -> str:
        """What limits count it as: a kind named like a class of `workers.core.count_classes` is of that class."""
        return self.kind if self.kind in CLASSES else JOB.name


@dataclass(frozen=True, slots=True)
class Limits:
    """A virtual cluster: `guaranteed` cards (None: no limit), whether it borrows idle ones, limits per person."""

    name: str = "default"
    guaranteed: int | None = None
    borrows: bool = False
    per_user: int | None = None
    user_jobs: int | None = None


@dataclass(frozen=True, slots=True)
class Setup:
    """Machines, limits, and what starting and preempting cost.

    A start takes `start_overhead_s` (after a preemption `restart_overhead_s`) before any work is done. A
    preempted job frees its cards `grace_s` later and has lost the last `lost_s` of its work.
    `use` is how busy a job of a kind keeps its part of a card, 1 unless said.
    """

    nodes: int = 4
    cards: int = 8
    clusters: tuple[Limits, ...] = (Limits(),)
    groups: tuple[ResourceGroup, ...] = ()
    start_overhead_s: float = 0.0
    restart_overhead_s: float = 30.0
    lost_s: float = 300.0
    grace_s: float = 60.0
    use: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Header:
    """The first line of a file: a setup, and from when and for how long the figures count."""

    setup: dict
    days: float | None = None
    counted_from_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Workload:
    """Jobs in order of arrival on a setup. Figures are taken from `counted_from_s` to `days`."""

    name: str
    works: tuple[Work, ...]
    setup: Setup = Setup()
    days: float | None = None
    counted_from_s: float = 0.0

    @property
    def until_s(self) -> float:
        """End of the time the figures count: the days requested, else the last arrival."""
        return self.days * 86_400.0 if self.days else max((w.arrival_s for w in self.works), default=0.0)


def read(
    name: str, lines: Iterable[str], days: float | None = None, overrides: Mapping[str, object] | None = None
) -> Workload:
    """Read a workload file.

    Args:
        days: what the figures count; None takes it from the header, or counts to the last arrival.
        said: fields of the setup that go before those of the header.

    Raises:
        WrongWorkload: with a sentence that names the line, the field and what is wrong with it.
    """
    header, has_rows = Header({}), False
    setup = setup_of(overrides or {})
    works: list[Work] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = _object(line)
            if "setup" in row:
                if has_rows:
                    raise WrongWorkload("the setup belongs on the first line")
                header = _build(Header, row)
                setup = setup_of({**header.setup, **(overrides or {})})
            else:
                work = _build(Work, row)
                _check(work, setup)
                works.append(work)
        except WrongWorkload as exc:
            raise WrongWorkload(f"Line {number}: {exc}.") from exc
        has_rows = True
    if not works:
        raise WrongWorkload("The file holds no jobs.")
    works.sort(key=lambda work: work.arrival_s)
    return Workload(name, tuple(works), setup, days or header.days, header.counted_from_s)


def lines(workload: Workload) -> Iterator[str]:
    """The workload as the lines of a file that `read` takes."""
    setup = dataclasses.asdict(workload.setup) | {"groups": [_written(group) for group in workload.setup.groups]}
    yield json.dumps(dataclasses.asdict(Header(setup, workload.days, workload.counted_from_s)))
    plain = Work(0.0, "", 0.0)
    for work in workload.works:
        row = dataclasses.asdict(work)
        yield json.dumps({k: v for k, v in row.items() if k in _NEEDED or v != getattr(plain, k)})


def setup_of(raw: Mapping[str, object]) -> Setup:
    """The setup of a header.

    Raises:
        WrongWorkload: for unknown fields and values that make no sense.
    """
    rows = dict(raw)
    clusters, groups, use = rows.pop("clusters", None), rows.pop("groups", []), rows.pop("use", {})
    setup = _build(Setup, rows)
    if not isinstance(groups, list):
        raise WrongWorkload("groups is a list of JSON objects")
    setup = dataclasses.replace(setup, groups=tuple(_group(n, row, setup) for n, row in enumerate(groups, start=1)))
    if clusters is not None:
        if not isinstance(clusters, list) or not clusters or not all(isinstance(c, dict) for c in clusters):
            raise WrongWorkload("clusters is a list of at least one JSON object")
        setup = dataclasses.replace(setup, clusters=tuple(_build(Limits, row) for row in clusters))
    if not isinstance(use, dict) or not all(isinstance(v, int | float) and 0 <= v <= 1 for v in use.values()):
        raise WrongWorkload("use says for each kind of job how busy it keeps a card, from 0 to 1")
    setup = dataclasses.replace(setup, use={str(kind): float(part) for kind, part in use.items()})
    if setup.nodes < 1 or setup.cards < 1 or setup.nodes * setup.cards > MAX_DEVICES:
        raise WrongWorkload(f"nodes and cards are 1 or more, and at most {MAX_DEVICES} cards together")
    for name in ("start_overhead_s", "restart_overhead_s", "lost_s", "grace_s"):
        if getattr(setup, name) < 0:
            raise WrongWorkload(f"{name} is not below 0")
    return setup


_NEEDED = ("arrival_s", "user", "runtime_s")
_LABELS = {int: "an integer", float: "a number", str: "a text", bool: "true or false", dict: "a JSON object"}

_Row = typing.TypeVar("_Row", Work, Limits, Setup, Header)


def _object(line: str) -> dict[str, object]:
    try:
        row = json.loads(line, parse_constant=_no_constant)
    except ValueError as exc:
        raise WrongWorkload(f"this is no JSON ({exc})") from exc
    if not isinstance(row, dict):
        raise WrongWorkload('a line is one JSON object, for instance {"arrival_s": 0, "user": "ada", "runtime_s": 60}')
    return row


def _build(kind: type[_Row], row: Mapping[str, object]) -> _Row:
    """A dataclass from a JSON object whose names and types are checked."""
    hints = typing.get_type_hints(kind)
    unknown = sorted(set(row) - set(hints))
    if unknown:
        raise WrongWorkload(f"there is no field {unknown[0]}; there are {', '.join(hints)}")
    for name in _NEEDED if kind is Work else ():
        if name not in row:
            raise WrongWorkload(f"{name} is missing")
    values: dict[str, Scalar | None] = {}
    for name, value in row.items():
        values[name] = _typed(name, value, hints[name])
    return kind(**values)  # type: ignore[arg-type]  # checked against the fields just above


def _typed(name: str, value: object, hint: object) -> Scalar | None:
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if value is None and type(None) in options:
        return None
    wanted = next(option for option in options if option is not type(None))
    if wanted is float and type(value) in (int, float):
        number = float(typing.cast(float, value))
        if math.isfinite(number):
            return number
    elif type(value) is wanted:
        return typing.cast(Scalar, value)
    raise WrongWorkload(f"{name} is {_LABELS[typing.cast(type, wanted)]}, not {json.dumps(value)}")


def _group(number: int, raw: object, setup: Setup) -> ResourceGroup:
    """A resource group; its nodes are counted from 1, its windows say "09:00" and weekdays from 0, Monday."""
    try:
        row = dict(raw)  # type: ignore[call-overload]  # what JSON gave; refused below unless an object
        nodes = frozenset(int(node) - 1 for node in row.pop("nodes"))
        kinds = frozenset(str(kind) for kind in row.pop("kinds"))
        windows = tuple(
            Window(_minutes(w["begins"]), _minutes(w["ends"]), frozenset(map(int, w.get("weekdays", range(7)))))
            for w in row.pop("windows", [])
        )
        name = str(row.pop("name", number))
    except KeyError as exc:
        raise WrongWorkload(f"group {number} lacks {exc.args[0]}") from exc
    except (TypeError, ValueError, AttributeError) as exc:
        raise WrongWorkload(f"group {number} cannot be read ({exc})") from exc
    if row or not nodes <= set(range(setup.nodes)) or not all(w.weekdays <= set(range(7)) for w in windows):
        raise WrongWorkload(
            f"group {number} has name, nodes from 1 to {setup.nodes}, kinds, windows of begins, ends, weekdays 0-6"
        )
    return ResourceGroup(number, name, nodes, kinds, windows)


def _written(group: ResourceGroup) -> dict[str, object]:
    """A resource group as `_group` reads it."""
    windows = [
        {"begins": _clock(w.begins), "ends": _clock(w.ends), "weekdays": sorted(w.weekdays)} for w in group.windows
    ]
    nodes = [node + 1 for node in sorted(group.nodes)]
    return {"name": group.name, "nodes": nodes, "kinds": sorted(group.kinds), "windows": windows}


def _minutes(text: str) -> int:
    """Minutes since midnight of "09:30"; "24:00" is the end of a day."""
    hours, _, minutes = text.partition(":")
    total = int(hours) * 60 + int(minutes)
    if not (0 <= total <= 1440 and 0 <= int(minutes) < 60):
        raise ValueError(f"{text} is no time of day")
    return total


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"


def _check(work: Work, setup: Setup) -> None:
    """Refuse what no machine of the setup could ever run."""
    if work.arrival_s < 0:
        raise WrongWorkload("arrival_s counts from the beginning and is not below 0")
    if work.runtime_s <= 0 or (work.max_runtime_s is not None and work.max_runtime_s <= 0):
        raise WrongWorkload("run times are above 0")
    if not 1 <= work.shares <= FULL_CARD:
        raise WrongWorkload(f"shares go from 1 to {FULL_CARD}, {work.shares} asked")
    if not 1 <= work.devices <= setup.cards:
        raise WrongWorkload(f"devices go from 1 to {setup.cards}, the cards of a machine; {work.devices} asked")
    if not 1 <= work.nodes <= setup.nodes:
        raise WrongWorkload(f"nodes go from 1 to {setup.nodes}; {work.nodes} asked")
    if work.cluster not in {limits.name for limits in setup.clusters}:
        raise WrongWorkload(f"there is no cluster {work.cluster} in the setup")


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no number")
