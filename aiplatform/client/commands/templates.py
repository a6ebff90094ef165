"""`aip templates`, and `aip run --template`: stored requests with parameters."""

from __future__ import annotations

import argparse
import json
from typing import Any

from aiplatform.client import output
from aiplatform.client.commands import lookup
from aiplatform.client.commands.verbs import Noun, Nouns, Parent, confirm, done, paging, show_list
from aiplatform.client.errors import NOT_FOUND, USAGE, ClientError
from aiplatform.client.http import Client
from aiplatform.client.output import Column

COLUMNS: list[Column] = [
    ("id", "id"),
    ("name", "name"),
    ("kind", "kind"),
    ("owner", "owner"),
    ("seen by", "visibility"),
    ("version", "version"),
    ("parameters", lambda row: ", ".join(one["name"] for one in row["parameters"])),
]


def options(verb: argparse.ArgumentParser) -> None:
    """The options of `aip run`."""
    verb.add_argument("--template", metavar="NAME", help="a template: its name, or its id")
    verb.add_argument(
        "--set", action="append", metavar="NAME=VALUE", help="a parameter of the template; repeat for more"
    )


def add(nouns: Nouns, parent: Parent) -> None:
    templates = Noun(nouns, parent, "templates", "Templates of jobs. Use one: aip run --template NAME")
    verb = templates.verb("list", template_list, "List templates, the last changed first.")
    verb.add_argument("-q", "--search", help="only those whose name or description contains this")
    paging(verb)
    templates.verb("show", show, "Print what a template requests, as JSON.").add_argument("template", help="name or id")
    verb = templates.verb("save", save, "Store a template.")
    verb.add_argument("name")
    verb.add_argument("--job", type=int, metavar="ID", help="of what this job was requested with")
    verb.add_argument(
        "--file", type=argparse.FileType("r"), metavar="FILE", help="JSON: request, parameters; - is stdin"
    )
    verb.add_argument("--description", help="what it is for")
    verb.add_argument("--visibility", choices=["private", "group", "public"], help="who sees it")
    verb = templates.verb("delete", delete, "Delete a template; jobs that were made of it stay.")
    verb.add_argument("template", help="name or id")
    verb.add_argument("-y", "--yes", action="store_true", help="do not ask")


def use(args: argparse.Namespace, instead: dict[str, Any]) -> Any:
    """Queue the job of `--template`, with the values of `--set` and these fields in place of its own."""
    values = {}
    for item in args.set or ():
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise ClientError(f"--set {item}: write it as name=value.", USAGE)
        values[name] = value
    number = find(args.client, args.template)["id"]
    return args.client.post(f"templates/{number}/use/", {"values": values, "request": instead}, once=True)


def find(client: Client, given: str) -> Any:
    """The template of a name, or of an id; refuses a name that several people gave."""
    rows = list(client.pages("templates/", name=given))
    if len(rows) > 1:
        raise lookup.ambiguous(given, rows)
    if rows:
        return rows[0]
    if given.isdigit():
        return client.get(f"templates/{given}/")
    raise ClientError(f"There is no template {given}. See: aip templates list", NOT_FOUND)


def template_list(args: argparse.Namespace) -> None:
    rows = args.client.pages("templates/", limit=args.limit, search=args.search)
    show_list(args, rows, COLUMNS, empty="No templates. Save a job as one: aip templates save NAME --job ID")


def show(args: argparse.Namespace) -> None:
    row = find(args.client, args.template)
    output.as_json(row if args.json else {name: row[name] for name in ("kind", "request", "parameters")})


def save(args: argparse.Namespace) -> None:
    if bool(args.job) == bool(args.file):
        raise ClientError("Give --job ID, or --file FILE.", USAGE)
    body: dict[str, Any] = {"name": args.name}
    if args.job:
        body["job"] = args.job
    else:
        with args.file as file:
            try:
                given = json.load(file)
            except ValueError as exc:
                raise ClientError(f"{file.name} is no JSON: {exc}", USAGE) from exc
        if not isinstance(given, dict):
            raise ClientError(f"{file.name}: write an object with request and parameters.", USAGE)
        body |= {name: given[name] for name in ("kind", "request", "parameters") if name in given}
    body |= {name: getattr(args, name) for name in ("description", "visibility") if getattr(args, name) is not None}
    row = args.client.post("templates/", body, once=True)
    done(args, row, f"Template {output.clean(row['name'])} is stored, number {row['id']}.")


def delete(args: argparse.Namespace) -> None:
    row = find(args.client, args.template)
    confirm(args, f"Delete the template {row['name']}?")
    args.client.call("DELETE", f"templates/{row['id']}/")
    done(args, {"id": row["id"]}, f"Template {output.clean(row['name'])} is deleted.")
