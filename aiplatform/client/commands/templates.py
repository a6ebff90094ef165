"""`aip templates`, and `aip run --template`: stored requests with parameters."""

from __future__ import annotations

import argparse
import json
from typing import Any

from aiplatform.client import output
from aiplatform.client.commands import lookup
from aiplatform.client.errors import USAGE, ClientError
from aiplatform.client.options import LIMIT, YES, fields, option, repeated
from aiplatform.client.output import columns
from aiplatform.client.verbs import Verb, done

COLUMNS = columns(
    "id, name, kind, owner, visible to=visibility, version, parameters=parameters|names",
    names=lambda parameters: ", ".join(parameter["name"] for parameter in parameters),
)
#: Options of `aip run`.
OPTIONS = (
    option("--template", metavar="NAME", help="a template: its name or id"),
    repeated("--set", metavar="NAME=VALUE", help="a parameter of the template; can be repeated"),
)
DESCRIPTION = (
    option("--description", help="name of the token"),
    option("--visibility", choices=["private", "group", "public"], help="visibility"),
)
TEMPLATE = option("template", find=lookup.template, help="name or id")


def submit(args: argparse.Namespace, overrides: dict[str, Any]) -> Any:
    """Queue the job of `--template`, with the values of `--set` and these fields in place of its own."""
    values = {}
    for item in args.set or ():
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise ClientError(f"--set {item}: write it as name=value.", USAGE)
        values[name] = value
    number = lookup.template(args.client, args.template)["id"]
    return args.client.post(f"templates/{number}/use/", {"values": values, "request": overrides}, once=True)


def _show(args: argparse.Namespace) -> None:
    row = lookup.template(args.client, args.template)
    output.as_json(row if args.json else {name: row[name] for name in ("kind", "request", "parameters")})


def _save(args: argparse.Namespace) -> None:
    if bool(args.job) == bool(args.file):
        raise ClientError("Specify --job ID, or --file FILE.", USAGE)
    body = {"job": args.job} if args.job else _read(args.file)
    row = args.client.post("templates/", body | {"name": args.name} | fields(args, DESCRIPTION), once=True)
    done(args, row, f"Template {output.clean(row['name'])} is stored, number {row['id']}.")


def _read(source: Any) -> dict[str, Any]:
    with source as file:
        try:
            template = json.load(file)
        except ValueError as exc:
            raise ClientError(f"{file.name} is not valid JSON: {exc}", USAGE) from exc
    if not isinstance(template, dict):
        raise ClientError(f"{file.name}: write an object with request and parameters.", USAGE)
    return {name: template[name] for name in ("kind", "request", "parameters") if name in template}


NOUNS = {
    "templates": (
        Verb("list", "List templates, recently changed first.", (
            option("-q", "--search", help="only those whose name or description contains this text"), LIMIT,
        ), get="templates/", table=COLUMNS,
             empty="No templates. Save a job as one: aip templates save NAME --job ID"),
        Verb("show", "Print the request of a template as JSON.", (TEMPLATE,), run=_show),
        Verb("save", "Store a template.", (
            option("name"),
            option("--job", type=int, metavar="ID", help="the request of this job"),
            option("--file", type=argparse.FileType("r"), metavar="FILE",
                   help="JSON: request, parameters; - reads standard input"),
            *DESCRIPTION,
        ), run=_save),
        Verb("delete", "Delete a template; jobs created from it are kept.", (TEMPLATE, YES),
             delete="templates/{template}/", confirm="Delete the template {row[name]}?",
             done="Deleted template {row[name]}."),
    ),
}  # fmt: skip
