"""`aip clusters members | add-member | remove-member | charge | priority`: the people of a virtual cluster."""

from __future__ import annotations

import argparse
from typing import Any

from aiplatform.client import output
from aiplatform.client.commands import lookup, resources
from aiplatform.client.commands.verbs import Noun, done
from aiplatform.client.errors import USAGE, ClientError
from aiplatform.client.http import Client
from aiplatform.client.output import Column

COLUMNS: list[Column] = [
    ("person", "user"),
    ("comes by", lambda row: "themselves" if row["direct"] else "group"),
    ("in charge", "administers"),
    ("since", lambda row: output.ago(row["added_at"])),
]


def add(clusters: Noun) -> None:
    """Add the verbs to `aip clusters`."""
    verb = clusters.verb("members", show, "List who belongs to a cluster.")
    verb.add_argument("cluster", help="name or id")
    for name, run, sentence in (
        ("add-member", let_in, "Let people or groups in; a group brings everybody who is or will be in it."),
        ("remove-member", take_out, "Take people or groups out; refused while they have jobs there."),
    ):
        verb = clusters.verb(name, run, sentence)
        verb.add_argument("cluster", help="name or id")
        verb.add_argument("--user", action="append", default=[], metavar="NAME", help="may be repeated")
        verb.add_argument("--group", action="append", default=[], metavar="GROUP", help="name or id; may be repeated")
    verb = clusters.verb("charge", charge, "Put a person in charge of a cluster's people, priorities and requests.")
    verb.add_argument("cluster", help="name or id")
    verb.add_argument("user", help="name")
    verb.add_argument("--end", action="store_true", help="no longer in charge; stays a member")
    verb = clusters.verb("priority", priority, "Give a job that waits in the cluster another priority.")
    verb.add_argument("cluster", help="name or id")
    verb.add_argument("job", help="id of the job")
    verb.add_argument("priority", help="0 to 99, a higher one starts first; or: urgent")


def show(args: argparse.Namespace) -> None:
    members = args.client.get(_route(args.client, args.cluster))
    if args.json:
        output.as_json(members)
        return
    output.table(members["people"], COLUMNS, empty="Nobody belongs to it.")
    if members["groups"]:
        output.say(f"Groups: {output.clean(', '.join(members['groups']))}.")


def let_in(args: argparse.Namespace) -> None:
    route, members = _route(args.client, args.cluster), None
    for field, name in _named(args):
        members = args.client.post(route, {field: name})
    done(args, members, f"Let in: {output.clean(', '.join([*args.user, *args.group]))}.")


def take_out(args: argparse.Namespace) -> None:
    route = _route(args.client, args.cluster)
    for field, name in _named(args):
        args.client.call("DELETE", route, query={field: name})
    members = args.client.get(route)
    left = {row["user"] for row in members["people"]}
    if staying := [name for name in args.user if name in left]:
        output.say(f"{output.clean(', '.join(staying))}: in through a group, and stays until it is taken out.")
    gone = [name for name in [*args.user, *args.group] if name not in staying]
    done(args, members, f"Taken out: {output.clean(', '.join(gone)) or 'nobody'}.")


def charge(args: argparse.Namespace) -> None:
    members = args.client.post(_route(args.client, args.cluster), {"user": args.user, "administers": not args.end})
    now = "no longer in charge" if args.end else "in charge"
    done(args, members, f"{output.clean(args.user)} is {now} of {output.clean(args.cluster)}.")


def priority(args: argparse.Namespace) -> None:
    number = resources.priority(args.priority)
    route = f"clusters/{lookup.cluster(args.client, args.cluster)}/priority/"
    row = args.client.post(route, {"job": args.job, "priority": number})
    done(args, row, f"Job {args.job} has priority {args.priority} now.")


def _route(client: Client, cluster: str) -> str:
    return f"clusters/{lookup.cluster(client, cluster)}/members/"


def _named(args: argparse.Namespace) -> list[tuple[str, Any]]:
    given = [*(("user", name) for name in args.user), *(("group", name) for name in args.group)]
    if not given:
        raise ClientError("Name whom: --user or --group.", USAGE)
    return given
