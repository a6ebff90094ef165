"""`aip clusters`: virtual clusters, their quotas, limits for jobs and members."""

from __future__ import annotations

import argparse
import operator
from collections.abc import Mapping
from typing import Any

from aiplatform.client import output
from aiplatform.client.commands import lookup, resources
from aiplatform.client.commands.resources import limited
from aiplatform.client.errors import USAGE, ClientError
from aiplatform.client.options import LIMIT, YES, fields, flag, limit, option, repeated
from aiplatform.client.output import columns
from aiplatform.client.verbs import Verb, done, show_list

MEMBER_COLUMNS = columns(
    "user, through=direct|origin, administrator=administers, since=added_at|ago",
    origin=lambda direct: "themselves" if direct else "group",
)
CLUSTER = option("cluster", find=lookup.cluster, help="name or id")
MEMBER_OPTIONS = (
    option("cluster", help="name or id"),
    repeated("--user", default=[], metavar="NAME", help="can be repeated"),
    repeated("--group", default=[], metavar="GROUP", help="name or id; can be repeated"),
)


def _members_route(args: argparse.Namespace) -> str:
    return f"clusters/{lookup.cluster(args.client, args.cluster)}/members/"


def _named_members(args: argparse.Namespace) -> list[dict[str, Any]]:
    """A field for each user and group that the options name.

    Raises:
        ClientError: they name none.
    """
    members = [*({"user": name} for name in args.user), *({"group": name} for name in args.group)]
    if not members:
        command = f"aip clusters {args.verb} {args.cluster}"
        raise ClientError(
            f"Specify members with --user NAME or --group GROUP, which can be repeated: {command} --user alice.", USAGE
        )
    return members


def _print_members(args: argparse.Namespace, members: Any) -> None:
    output.table(members["people"], MEMBER_COLUMNS, empty="No members.")
    if members["groups"]:
        output.say(f"Groups: {output.clean(', '.join(members['groups']))}.")


def _add_members(args: argparse.Namespace) -> None:
    route, members = _members_route(args), None
    for member in _named_members(args):
        members = args.client.post(route, member)
    done(args, members, f"Added: {output.clean(', '.join([*args.user, *args.group]))}.")


def _remove_members(args: argparse.Namespace) -> None:
    route = _members_route(args)
    for member in _named_members(args):
        args.client.call("DELETE", route, query=member)
    members = args.client.get(route)
    users = {row["user"] for row in members["people"]}
    if staying := [name for name in args.user if name in users]:
        output.say(f"{output.clean(', '.join(staying))}: remains a member through a group until removed from it.")
    removed = [name for name in [*args.user, *args.group] if name not in staying]
    done(args, members, f"Taken out: {output.clean(', '.join(removed)) or 'nobody'}.")


def _describe_charge(args: argparse.Namespace, row: Any) -> str:
    state = "not an administrator any more" if args.end else "administrator"
    return f"{output.clean(args.user)} is {state} of {output.clean(args.cluster)}."


MEMBER_VERBS = (
    Verb("members", "List the members of a cluster.", (CLUSTER,),
         get="clusters/{cluster}/members/", show=_print_members),
    Verb("add-member", "Add users or groups; a group adds all its current and future members.", MEMBER_OPTIONS,
         run=_add_members, example="aip clusters add-member lab --user alice --group vision"),
    Verb("remove-member", "Remove users or groups; rejected while they have jobs there.", MEMBER_OPTIONS,
         run=_remove_members, example="aip clusters remove-member lab --user alice"),
    Verb("charge", "Make a user an administrator of the cluster.", (
        CLUSTER,
        option("user", help="name"),
        flag("--end", field="administers", convert=operator.not_, help="remove as administrator; remains a member"),
    ), post="clusters/{cluster}/members/", done=_describe_charge),
    Verb("priority", "Change the priority of a queued job of the cluster.", (
        CLUSTER,
        option("job", help="id of the job"),
        option("priority", convert=resources.priority, help="0 to 99, a higher priority starts first; or: urgent"),
    ), post="clusters/{cluster}/priority/", done="Job {args.job} has priority {args.priority} now."),
)  # fmt: skip


GIB = 1024  # MiB


def _quotas(devices: list[dict[str, Any]]) -> str:
    parts = []
    for device in devices or ():
        quota = "all" if device["guaranteed"] is None else str(device["guaranteed"])
        user = "" if device.get("per_user") is None else f" (at most {device['per_user']} per user)"
        parts.append(f"{quota} {device['kind']}{' + idle ones' if device['borrows'] else ''}{user}")
    return ", ".join(parts) or "all"


