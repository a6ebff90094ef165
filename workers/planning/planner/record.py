"""Decision record: snapshot, moment, policy and plan as JSON, to be read and replayed. Pure.

Every number that the planner saw is in it and nothing else, so the same file gives the same plan wherever it is
replayed. Names of nodes, clusters and groups are in it; people and jobs are numbers.
"""

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any

from workers.planning.planner.plan import Plan, plan
from workers.planning.planner.policy import DEFAULT, Policy
from workers.planning.planner.snapshot import Snapshot

FORMAT = "aip-decision/2"


class WrongRecord(ValueError):
    """This is no recorded decision, or one of another version; the message names the part."""


@dataclasses.dataclass(frozen=True)
class Record:
    """A recorded pass: `decided` is the plan for `snapshot` at `now` (unix seconds)."""

    snapshot: Snapshot
    now: float
    decided: Plan
    policy: Policy = DEFAULT

    def replay(self) -> Plan:
        """Decide again."""
        return plan(self.snapshot, self.now, self.policy)


def decide(snapshot: Snapshot, now: float, policy: Policy = DEFAULT) -> Record:
    """Make a plan and keep it together with what it was made from."""
    return Record(snapshot, now, plan(snapshot, now, policy), policy)


def dump(record: Record) -> dict[str, Any]:
    """Plain data for `json.dumps`."""
    return {"format": FORMAT, **_plain(record)}


def load(data: Any) -> Record:
    """The record that `dump` made.

    Raises:
        WrongRecord: for anything else.
    """
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise WrongRecord(f"a decision of the format {FORMAT} is a JSON object with that format")
    record = _typed({key: value for key, value in data.items() if key != "format"}, Record, "decision")
    assert isinstance(record, Record)
    return record


def lines(record: Record) -> typing.Iterator[str]:
    """A decision as text for a terminal: what starts where, what is preempted, why the rest waits."""
    names = {node.id: node.name for node in record.snapshot.nodes}
    decided = record.replay()
    same = "the same plan" if decided == record.decided else "ANOTHER plan than the recorded one"
    snapshot = record.snapshot
    yield f"{len(snapshot.running)} running, {len(snapshot.waiting)} waiting on {len(snapshot.devices)} devices: {same}"
    for assignment in decided.assignments:
        where = ", ".join(f"{names.get(node, node)}: {len(devices)}" for node, devices in assignment.places)
        yield f"start {assignment.job} on {where}"
    for preemption in decided.preemptions:
        verb = "evict" if preemption.evict else "preempt"
        yield f"{verb} {preemption.job} for {preemption.for_job} ({preemption.why})"
    for job in decided.returns:
        yield f"bring back {job}"
    for job, wait in decided.waits.items():
        facts = " ".join(f"{key}={value}" for key, value in wait.args.items())
        start = "-" if wait.eta is None else f"{max(0.0, wait.eta - record.now) / 3600:.1f} h"
        yield f"wait {job} #{wait.position} {wait.code} {facts} starts in {start}".replace("  ", " ")


def _plain(value: Any) -> Any:
    """Dataclasses as objects without what is at its default, sets sorted, mappings as pairs."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {}
        for part in dataclasses.fields(value):
            here = getattr(value, part.name)
            if part.default is dataclasses.MISSING or here != part.default:
                fields[part.name] = _plain(here)
        return fields
    if isinstance(value, Mapping):
        return [[key, _plain(part)] for key, part in value.items()]
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value


def _typed(value: Any, wanted: Any, where: str) -> Any:
    """`value` as the type `wanted`, checked all the way down."""
    origin, parts = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in (types.UnionType, typing.Union):
        if value is None and type(None) in parts:
            return None
        for part in parts:
            try:
                return _typed(value, part, where)
            except WrongRecord:
                continue
        raise WrongRecord(f"{where} cannot be read")
    if origin is typing.Literal:
        return _checked(value, value in parts, where)
    if dataclasses.is_dataclass(wanted):
        return _fields(value, wanted, where)
    if origin is None:
        return _scalar(value, wanted, where)
    if not isinstance(value, list):
        raise WrongRecord(f"{where} is a list")
    if origin is tuple:
        if parts[-1] is Ellipsis:
            return tuple(_typed(part, parts[0], where) for part in value)
        _checked(value, len(value) == len(parts), where)
        return tuple(_typed(part, kind, where) for part, kind in zip(value, parts, strict=True))
    if origin is frozenset:
        return frozenset(_typed(part, parts[0], where) for part in value)
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in value):
        raise WrongRecord(f"{where} is a list of pairs")
    return {_typed(key, parts[0], where): _typed(part, parts[1], where) for key, part in value}


def _fields(value: Any, wanted: Any, where: str) -> Any:
    """An object as the dataclass or named tuple `wanted`."""
    kinds = typing.get_type_hints(wanted)
    if not isinstance(value, dict) or not set(value) <= set(kinds):
        raise WrongRecord(f"{where} is an object with some of: {', '.join(kinds)}")
    try:
        return wanted(**{key: _typed(part, kinds[key], f"{where}.{key}") for key, part in value.items()})
    except TypeError as exc:
        raise WrongRecord(f"{where} lacks a part") from exc


def _scalar(value: Any, wanted: Any, where: str) -> Any:
    if isinstance(wanted, type) and issubclass(wanted, tuple):  # a named tuple
        kinds = list(typing.get_type_hints(wanted).values())
        if not isinstance(value, list) or len(value) != len(kinds):
            raise WrongRecord(f"{where} is a list of {len(kinds)}")
        return wanted(*(_typed(part, kind, where) for part, kind in zip(value, kinds, strict=True)))
    if wanted is float and type(value) is int:
        return float(value)
    return _checked(value, type(value) is wanted, where)


def _checked(value: Any, right: bool, where: str) -> Any:
    if not right:
        raise WrongRecord(f"{where} cannot be {value!r}")
    return value
