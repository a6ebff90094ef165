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
    "person=user, comes by=direct|origin, in charge=administers, since=added_at|ago",
    origin=lambda direct: "themselves" if direct else "group",
)
CLUSTER = option("cluster", find=lookup.cluster, help="name or id")
MEMBER_OPTIONS = (
    option("cluster", help="name or id"),
    repeated("--user", default=[], metavar="NAME", help="may be repeated"),
    repeated("--group", default=[], metavar="GROUP", help="name or id; may be repeated"),
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
            f"Name members with --user NAME or --group GROUP, which may be repeated: {command} --user alice.", USAGE
        )
    return members


def _print_members(args: argparse.Namespace, members: Any) -> None:
    output.table(members["people"], MEMBER_COLUMNS, empty="Nobody belongs to it.")
    if members["groups"]:
        output.say(f"Groups: {output.clean(', '.join(members['groups']))}.")


def _add_members(args: argparse.Namespace) -> None:
    route, members = _members_route(args), None
    for member in _named_members(args):
        members = args.client.post(route, member)
    done(args, members, f"Let in: {output.clean(', '.join([*args.user, *args.group]))}.")


def _remove_members(args: argparse.Namespace) -> None:
    route = _members_route(args)
    for member in _named_members(args):
        args.client.call("DELETE", route, query=member)
    members = args.client.get(route)
    users = {row["user"] for row in members["people"]}
    if staying := [name for name in args.user if name in users]:
        output.say(f"{output.clean(', '.join(staying))}: in through a group, and stays until it is taken out.")
    removed = [name for name in [*args.user, *args.group] if name not in staying]
    done(args, members, f"Taken out: {output.clean(', '.join(removed)) or 'nobody'}.")


def _describe_charge(args: argparse.Namespace, row: Any) -> str:
    state = "no longer in charge" if args.end else "administrator"
    return f"{output.clean(args.user)} is {state} of {output.clean(args.cluster)}."


MEMBER_VERBS = (
    Verb("members", "List who belongs to a cluster.", (CLUSTER,),
         get="clusters/{cluster}/members/", show=_print_members),
    Verb("add-member", "Let people or groups in; a group brings everybody who is or will be in it.", MEMBER_OPTIONS,
         run=_add_members, example="aip clusters add-member lab --user alice --group vision"),
    Verb("remove-member", "Take people or groups out; refused while they have jobs there.", MEMBER_OPTIONS,
         run=_remove_members, example="aip clusters remove-member lab --user alice"),
    Verb("charge", "Put a person in charge of a cluster's people, priorities and requests.", (
        CLUSTER,
        option("user", help="name"),
        flag("--end", field="administers", convert=operator.not_, help="no longer in charge; stays a member"),
    ), post="clusters/{cluster}/members/", done=_describe_charge),
    Verb("priority", "Give a job that waits in the cluster another priority.", (
        CLUSTER,
        option("job", help="id of the job"),
        option("priority", convert=resources.priority, help="0 to 99, a higher one starts first; or: urgent"),
    ), post="clusters/{cluster}/priority/", done="Job {args.job} has priority {args.priority} now."),
)  # fmt: skip


GIB = 1024  # MiB