def _hours(seconds: Any) -> str:
    return limited(seconds, "{:g} h", 3600)


def _size(size: Any) -> str:
    return limited(size, "{:g} GiB", 2**30)


def _gib(mib: Any) -> str:
    return f"{mib / GIB:g} GiB"


COLUMNS = columns("id, name, cards=devices|quotas, longest=max_runtime_s|hours", quotas=_quotas, hours=_hours)
FIELDS = columns(
    "Id=id, Name=name, GPUs=devices|quotas, Maximum run time=max_runtime_s|hours, Maximum "
    "pause=max_pause_s|hours, Default disk limit=default_disk_bytes|size, Maximum disk "
    "limit=max_disk_bytes|size, Running jobs per user=jobs_per_user, Workspaces per user=environments_per_user, "
    "Workspaces require approval=approves_environments|yes",
    quotas=_quotas, hours=_hours, size=_size, yes=lambda value: "yes" if value else "no",
)  # fmt: skip
KINDS = columns("kind, name=label, models=models|joined, present, guaranteed, left=free")
BOUNDS = columns(
    "kind, min. cores=cpus_min, max. cores=cpus_max, min. memory=memory_min_mib|gib, max. memory=memory_max_mib|gib",
    gib=_gib,
)
DEVICES = columns(
    "kind, own=guaranteed|quota, used, borrowed, lent, free",
    quota=lambda number: "all" if number is None else number,
)
USERS = columns("person=user, cards, running, waiting")


def _limits() -> list[Any]:
    """The options of create and change; options left out change nothing."""
    several: dict[str, Any] = {"default": [], "field": ""}
    return [
        repeated("--cards", metavar="KIND=N", **several, help="guaranteed GPUs, e.g. gpu=4; gpu=none: no limit"),
        repeated("--per-user", metavar="KIND=N", **several, help="maximum GPUs per user"),
        repeated("--borrow", metavar="KIND", **several, help="borrow idle GPUs"),
        repeated("--no-borrow", metavar="KIND", **several, help="use only own GPUs"),
        _limit("--jobs", "jobs_per_user", "maximum running jobs per user, or none"),
        _limit("--environments", "environments_per_user", "maximum running workspaces per user, or none"),
        _limit("--hours", "max_runtime_s", "maximum run time in hours, or none", convert=_seconds),
        _limit("--pause-hours", "max_pause_s", "hours a paused job keeps its GPUs, or none",
               convert=_seconds),
        option("--disk", field="default_disk_bytes", metavar="20GiB", default=argparse.SUPPRESS, convert=_disk_limit,
               help="disk limit of jobs without a request, or none"),
        option("--max-disk", field="max_disk_bytes", metavar="20GiB", default=argparse.SUPPRESS, convert=_disk_limit,
               help="maximum disk space of a job per node, or none"),
        option("--approve-environments", field="approves_environments", action=argparse.BooleanOptionalAction,
               default=argparse.SUPPRESS,
               help="whether workspaces require approval by a cluster administrator"),
    ]  # fmt: skip


def _limit(name: str, field: str, help: str, **settings: Any) -> Any:
    return option(name, field=field, type=limit, default=argparse.SUPPRESS, metavar="N", help=help, **settings)


def _seconds(hours: float | None) -> float | None:
    return None if hours is None else hours * 3600


def _disk_limit(text: str) -> int | None:
    return None if text == "none" else resources.size(text, "--disk or --max-disk")


def _new_quotas(args: argparse.Namespace) -> dict[str, Any]:
    return _devices(args, {})


def _changed_quotas(args: argparse.Namespace) -> dict[str, Any]:
    """Quotas of the kinds that the options name, based on those of the cluster."""
    if not (args.cards or args.per_user or args.borrow or args.no_borrow):
        return {}
    return _devices(args, {device["kind"]: device for device in args.client.get(args.route)["devices"]})


