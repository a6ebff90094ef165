"""`aip secret`: values that jobs and pipelines name; they are read from standard input or a prompt."""

from __future__ import annotations

import argparse
import getpass
import sys
from typing import Any

from aiplatform.client.errors import NOT_FOUND, USAGE, ClientError
from aiplatform.client.http import Client
from aiplatform.client.options import option
from aiplatform.client.output import columns
from aiplatform.client.verbs import Verb, done

MAX_CHARACTERS = 1 << 20  # of what is read; the platform limits the length of a value
COLUMNS = columns("Name=name, Set=changed_at, Last used=used_at, Note=note")


def _set(args: argparse.Namespace) -> None:
    row, value = _find(args.client, args.name), _read_value(args.name)
    note = {} if args.note is None else {"note": args.note}
    if row is None:
        row = args.client.post("secrets/", {"name": args.name, "value": value, **note})
        done(args, row, f"{args.name} is stored.")
    else:
        row = args.client.call("PATCH", f"secrets/{row['id']}/", body={"value": value, **note})
        done(args, row, f"{args.name} has a new value.")


def _find(client: Client, name: str) -> Any:
    return next((row for row in client.pages("secrets/") if row["name"] == name), None)


def _find_id(client: Client, name: str) -> int:
    row = _find(client, name)
    if row is None:
        raise ClientError(f"You have no secret {name}. aip secret list shows them.", NOT_FOUND)
    return int(row["id"])


def _read_value(name: str) -> str:
    """Read the value, without the end of its last line."""
    if not sys.stdin.isatty():
        return sys.stdin.read(MAX_CHARACTERS).rstrip("\r\n")
    value = getpass.getpass(f"Value of {name}: ")
    if not value:
        raise ClientError("No value was entered, so nothing is stored.", USAGE)
    return value


NOUNS = {
    "secret": (
        Verb("list", "List your secrets without their values.",
             get="secrets/", table=COLUMNS, empty="No secrets yet. Store one: aip secret set NAME"),
        Verb("set", "Store or replace a value: from standard input, or by a prompt.", (
            option("name", help="capital letters, digits and _, such as HF_TOKEN"),
            option("--note", help="name of the token"),
        ), run=_set),
        Verb("delete", "Delete a secret; references to it fail from then on.", (option("name", find=_find_id),),
             delete="secrets/{name}/", done="Deleted {args.name}."),
    ),
}  # fmt: skip
