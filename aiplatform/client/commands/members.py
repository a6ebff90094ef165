"""`aip clusters members | add-member | remove-member | charge | priority`: the members of a virtual cluster."""

from __future__ import annotations

import argparse
import operator
from typing import Any

from aiplatform.client import output
from aiplatform.client.commands import lookup, resources
from aiplatform.client.errors import USAGE, ClientError
from aiplatform.client.options import flag, option, repeated
from aiplatform.client.output import columns
from aiplatform.client.verbs import Verb, done

COLUMNS = columns(
    "person=user, comes by=direct|origin, in charge=administers, since=added_at|ago",
    origin=lambda direct: "themselves" if direct else "group",
)
CLUSTER = option("cluster", find=lookup.cluster, help="name or id")
MEMBERS = (
    option("cluster", help="name or id"),
    repeated("--user", default=[], metavar="NAME", help="may be repeated"),
    repeated("--group", default=[], metavar="GROUP", help="name or id; may be repeated"),
)


def _route(args: argparse.Namespace) -> str:
    return f"clusters/{lookup.cluster(args.client, args.cluster)}/members/"


def _named(args: argparse.Namespace) -> list[dict[str, Any]]:
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


def _show(args: argparse.Namespace, members: Any) -> None:
    output.table(members["people"], COLUMNS, empty="Nobody belongs to it.")
    if members["groups"]:
        output.say(f"Groups: {output.clean(', '.join(members['groups']))}.")


def _add(args: argparse.Namespace) -> None:
    route, members = _route(args), None
    for member in _named(args):
        members = args.client.post(route, member)
    done(args, members, f"Let in: {output.clean(', '.join([*args.user, *args.group]))}.")


def _remove(args: argparse.Namespace) -> None:
    route = _route(args)
    for member in _named(args):
        args.client.call("DELETE", route, query=member)
    members = args.client.get(route)
    users = {row["user"] for row in members["people"]}
    if staying := [name for name in args.user if name in users]:
        output.say(f"{output.clean(', '.join(staying))}: in through a group, and stays until it is taken out.")
    removed = [name for name in [*args.user, *args.group] if name not in staying]
    done(args, members, f"Taken out: {output.clean(', '.join(removed)) or 'nobody'}.")


def _describe_charge(args: argparse.Namespace, row: Any) -> str:
    state = "no longer in charge" if args.end else "in charge"
    return f"{output.clean(args.user)} is {state} of {output.clean(args.cluster)}."


VERBS = (
    Verb("members", "List who belongs to a cluster.", (CLUSTER,), get="clusters/{cluster}/members/", show=_show),
    Verb("add-member", "Let people or groups in; a group brings everybody who is or will be in it.", MEMBERS,
         run=_add, example="aip clusters add-member lab --user alice --group vision"),
    Verb("remove-member", "Take people or groups out; refused while they have jobs there.", MEMBERS,
         run=_remove, example="aip clusters remove-member lab --user alice"),
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