def _devices(args: argparse.Namespace, quotas: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    devices: dict[str, dict[str, Any]] = {}

    def device(kind: str) -> dict[str, Any]:
        empty = {"kind": kind, "guaranteed": None, "borrows": False, "per_user": None}
        return devices.setdefault(kind, {**quotas.get(kind, empty), "kind": kind})

    for name, field, items in (("--cards", "guaranteed", args.cards), ("--per-user", "per_user", args.per_user)):
        for item in items:
            kind, equals, number = item.partition("=")
            if not equals or not kind:
                raise ClientError(f"{name} {item}: write it as KIND=N, for example gpu=4.", USAGE)
            try:
                device(kind)[field] = limit(number)
            except argparse.ArgumentTypeError as exc:
                raise ClientError(f"{name} {item}: {exc}.", USAGE) from exc
    for borrows, kinds in ((True, args.borrow), (False, args.no_borrow)):
        for kind in kinds:
            device(kind)["borrows"] = borrows
    return {"devices": list(devices.values())} if devices else {}


def _describe_change(args: argparse.Namespace, row: Any) -> str:
    quotas, hours = _quotas(row["devices"]), _hours(row["max_runtime_s"])
    return f"Saved: {output.clean(row['name'])} has {quotas}, maximum run time {hours}."


def _print_use(args: argparse.Namespace, use: Any) -> None:
    output.table(use["devices"], DEVICES, empty="The nodes have no GPUs.")
    output.table(use["people"], USERS, empty="No current users.")


BOUND_OPTIONS = (
    option("--cpus-min", type=float, metavar="CORES", help="minimum cores of a job"),
    option("--cpus-max", type=float, metavar="CORES", help="maximum cores of a job"),
    option("--memory-min", type=float, metavar="GIB", field="memory_min_mib", convert=lambda gib: round(gib * GIB),
           help="minimum memory of a job"),
    option("--memory-max", type=float, metavar="GIB", field="memory_max_mib", convert=lambda gib: round(gib * GIB),
           help="maximum memory of a job"),
)  # fmt: skip


def _bounds(args: argparse.Namespace) -> None:
    route = f"clusters/{lookup.cluster(args.client, args.cluster)}/bounds/"
    rows = args.client.get(route)
    changes = fields(args, BOUND_OPTIONS)
    if bool(changes) != bool(args.kind):
        raise ClientError("Specify both: --kind, and at least one of --cpus-min, --cpus-max, --memory-min, …", USAGE)
    if args.kind:
        bounds = next((row for row in rows if row["kind"] == args.kind), None)
        if bounds is None:
            kinds = ", ".join(row["kind"] for row in rows)
            raise ClientError(f"The nodes have no {args.kind}; available: {kinds}.", USAGE)
        rows = args.client.call("PUT", route, body=bounds | changes)
    show_list(args, rows, BOUNDS)


NOUNS = {
    "clusters": (
        Verb("list", "List your clusters.", (LIMIT,),
             get="clusters/", table=COLUMNS, empty="You are not a member of a cluster. Ask an administrator."),
        Verb("show", "Show one cluster.", (CLUSTER,), get="clusters/{cluster}/", record=FIELDS),
        Verb("status", "Show used, borrowed, lent and free GPUs, with their users.", (CLUSTER,),
             get="clusters/{cluster}/use/", show=_print_use),
        Verb("use", "Set the cluster of your new jobs.", (CLUSTER,),
             post="clusters/{cluster}/current/", done="New jobs use {row[name]}."),
        Verb("kinds", "List the kinds of GPUs of the nodes, and how many are not guaranteed.",
             get="clusters/kinds/", table=KINDS, empty="The nodes have no GPUs."),
        Verb("create", "Create a cluster.", (option("name"), *_limits()), post="clusters/", send=_new_quotas, once=True,
             done="Created cluster {row[name]} with id {row[id]}."),
        Verb("change", "Change name or limits; omitted values are kept.", (
            CLUSTER, option("--name", default=argparse.SUPPRESS, help="new name"), *_limits(),
        ), patch="clusters/{cluster}/", send=_changed_quotas, done=_describe_change,
             unchanged="Specify a change: --name, --cards, --per-user, --borrow, --jobs, --hours …"),
        Verb("delete", "Delete a cluster; rejected while it is in use.", (CLUSTER, YES),
             delete="clusters/{cluster}/", confirm="Delete cluster {args.cluster}?",
             done="Deleted cluster {args.cluster}."),
        Verb("bounds", "Show the limits of one job per node, or change them for a kind.", (
            CLUSTER, option("--kind", help="change these: gpu, npu or cpu"), *BOUND_OPTIONS,
        ), run=_bounds),
        *MEMBER_VERBS,
    ),
}  # fmt: skip
