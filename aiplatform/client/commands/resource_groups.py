"""`aip resource-groups`: machines reserved for some kinds of jobs, always or in windows of hours."""

from __future__ import annotations

import argparse
from typing import Any

from aiplatform.client import output
from aiplatform.client.commands import lookup
from aiplatform.client.commands.verbs import Noun, Nouns, Parent, confirm, done, paging, show_list, show_one
from aiplatform.client.errors import NOT_FOUND, USAGE, ClientError
from aiplatform.client.http import Client
from aiplatform.client.output import Column

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def _hours(row: dict[str, Any]) -> str:
    return ", ".join(_written(hours) for hours in row["windows"]) or "always"


COLUMNS: list[Column] = [
    ("id", "id"),
    ("name", "name"),
    ("machines", lambda row: ", ".join(row["nodes"])),
    ("for", lambda row: ", ".join(row["kinds"])),
    ("hours", _hours),
]
FIELDS: list[Column] = [(heading.capitalize(), source) for heading, source in COLUMNS] + [("Clocks of", "time_zone")]


def add(nouns: Nouns, parent: Parent) -> None:
    groups = Noun(nouns, parent, "resource-groups", "Machines kept for some kinds of jobs, at certain hours.")
    paging(groups.verb("list", group_list, "List resource groups."))
    groups.verb("show", show, "Show one.").add_argument("group", help="name or id")
    verb = groups.verb("create", save, "Keep machines for some kinds of jobs.")
    verb.add_argument("name")
    _options(verb, required=True)
    verb = groups.verb("change", save, "Change one; what is left out stays.")
    verb.add_argument("group", help="name or id")
    verb.add_argument("--name", default=None, help="its new name")
    _options(verb, required=False)
    verb.add_argument("--always", action="store_true", help="at all hours: no windows any more")
    verb = groups.verb("delete", delete, "Let everybody start on its machines again.")
    verb.add_argument("group", help="name or id")
    verb.add_argument("-y", "--yes", action="store_true", help="do not ask")


def _options(verb: argparse.ArgumentParser, *, required: bool) -> None:
    many: dict[str, Any] = {"action": "append", "required": required}
    verb.add_argument("--node", metavar="NAME", **many, help="a machine: name or id; may be repeated")
    verb.add_argument("--kind", metavar="KIND", **many, help="training, environment, service, …; may be repeated")
    verb.add_argument(
        "--window", action="append", metavar="WHEN", help="by the site's clocks, e.g. mon-fri@09:00-21:00; repeatable"
    )


def group_list(args: argparse.Namespace) -> None:
    show_list(args, args.client.pages("resource-groups/", limit=args.limit), COLUMNS, empty="No machine is kept.")


def show(args: argparse.Namespace) -> None:
    show_one(args, args.client.get(f"resource-groups/{_find(args.client, args.group)}/"), FIELDS)


def save(args: argparse.Namespace) -> None:
    body: dict[str, Any] = {"name": args.name} if args.name else {}
    if args.node:
        body["nodes"] = [lookup.node(args.client, item) for item in args.node]
    if args.kind:
        body["kinds"] = args.kind
    if args.window:
        body["windows"] = [window(item) for item in args.window]
    if args.verb == "create":
        row = args.client.post("resource-groups/", body, once=True)
    else:
        if args.always:
            body["windows"] = []
        if not body:
            raise ClientError("Say what to change: --name, --node, --kind, --window or --always.", USAGE)
        row = args.client.call("PATCH", f"resource-groups/{_find(args.client, args.group)}/", body=body)
    sentence = f"{row['name']}: {', '.join(row['nodes'])} for {', '.join(row['kinds'])}, {_hours(row)}."
    done(args, row, output.clean(sentence))


def delete(args: argparse.Namespace) -> None:
    number = _find(args.client, args.group)
    confirm(args, f"Delete resource group {args.group}?")
    args.client.delete(f"resource-groups/{number}/")
    done(args, None, f"Resource group {output.clean(args.group)} is deleted.")


def window(text: str) -> dict[str, Any]:
    """Parse `"mon-fri,sun@21:00-06:00"` to the API's form.

    Raises:
        ClientError: it is written another way.
    """
    days, at, hours = text.lower().partition("@")
    begins, dash, ends = hours.partition("-")
    chosen: set[int] = set()
    try:
        for part in days.split(","):
            first, _dash, last = part.partition("-")
            begin, end = DAYS.index(first), DAYS.index(last or first)
            chosen |= {n % 7 for n in range(begin, end + 1 if end >= begin else end + 8)}
    except ValueError:
        chosen = set()
    if not (at and dash and begins and ends and chosen):
        raise ClientError(f"{text}: write a window as mon-fri@09:00-21:00.", USAGE)
    return {"weekdays": sorted(chosen), "begins": begins, "ends": ends}


def _written(row: dict[str, Any]) -> str:
    """Format a window of the API as `window` parses it: three and more days in a row as first-last."""
    runs: list[list[int]] = []
    for day in row["weekdays"]:
        if runs and day == runs[-1][-1] + 1:
            runs[-1].append(day)
        else:
            runs.append([day])
    days = [f"{DAYS[run[0]]}-{DAYS[run[-1]]}" if len(run) > 2 else ",".join(DAYS[n] for n in run) for run in runs]
    return f"{','.join(days)}@{row['begins']}-{row['ends']}"


def _find(client: Client, given: str) -> int:
    if given.isdigit():
        return int(given)
    for row in client.pages("resource-groups/"):
        if row["name"] == given:
            return int(row["id"])
    raise ClientError(f"There is no resource group named {given}.", NOT_FOUND)