def _quotas(devices: list[dict[str, Any]]) -> str:
    parts = []
    for device in devices or ():
        quota = "all" if device["guaranteed"] is None else str(device["guaranteed"])
        user = "" if device.get("per_user") is None else f" (at most {device['per_user']} a person)"
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
    "Id=id, Name=name, Cards=devices|quotas, Maximum run time=max_runtime_s|hours, Longest pause=max_pause_s|hours, "
    "Default disk limit=default_disk_bytes|size, Maximum disk limit=max_disk_bytes|size, "
    "Running jobs per person=jobs_per_user, Environments per person=environments_per_user, "
    "Environments need an approval=approves_environments|yes",
    quotas=_quotas, hours=_hours, size=_size, yes=lambda value: "yes" if value else "no",
)  # fmt: skip
KINDS = columns("kind, name=label, models=models|joined, present, guaranteed, left=free")
BOUNDS = columns(
    "kind, least cores=cpus_min, most cores=cpus_max, least memory=memory_min_mib|gib, most memory=memory_max_mib|gib",
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
        repeated("--cards", metavar="KIND=N", **several, help="cards of its own, e.g. gpu=4; gpu=none: no limit"),
        repeated("--per-user", metavar="KIND=N", **several, help="cards one person may have at once"),
        repeated("--borrow", metavar="KIND", **several, help="use idle cards beyond its own"),
        repeated("--no-borrow", metavar="KIND", **several, help="keep to its own cards"),
        _limit("--jobs", "jobs_per_user", "running jobs a person may have, or none for no limit"),
        _limit("--environments", "environments_per_user", "running environments a person may have, or none"),
        _limit("--hours", "max_runtime_s", "longest run time in hours, or none", convert=_seconds),
        _limit("--pause-hours", "max_pause_s", "how many hours a paused job keeps its cards, or none",
               convert=_seconds),
        option("--disk", field="default_disk_bytes", metavar="20GiB", default=argparse.SUPPRESS, convert=_disk_limit,
               help="disk limit of jobs that request none, or none"),
        option("--max-disk", field="max_disk_bytes", metavar="20GiB", default=argparse.SUPPRESS, convert=_disk_limit,
               help="most disk space that a job can request on each node, or none"),
        option("--approve-environments", field="approves_environments", action=argparse.BooleanOptionalAction,
               default=argparse.SUPPRESS,
               help="whether environments wait until somebody in charge lets them start"),
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
                raise ClientError(f"{name} {item}: write it as KIND=N, for instance gpu=4.", USAGE)
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
    return f"Saved: {output.clean(row['name'])} has {quotas}, longest {hours}."


def _print_use(args: argparse.Namespace, use: Any) -> None:
    output.table(use["devices"], DEVICES, empty="The machines have no cards.")
    output.table(use["people"], USERS, empty="Nobody works there.")


BOUND_OPTIONS = (
    option("--cpus-min", type=float, metavar="CORES", help="cores a job gets at least"),
    option("--cpus-max", type=float, metavar="CORES", help="cores it gets at most"),
    option("--memory-min", type=float, metavar="GIB", field="memory_min_mib", convert=lambda gib: round(gib * GIB),
           help="memory it gets at least"),
    option("--memory-max", type=float, metavar="GIB", field="memory_max_mib", convert=lambda gib: round(gib * GIB),
           help="memory it gets at most"),
)  # fmt: skip


def _bounds(args: argparse.Namespace) -> None:
    route = f"clusters/{lookup.cluster(args.client, args.cluster)}/bounds/"
    rows = args.client.get(route)
    changes = fields(args, BOUND_OPTIONS)
    if bool(changes) != bool(args.kind):
        raise ClientError("Give both: --kind, and at least one of --cpus-min, --cpus-max, --memory-min, …", USAGE)
    if args.kind:
        bounds = next((row for row in rows if row["kind"] == args.kind), None)
        if bounds is None:
            kinds = ", ".join(row["kind"] for row in rows)
            raise ClientError(f"The machines have no {args.kind}; there are {kinds}.", USAGE)
        rows = args.client.call("PUT", route, body=bounds | changes)
    show_list(args, rows, BOUNDS)


NOUNS = {
    "clusters": (
        Verb("list", "List the clusters you belong to.", (LIMIT,),
             get="clusters/", table=COLUMNS, empty="You belong to no cluster. Ask an administrator."),
        Verb("show", "Show one cluster.", (CLUSTER,), get="clusters/{cluster}/", record=FIELDS),
        Verb("status", "Show what of its cards is used, borrowed, lent and free, and by whom.", (CLUSTER,),
             get="clusters/{cluster}/use/", show=_print_use),
        Verb("use", "Make it the one your new jobs take.", (CLUSTER,),
             post="clusters/{cluster}/current/", done="New jobs go to {row[name]}."),
        Verb("kinds", "List the kinds of cards the machines have, and how many nobody was promised.",
             get="clusters/kinds/", table=KINDS, empty="The machines have no cards."),
        Verb("create", "Make a cluster.", (option("name"), *_limits()), post="clusters/", send=_new_quotas, once=True,
             done="Cluster {row[name]} is made, number {row[id]}."),
        Verb("change", "Change name or limits; what is left out stays.", (
            CLUSTER, option("--name", default=argparse.SUPPRESS, help="its new name"), *_limits(),
        ), patch="clusters/{cluster}/", send=_changed_quotas, done=_describe_change,
             unchanged="Say what to change: --name, --cards, --per-user, --borrow, --jobs, --hours …"),
        Verb("delete", "Delete a cluster; refused while somebody works there.", (CLUSTER, YES),
             delete="clusters/{cluster}/", confirm="Delete cluster {args.cluster}?",
             done="Cluster {args.cluster} is deleted."),
        Verb("bounds", "Show what one job may use on each machine, or change it for one kind.", (
            CLUSTER, option("--kind", help="change these: gpu, npu or cpu"), *BOUND_OPTIONS,
        ), run=_bounds),
        *MEMBER_VERBS,
    ),
}  # fmt: skip
