"""`aip images add-container`, `look`, `credentials`, and what all verbs of images share."""

from __future__ import annotations

import argparse
import getpass
import sys
from typing import Any

from aiplatform.client import output, waiting
from aiplatform.client.commands import lookup
from aiplatform.client.errors import JOB_FAILED, NOT_FOUND, OK, ClientError
from aiplatform.client.http import Client
from aiplatform.client.options import YES, flag, option, read_text
from aiplatform.client.output import columns
from aiplatform.client.verbs import Verb, done, show_one

VISIBILITIES = ("private", "group", "public")
COLUMNS = columns(
    "id, name=|name, kind, state, python=facts.python, torch=facts.torch, size=size_bytes|size, used by=used_by, "
    "owner, created=created_at|ago",
    name=lambda row: f"{row['name']}:{row['tag']}" if row.get("tag") else row["name"],
    size=lambda size: output.size(size) if size else "",
)
FIELDS = COLUMNS + columns(
    "message, visible to=visibility, sha256, reference, digest, packages=requirements|lines, excluded=left_out|joined",
    lines=lambda text: ", ".join(text.split("\n")),
)
IMAGE = option("image", find=lookup.image, help="id, NAME, or NAME:TAG")
#: Options of a new image.
NAMING = (
    option("--tag", default="", help="a version, such as 2 or june"),
    option("--description", default=""),
    option("--visibility", choices=VISIBILITIES, default="private"),
)
WAIT = flag("--wait", help="wait until it is ready; exit code 6 on failure", field="")


def print_new(args: argparse.Namespace, row: Any, sentence: str) -> int:
    """Print the id of a new image; with `--wait`, wait for its build and print the image."""
    if not args.wait:
        if not args.json:
            print(row["id"])
        job = row["build_job"] if row["kind"] == "engine" else None
        log = f" Its log: aip jobs logs -f {job}" if job else ""
        done(args, row, "The image is ready." if row["state"] == "ready" else f"{sentence} as image {row['id']}.{log}")
        return OK
    row = waiting.until_over(args.client, f"images/{row['id']}/", until={"ready", "failed"})
    show_one(args, row, FIELDS)
    return OK if waiting.state_of(row) == "ready" else JOB_FAILED


ROUTE = "registry-logins/"
LOGINS = columns(
    "id, registry=host, username, works=works|works, tested=tested_at|ago, visible to=visibility, owner, "
    "images=used_by, message",
    works={None: "not tested", True: "yes", False: "no"}.get,
)


def _find_login(client: Client, name: str) -> int:
    """Id of credentials: `17`, or the host of a registry that has only one row."""
    if name.isdigit():
        return int(name)
    rows = [row for row in client.pages(ROUTE, limit=200) if row["host"] == name]
    if len(rows) > 1:
        raise lookup.ambiguous(name, rows)
    if not rows:
        raise ClientError(f"No credentials {name}. List them: aip images credentials", NOT_FOUND)
    return int(rows[0]["id"])


CREDENTIALS = option("credentials", metavar="ID|HOST", find=_find_login)


def source_of(reference: str, *, local: bool) -> str:
    """Kind of the place that an image comes from, by its name as docker reads it."""
    first, slash, _rest = reference.removeprefix("https://").partition("/")
    elsewhere = slash and ("." in first or ":" in first or first == "localhost")
    hub = first in ("docker.io", "index.docker.io")
    return "local" if local else "registry" if elsewhere and not hub else "hub"


def _add_login(args: argparse.Namespace) -> int:
    body: dict[str, Any] = {"host": args.host, "username": args.username, "ca": read_text(args.ca) if args.ca else ""}
    body["visibility"] = "group" if args.group else "private"
    if args.username:
        typed = sys.stdin.readline() if args.password_stdin else getpass.getpass("Password or token: ")
        body["password"] = typed.rstrip("\r\n")
    row = args.client.post(ROUTE, body)
    return TEST.report(args, args.client.post(f"{ROUTE}{row['id']}/test/")) or OK


TEST = Verb("test-credentials", "Test the credentials at the registry; exit code 6 on failure.", (CREDENTIALS,),
            post="registry-logins/{credentials}/test/",
            done=lambda args, row: f"Credentials {row['id']} work." if row["works"] else output.clean(row["message"]),
            exit_code=lambda row: OK if row["works"] else JOB_FAILED)  # fmt: skip
VERBS = (
    Verb("add-container", "Add a container image of Docker Hub or another registry.", (
        option("name"),
        option("reference", help="pytorch/pytorch:2.1.0, registry.example.org/lab/torch:2.1, with @sha256:…"),
        flag("--local", field="", help="the image is already on the nodes"),
        option("--credentials", metavar="ID|HOST", field="login", find=_find_login, help="download credentials"),
        flag("--newest", field="policy", convert=lambda newest: "newest" if newest else "pinned",
             help="resolve the tag for each new job"),
        *NAMING, WAIT,
    ), post="images/container/", send=lambda args: {"source": source_of(args.reference, local=args.local)}, once=True,
         finish=lambda args, row: print_new(args, row, "The image is being resolved")),
    Verb("look", "Resolve a container image again.", (IMAGE,),
         post="images/{image}/look/", done="Image {args.image} is being resolved again."),
    Verb("credentials", "List registry credentials.", get=ROUTE, table=LOGINS, empty="No credentials."),
    Verb("add-credentials", "Store registry credentials; prompts for the password.", (
        option("host", help="registry.example.org:5000; docker.io is Docker Hub"),
        option("--username", default=""),
        flag("--password-stdin", help="read the password from standard input"),
        option("--ca", metavar="FILE", help="certificate authority of an internal registry, in PEM"),
        flag("--group", help="share with your groups"),
    ), run=_add_login),
    TEST,
    Verb("delete-credentials", "Delete unused credentials.", (CREDENTIALS, YES),
         delete="registry-logins/{credentials}/", confirm="Delete credentials {args.credentials}?",
         done="The credentials are deleted."),
)  # fmt: skip
