"""`aip clusters`: virtual clusters, their quotas and their limits for jobs."""

from __future__ import annotations

import argparse
from typing import Any

from aiplatform.client import output
from aiplatform.client.commands import lookup, members, resources
from aiplatform.client.commands.verbs import Noun, Nouns, Parent, confirm, done, limit, paging, show_list, show_one
from aiplatform.client.errors import USAGE, ClientError
from aiplatform.client.output import Column

GIB = 1024  # MiB


def _cards(row: dict[str, Any]) -> str:
    parts = []
    for device in row.get("devices") or []:
        most = "all" if device["guaranteed"] is None else str(device["guaranteed"])
        person = "" if device.get("per_user") is None else f" (at most {device['per_user']} a person)"
        parts.append(f"{most} {device['kind']}{' + idle ones' if device['borrows'] else ''}{person}")
    return ", ".join(parts) or "all"


def _hours(row: dict[str, Any]) -> str:
    seconds = row.get("max_runtime_s")
    return "no limit" if seconds is None else f"{seconds / 3600:g} h"


def _pause(row: dict[str, Any]) -> str:
    seconds = row.get("max_pause_s")
    return "no limit" if seconds is None else f"{seconds / 3600:g} h"


def _size(size: int | None) -> str:
    return "no limit" if size is None else f"{size / 2**30:g} GiB"


def _gib(name: str) -> Any:
    return lambda row: f"{row[name] / GIB:g} GiB"


COLUMNS: list[Column] = [("id", "id"), ("name", "name"), ("cards", _cards), ("longest", _hours)]
FIELDS: list[Column] = [
    ("Id", "id"),
    ("Name", "name"),
    ("Cards", _cards),
    ("Maximum run time", _hours),
    ("Longest pause", _pause),
    ("Default disk limit", lambda row: _size(row.get("default_disk_bytes"))),
    ("Maximum disk limit", lambda row: _size(row.get("max_disk_bytes"))),
    ("Running jobs per person", "jobs_per_user"),
    ("Environments per person", "environments_per_user"),
    ("Environments need an approval", lambda row: "yes" if row.get("approves_environments") else "no"),
]
KINDS: list[Column] = [
    ("kind", "kind"),
    ("name", "label"),
    ("models", lambda row: ", ".join(row["models"])),
    ("present", "present"),
    ("guaranteed", "guaranteed"),
    ("left", "free"),
]
BOUNDS: list[Column] = [
    ("kind", "kind"),
    ("least cores", "cpus_min"),
    ("most cores", "cpus_max"),
    ("least memory", _gib("memory_min_mib")),
    ("most memory", _gib("memory_max_mib")),
]
DEVICES: list[Column] = [
    ("kind", "kind"),
    ("own", lambda row: "all" if row["guaranteed"] is None else row["guaranteed"]),
    ("used", "used"),
    ("borrowed", "borrowed"),
    ("lent", "lent"),
    ("free", "free"),
]
PEOPLE: list[Column] = [("person", "user"), ("cards", "cards"), ("running", "running"), ("waiting", "waiting")]


def add(nouns: Nouns, parent: Parent) -> None:
    clusters = Noun(nouns, parent, "clusters", "Virtual clusters: who may use how much of the machines.")
    paging(clusters.verb("list", cluster_list, "List the clusters you belong to."))
    for name, run, sentence in (
        ("show", show, "Show one cluster."),
        ("status", status, "Show what of its cards is used, borrowed, lent and free, and by whom."),
        ("use", use, "Make it the one your new jobs take."),
    ):
        clusters.verb(name, run, sentence).add_argument("cluster", help="name or id")
    clusters.verb("kinds", kinds, "List the kinds of cards the machines have, and how many nobody was promised.")
    verb = clusters.verb("create", create, "Make a cluster.")
    verb.add_argument("name")
    _limits(verb)
    verb = clusters.verb("change", change, "Change name or limits; what is left out stays.")
    verb.add_argument("cluster", help="name or id")
    verb.add_argument("--name", default=argparse.SUPPRESS, help="its new name")
    _limits(verb)
    verb = clusters.verb("delete", delete, "Delete a cluster; refused while somebody works there.")
    verb.add_argument("cluster", help="name or id")
    verb.add_argument("-y", "--yes", action="store_true", help="do not ask")
    verb = clusters.verb("bounds", bounds, "Show what one job may use on each machine, or change it for one kind.")
    verb.add_argument("cluster", help="name or id")
    verb.add_argument("--kind", help="change these: gpu, npu or cpu")
    for flag, what in (("--cpus-min", "cores a job gets at least"), ("--cpus-max", "cores it gets at most")):
        verb.add_argument(flag, type=float, metavar="CORES", help=what)
    for flag, what in (("--memory-min", "memory it gets at least"), ("--memory-max", "memory it gets at most")):
        verb.add_argument(flag, type=float, metavar="GIB", help=what)
    members.add(clusters)


def _limits(verb: argparse.ArgumentParser) -> None:
    """Add the options of create and change; options left out change nothing."""
    several: dict[str, Any] = {"action": "append", "default": []}
    verb.add_argument("--cards", metavar="KIND=N", **several, help="cards of its own, e.g. gpu=4; gpu=none: no limit")
    verb.add_argument("--per-user", metavar="KIND=N", **several, help="cards one person may have at once")
    verb.add_argument("--borrow", metavar="KIND", **several, help="use idle cards beyond its own")
    verb.add_argument("--no-borrow", metavar="KIND", **several, help="keep to its own cards")
    for flag, field, what in (
        ("--jobs", "jobs_per_user", "running jobs a person may have, or none for no limit"),
        ("--environments", "environments_per_user", "running environments a person may have, or none"),
        ("--hours", "max_runtime_s", "longest run time in hours, or none"),
        ("--pause-hours", "max_pause_s", "how many hours a paused job keeps its cards, or none"),
    ):
        verb.add_argument(flag, dest=field, type=limit, default=argparse.SUPPRESS, metavar="N", help=what)
    for flag, field, what in (
        ("--disk", "default_disk_bytes", "disk limit of jobs that request none, or none"),
        ("--max-disk", "max_disk_bytes", "most disk space that a job can request on each node, or none"),
    ):
        verb.add_argument(flag, dest=field, type=_disk_limit, default=argparse.SUPPRESS, metavar="20GiB", help=what)
    verb.add_argument(
        "--approve-environments",
        dest="approves_environments",
        action=argparse.BooleanOptionalAction,
        default=argparse.SUPPRESS,
        help="whether environments wait until somebody in charge lets them start",
    )


