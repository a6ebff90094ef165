"""`aip secret`: values that jobs and pipelines name. A value comes by standard input or a prompt, never as a word."""

from __future__ import annotations

import argparse
import getpass
import sys
from typing import Any

from aiplatform.client import output
from aiplatform.client.commands.verbs import Noun, Nouns, Parent, done, show_list
from aiplatform.client.errors import NOT_FOUND, USAGE, ClientError

MOST_CHARACTERS = 1 << 20  # of what is read; the platform says how long a value may be
COLUMNS: list[output.Column] = [
    ("Name", "name"), ("Set", "changed_at"), ("Last used", "used_at"), ("Note", "note"),
]  # fmt: skip


def add(nouns: Nouns, parent: Parent) -> None:
    secret = Noun(nouns, parent, "secret", "Secrets by name, for your jobs and pipelines.")
    secret.verb("list", listed, "List your secrets, without their values.")
    verb = secret.verb("set", put, "Store a value, or replace it: from standard input, or asked for at a terminal.")
    verb.add_argument("name", help="capital letters, digits and _, such as HF_TOKEN")
    verb.add_argument("--note", help="what it is for")
    verb = secret.verb("delete", delete, "Forget a secret; what names it fails from then on.")
    verb.add_argument("name")


def listed(args: argparse.Namespace) -> None:
    rows = args.client.pages("secrets/")
    show_list(args, rows, COLUMNS, empty="No secrets yet. aip secret set NAME stores one.")


def put(args: argparse.Namespace) -> None:
    row, value = _find(args), _value(args.name)
    note = {} if args.note is None else {"note": args.note}
    if row is None:
        row = args.client.post("secrets/", {"name": args.name, "value": value, **note})
        done(args, row, f"{args.name} is stored.")
    else:
        row = args.client.call("PATCH", f"secrets/{row['id']}/", body={"value": value, **note})
        done(args, row, f"{args.name} has a new value.")


def delete(args: argparse.Namespace) -> None:
    row = _find(args)
    if row is None:
        raise ClientError(f"You have no secret {args.name}. aip secret list shows them.", NOT_FOUND)
    args.client.delete(f"secrets/{row['id']}/")
    done(args, None, f"{args.name} is deleted.")


def _find(args: argparse.Namespace) -> Any:
    return next((row for row in args.client.pages("secrets/") if row["name"] == args.name), None)


def _value(name: str) -> str:
    """The value, without the end of its last line."""
    if not sys.stdin.isatty():
        return sys.stdin.read(MOST_CHARACTERS).rstrip("\r\n")
    value = getpass.getpass(f"Value of {name}: ")
    if not value:
        raise ClientError("Nothing was typed, so nothing is stored.", USAGE)
    return value
