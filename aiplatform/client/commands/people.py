"""`aip people`, `aip audit`, `aip share`: accounts, the audit trail, shares."""

from __future__ import annotations

import argparse
from typing import Any

from aiplatform.client import output
from aiplatform.client.commands import lookup
from aiplatform.client.commands.verbs import Noun, Nouns, Parent, command, done, paging, show_list
from aiplatform.client.errors import NOT_FOUND, ClientError
from aiplatform.client.http import Client
from aiplatform.client.output import Column


def _joined(name: str) -> Any:
    return lambda row: ", ".join(str(item) for item in row.get(name) or [])


PEOPLE: list[Column] = [
    ("id", "id"),
    ("username", "username"),
    ("nickname", "nickname"),
    ("state", "state"),
    ("roles", _joined("roles")),
    ("groups", _joined("groups")),
]
ENTRIES: list[Column] = [
    ("time", "at"),
    ("who", "actor"),
    ("for", "behind"),
    ("act", "verb"),
    ("what", "target"),
    ("address", "address"),
]
SHARES: list[Column] = [("with", "name"), ("level", "level")]


def add(nouns: Nouns, parent: Parent) -> None:
    people = Noun(nouns, parent, "people", "Accounts; for administrators.")
    verb = people.verb("list", people_list, "List accounts.")
    verb.add_argument("-q", "--search", help="name, phone or e-mail contains this")
    paging(verb)
    verb = people.verb("add", people_add, "Make an account; its first password is printed once.")
    verb.add_argument("username")
    verb.add_argument("--nickname", help="how others see them (the username)")
    verb.add_argument("--email", default="")
    verb.add_argument("--role", action="append", required=True, help="name of a role; may be repeated")
    verb.add_argument("--group", action="append", default=[], help="name of a group; may be repeated")
    for name, sentence in (("enable", "Let an account in."), ("disable", "Lock an account out at once.")):
        people.verb(name, switch, sentence).add_argument("username")
    audit = Noun(nouns, parent, "audit", "The audit trail; for administrators.")
    verb = audit.verb("list", audit_list, "Who did what, newest first.")
    verb.add_argument("-q", "--search", help="person, thing or address contains this")
    verb.add_argument("--verb", dest="act", help="only this act, e.g. rights_changed")
    verb.add_argument("--since", help="only since then, e.g. 2026-01-31T08:00:00Z")
    paging(verb)
    verb = command(nouns, parent, "share", share, "Share a dataset, model or annotation project, or see who has it.")
    verb.add_argument("kind", choices=["dataset", "model", "project"])
    verb.add_argument("thing", help="id, or the name of a dataset or model")
    whom = verb.add_mutually_exclusive_group()
    whom.add_argument("--with", dest="person", metavar="USERNAME", help="a person")
    whom.add_argument("--group", metavar="GROUP", help="a group: its name or id")
    verb.add_argument("--level", choices=["view", "annotate", "use", "manage", "none"], default="view", help="(view)")


def people_list(args: argparse.Namespace) -> None:
    show_list(args, args.client.pages("users/", limit=args.limit, q=args.search), PEOPLE)


def _ids(client: Client, route: str, names: list[str], what: str) -> list[int]:
    known = {row["name"]: int(row["id"]) for row in client.pages(route)} if names else {}
    if missing := [name for name in names if name not in known]:
        raise ClientError(f"There is no {what} called {missing[0]}.", NOT_FOUND)
    return [known[name] for name in names]


def people_add(args: argparse.Namespace) -> None:
    wanted = {
        "username": args.username,
        "nickname": args.nickname or args.username,
        "email": args.email,
        "roles": _ids(args.client, "roles/", args.role, "role"),
        "groups": _ids(args.client, "groups/", args.group, "group"),
    }
    made = args.client.post("users/", wanted)
    if args.json:
        output.as_json(made)
    else:
        print(made["password"])
        output.say("The first password: it is not shown again and must be changed at the first sign-in.")


def switch(args: argparse.Namespace) -> None:
    rows = [row for row in args.client.pages("users/", q=args.username) if row["username"] == args.username]
    if not rows:
        raise ClientError(f"Nobody is called {args.username}.", NOT_FOUND)
    active = args.verb == "enable"
    row = args.client.call("PATCH", f"users/{rows[0]['id']}/", body={"is_active": active})
    done(args, row, f"{output.clean(args.username)} is {'active' if active else 'disabled'}.")


def audit_list(args: argparse.Namespace) -> None:
    filters = {"q": args.search, "verb": args.act, "since": args.since}
    show_list(args, args.client.pages("audit/", limit=args.limit, **filters), ENTRIES)


def share(args: argparse.Namespace) -> None:
    find = {"dataset": lookup.dataset, "model": lookup.model}.get(args.kind)
    number = find(args.client, args.thing) if find else int(args.thing)
    route = f"shares/{args.kind}/{number}/"
    if args.person or args.group:
        group = {"group": int(args.group)} if (args.group or "").isdigit() else {"group_name": args.group}
        whom = {"person": args.person} if args.person else group
        level = None if args.level == "none" else args.level
        rows = args.client.call("PUT", route, body={**whom, "level": level})
    else:
        rows = args.client.get(route)
    show_list(args, rows, SHARES, empty="Shared with nobody.")
