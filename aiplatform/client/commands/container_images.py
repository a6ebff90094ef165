"""`aip images add-container`, `look` and `credentials`: images of container registries."""

from __future__ import annotations

import argparse
import getpass
import sys
from pathlib import Path
from typing import Any

from aiplatform.client import output
from aiplatform.client.commands import lookup, versioned
from aiplatform.client.commands.image_rows import fields, made, named
from aiplatform.client.commands.verbs import Noun, done, show_list
from aiplatform.client.errors import JOB_FAILED, NOT_FOUND, OK, USAGE, ClientError
from aiplatform.client.http import Client
from aiplatform.client.output import Column

ROUTE = "registry-logins/"
LOGINS: list[Column] = [
    ("id", "id"), ("registry", "host"), ("username", "username"),
    ("works", lambda row: {None: "not tested", True: "yes", False: "no"}[row["works"]]),
    ("tested", lambda row: output.ago(row["tested_at"]) if row["tested_at"] else ""),
    ("usable by", "visibility"), ("owner", "owner"), ("images", "used_by"), ("message", "message"),
]  # fmt: skip


def add(images: Noun) -> None:
    """Add the verbs to `aip images`."""
    verb = images.verb("add-container", add_container, "Add a container image of Docker Hub or another registry.")
    verb.add_argument("name")
    verb.add_argument("reference", help="pytorch/pytorch:2.1.0, registry.example.org/lab/torch:2.1, with @sha256:…")
    verb.add_argument("--local", action="store_true", help="it is on the machines already")
    verb.add_argument("--credentials", metavar="ID|HOST", help="what it is fetched with")
    verb.add_argument("--newest", action="store_true", help="ask for each new job which one the tag names")
    named(verb)
    verb = images.verb("look", look, "Look a container image up again.")
    verb.add_argument("image", help="id, NAME, or NAME:TAG")
    images.verb("credentials", login_list, "List credentials of registries.")
    verb = images.verb("add-credentials", login_add, "Keep credentials of a registry; the password is asked for.")
    verb.add_argument("host", help="registry.example.org:5000; docker.io is Docker Hub")
    verb.add_argument("--username", default="")
    verb.add_argument("--password-stdin", action="store_true", help="read the password from standard input")
    verb.add_argument("--ca", metavar="FILE", help="the certificate authority of a registry of the house, in PEM")
    verb.add_argument("--group", action="store_true", help="people of your groups may use them")
    verb = images.verb("test-credentials", login_test, "Sign in at the registry; 6 when it does not work.")
    verb.add_argument("credentials", metavar="ID|HOST")
    verb = images.verb("delete-credentials", login_delete, "Forget credentials that no image needs.")
    verb.add_argument("credentials", metavar="ID|HOST")
    verb.add_argument("--yes", action="store_true", help="do not ask")


def add_container(args: argparse.Namespace) -> int:
    asked = fields(args) | {"reference": args.reference, "source": source_of(args.reference, local=args.local)}
    asked["policy"] = "newest" if args.newest else "pinned"
    if args.credentials:
        asked["login"] = _login(args.client, args.credentials)
    return made(args, args.client.post("images/container/", asked, once=True), "It is being looked up")


def source_of(reference: str, *, local: bool) -> str:
    """Where an image lies, by its name as docker reads it."""
    first, slash, _rest = reference.removeprefix("https://").partition("/")
    elsewhere = slash and ("." in first or ":" in first or first == "localhost")
    hub = first in ("docker.io", "index.docker.io")
    return "local" if local else "registry" if elsewhere and not hub else "hub"


def look(args: argparse.Namespace) -> None:
    row = args.client.post(f"images/{lookup.image(args.client, args.image)}/look/")
    done(args, row, f"Image {args.image} is looked up again.")


def login_list(args: argparse.Namespace) -> None:
    show_list(args, args.client.pages(ROUTE, limit=200), LOGINS, empty="No credentials.")


def login_add(args: argparse.Namespace) -> int:
    asked: dict[str, Any] = {"host": args.host, "username": args.username, "ca": _text(args.ca) if args.ca else ""}
    asked["visibility"] = "group" if args.group else "private"
    if args.username:
        typed = sys.stdin.readline() if args.password_stdin else getpass.getpass("Password or token: ")
        asked["password"] = typed.rstrip("\r\n")
    row = args.client.post(ROUTE, asked)
    return _tested(args, row["id"])


def login_test(args: argparse.Namespace) -> int:
    return _tested(args, _login(args.client, args.credentials))


def login_delete(args: argparse.Namespace) -> None:
    route = f"{ROUTE}{_login(args.client, args.credentials)}/"
    versioned.remove(args, route, question=f"Delete credentials {args.credentials}?", removed="They are deleted.")


def _tested(args: argparse.Namespace, number: int) -> int:
    row = args.client.post(f"{ROUTE}{number}/test/")
    done(args, row, f"Credentials {row['id']} work." if row["works"] else row["message"])
    return OK if row["works"] else JOB_FAILED


def _login(client: Client, given: str) -> int:
    """Id of credentials: `17`, or the host of a registry that has only some of them."""
    if given.isdigit():
        return int(given)
    rows = [row for row in client.pages(ROUTE, limit=200) if row["host"] == given]
    if len(rows) > 1:
        raise lookup.ambiguous(given, rows)
    if not rows:
        raise ClientError(f"There are no credentials of {given}. List them: aip images credentials", NOT_FOUND)
    return int(rows[0]["id"])


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise ClientError(f"{path} cannot be read: {exc}", USAGE) from exc