def _disk_limit(text: str) -> int | None:
    return None if text == "none" else resources.size(text, "--disk or --max-disk")


def cluster_list(args: argparse.Namespace) -> None:
    rows = args.client.pages("clusters/", limit=args.limit)
    show_list(args, rows, COLUMNS, empty="You belong to no cluster. Ask an administrator.")


def show(args: argparse.Namespace) -> None:
    show_one(args, args.client.get(f"clusters/{lookup.cluster(args.client, args.cluster)}/"), FIELDS)


def status(args: argparse.Namespace) -> None:
    use = args.client.get(f"clusters/{lookup.cluster(args.client, args.cluster)}/use/")
    if args.json:
        output.as_json(use)
        return
    output.table(use["devices"], DEVICES, empty="The machines have no cards.")
    output.table(use["people"], PEOPLE, empty="Nobody works there.")


def use(args: argparse.Namespace) -> None:
    row = args.client.post(f"clusters/{lookup.cluster(args.client, args.cluster)}/current/")
    done(args, row, f"New jobs go to {output.clean(row['name'])}.")


def kinds(args: argparse.Namespace) -> None:
    show_list(args, args.client.get("clusters/kinds/"), KINDS, empty="The machines have no cards.")


def create(args: argparse.Namespace) -> None:
    row = args.client.post("clusters/", {"name": args.name, **_fields(args, {})}, once=True)
    done(args, row, f"Cluster {output.clean(row['name'])} is made, number {row['id']}.")


def change(args: argparse.Namespace) -> None:
    number = lookup.cluster(args.client, args.cluster)
    row = args.client.get(f"clusters/{number}/")
    body = _fields(args, {device["kind"]: device for device in row["devices"]})
    if hasattr(args, "name"):
        body["name"] = args.name
    if not body:
        raise ClientError("Say what to change: --name, --cards, --per-user, --borrow, --jobs, --hours …", USAGE)
    row = args.client.call("PATCH", f"clusters/{number}/", body=body)
    done(args, row, f"Saved: {output.clean(row['name'])} has {_cards(row)}, longest {_hours(row)}.")


def delete(args: argparse.Namespace) -> None:
    number = lookup.cluster(args.client, args.cluster)
    confirm(args, f"Delete cluster {args.cluster}?")
    args.client.delete(f"clusters/{number}/")
    done(args, None, f"Cluster {output.clean(args.cluster)} is deleted.")


def bounds(args: argparse.Namespace) -> None:
    route = f"clusters/{lookup.cluster(args.client, args.cluster)}/bounds/"
    rows = args.client.get(route)
    given = {
        "cpus_min": args.cpus_min,
        "cpus_max": args.cpus_max,
        "memory_min_mib": None if args.memory_min is None else round(args.memory_min * GIB),
        "memory_max_mib": None if args.memory_max is None else round(args.memory_max * GIB),
    }
    wanted = {name: value for name, value in given.items() if value is not None}
    if bool(wanted) != bool(args.kind):
        raise ClientError("Give both: --kind, and at least one of --cpus-min, --cpus-max, --memory-min, …", USAGE)
    if args.kind:
        had = next((row for row in rows if row["kind"] == args.kind), None)
        if had is None:
            known = ", ".join(row["kind"] for row in rows)
            raise ClientError(f"The machines have no {args.kind}; there are {known}.", USAGE)
        rows = args.client.call("PUT", route, body=had | wanted)
    show_list(args, rows, BOUNDS)


def _fields(args: argparse.Namespace, had: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The fields of a request for the options given; quotas of a kind begin with what the cluster has."""
    names = (
        "jobs_per_user", "environments_per_user", "max_runtime_s", "max_pause_s", "default_disk_bytes",
        "max_disk_bytes", "approves_environments",
    )  # fmt: skip
    body: dict[str, Any] = {name: getattr(args, name) for name in names if hasattr(args, name)}
    for name in ("max_runtime_s", "max_pause_s"):
        if body.get(name) is not None:
            body[name] *= 3600
    cards: dict[str, dict[str, Any]] = {}

    def of(kind: str) -> dict[str, Any]:
        empty = {"kind": kind, "guaranteed": None, "borrows": False, "per_user": None}
        return cards.setdefault(kind, had.get(kind, empty) | {"kind": kind})

    for option, field, items in (("--cards", "guaranteed", args.cards), ("--per-user", "per_user", args.per_user)):
        for item in items:
            kind, equals, number = item.partition("=")
            if not equals or not kind:
                raise ClientError(f"{option} {item}: write it as KIND=N, for instance gpu=4.", USAGE)
            try:
                of(kind)[field] = limit(number)
            except argparse.ArgumentTypeError as exc:
                raise ClientError(f"{option} {item}: {exc}.", USAGE) from exc
    for on, kinds_given in ((True, args.borrow), (False, args.no_borrow)):
        for kind in kinds_given:
            of(kind)["borrows"] = on
    return body | ({"devices": list(cards.values())} if cards else {})
