"""`aip people`, `aip audit`, `aip share`: accounts, the audit trail, shares."""

from __future__ import annotations

import argparse
from typing import Any

from aiplatform.client.commands import lookup
from aiplatform.client.errors import NOT_FOUND, ClientError
from aiplatform.client.http import Client
from aiplatform.client.options import LIMIT, YES, either, option, repeated
from aiplatform.client.output import columns
from aiplatform.client.verbs import Verb, show_list

PEOPLE = columns("id, username, nickname, state, roles=roles|joined, groups=groups|joined")
ENTRIES = columns("time=at, who=actor, for=behind, act=verb, what=target, address")
SHARES = columns("with=name, level")
LEVELS = ["view", "annotate", "use", "manage", "none"]
SHARED = {"dataset": lookup.dataset, "model": lookup.model, "project": lookup.project}


def _ids(route: str, noun: str) -> Any:
    """Return the conversion of names to the ids of rows at a route."""

    def find(client: Client, name: str) -> int:
        for row in client.pages(route):
            if row["name"] == name:
                return int(row["id"])
        raise ClientError(f"No {noun} named {name}.", NOT_FOUND)

    return find


def _find_user(client: Client, username: str) -> int:
    rows = [row for row in client.pages("users/", q=username) if row["username"] == username]
    if not rows:
        raise ClientError(f"No user named {username}.", NOT_FOUND)
    return int(rows[0]["id"])


def _share(args: argparse.Namespace) -> None:
    route = f"shares/{args.kind}/{SHARED[args.kind](args.client, args.thing)}/"
    if args.person or args.group:
        group = {"group": int(args.group)} if (args.group or "").isdigit() else {"group_name": args.group}
        level = None if args.level == "none" else args.level
        holder = {"person": args.person} if args.person else group
        rows = args.client.call("PUT", route, body={**holder, "level": level})
    else:
        rows = args.client.get(route)
    show_list(args, rows, SHARES, empty="Not shared.")


USER = option("username", find=_find_user)
GROUP = option("group", find=_ids("groups/", "group"), help="name")
GROUPS = columns(
    "id, name, description, roles=roles|count, members=members|count", count=lambda items: len(items or ())
)

NOUNS = {
    "people": (
        Verb("list", "List accounts.",
             (option("-q", "--search", field="q", help="name, phone or e-mail contains this text"), LIMIT),
             get="users/", table=PEOPLE),
        Verb("add", "Create an account; its initial password is printed once.", (
            option("username"),
            option("--nickname", help="display name (default: the username)"),
            option("--email", default=""),
            repeated("--role", field="roles", required=True, find=_ids("roles/", "role"),
                     help="name of a role; can be repeated"),
            repeated("--group", field="groups", default=[], find=_ids("groups/", "group"),
                     help="name of a group; can be repeated"),
            repeated("--cluster", field="clusters", default=[], find=lookup.cluster,
                     help="name or id of a cluster; can be repeated"),
        ), post="users/", send=lambda args: {"nickname": args.username}, prints="password",
             done="The initial password: it is not shown again and must be changed at the first sign-in."),
        Verb("enable", "Approve an account.", (USER,), patch="users/{username}/", send={"is_active": True},
             done="{args.username} is active."),
        Verb("disable", "Disable an account "
                        "immediately.", (USER,), patch="users/{username}/", send={"is_active": False},
             done="{args.username} is disabled."),
    ),
    "audit": (
        Verb("list", "Show the audit log, newest first.", (
            option("-q", "--search", field="q", help="user, object or address contains this text"),
            option("--verb", dest="act", field="verb", help="only this action, e.g. rights_changed"),
            option("--since", help="only since then, e.g. 2026-01-31T08:00:00Z"),
            LIMIT,
        ), get="audit/", table=ENTRIES),
    ),
    "groups": (
        Verb("list", "List device groups.", (LIMIT,), get="groups/", table=GROUPS),
        Verb("create", "Create a group.", (
            option("name"),
            option("--description", required=True, help="name of the token"),
            repeated("--role", field="roles", required=True, find=_ids("roles/", "role"),
                     help="name of a role; can be repeated"),
            repeated("--member", field="members", default=[], find=_find_user, help="username; can be repeated"),
        ), post="groups/", done="Created group {row[name]} with id {row[id]}."),
        Verb("delete", "Delete a group; its members keep their accounts.", (GROUP, YES),
             delete="groups/{group}/", confirm="Delete group {args.group}?", done="Deleted group {args.group}."),
    ),
    "roles": (Verb("list", "List roles.", (LIMIT,), get="roles/", table=columns("id, name, description, preset")),),
    "share": Verb("share", "Share a dataset, model or annotation project, or list its sharing.", (
        option("kind", choices=list(SHARED)),
        option("thing", help="id or name"),
        either(option("--with", dest="person", metavar="USERNAME", help="a user"),
               option("--group", metavar="GROUP", help="a group: its name or id")),
        option("--level", choices=LEVELS, default="view", help="(view)"),
    ), run=_share),
}  # fmt: skip
