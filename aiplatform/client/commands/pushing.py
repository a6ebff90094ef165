"""`aip push`: models go to places of people's own."""

from __future__ import annotations

import argparse
import getpass
import sys
import time
from pathlib import Path
from typing import Any

from aiplatform.client import output
from aiplatform.client.commands import lookup, registry, versioned
from aiplatform.client.commands.verbs import Noun, Nouns, Parent, done, paging, pairs, show_list, show_one
from aiplatform.client.errors import JOB_FAILED, OK, USAGE, ClientError
from aiplatform.client.output import Column

TARGETS: list[Column] = [
    ("id", "id"), ("name", "name"), ("kind", "kind"), ("address", "address"),
    ("works", lambda row: {None: "not tested", True: "yes", False: "no"}[row["works"]]),
    ("usable by", "visibility"), ("owner", "owner"), ("message", "message"),
]  # fmt: skip
PUSHES: list[Column] = [
    ("id", "id"), ("model", "model"), ("target", "target_name"), ("state", "state"),
    ("sent", lambda row: f"{100 * row['sent_bytes'] // max(row['size_bytes'], 1)} %"),
    ("made", lambda row: output.ago(row.get("created_at"))), ("lies at", "landed"), ("message", "sentence"),
]  # fmt: skip
LOOK_S = 1.0
OVER = ("done", "failed", "stopped")


def add(nouns: Nouns, parent: Parent) -> None:
    push = Noun(nouns, parent, "push", "Push models to places of your own.")
    verb = push.verb("start", start, "Push a version.")
    verb.add_argument("model", help=registry.VERSION)
    verb.add_argument("target", help="id or name")
    verb.add_argument("--files", action="store_true", help="the version's own files instead of the package that runs")
    verb.add_argument("--wait", action="store_true", help="until it is there; 6 where it fails")
    paging(push.verb("list", listed, "List your pushes."))
    for name, run, what in (("show", show, "Show a push."), ("stop", stop, "End a push.")):
        push.verb(name, run, what).add_argument("id")
    push.verb("again", again, "Push once more what failed or was stopped.").add_argument("id")
    paging(push.verb("targets", targets, "List targets."))
    verb = push.verb("add-target", add_target, "Keep a target, and test it; the secret is asked for.")
    verb.add_argument("name")
    verb.add_argument("kind", help="put, s3, ssh, oci or fd")
    verb.add_argument("address")
    verb.add_argument("-p", "--option", action="append", metavar="NAME=VALUE", help="what the kind asks for")
    verb.add_argument("--secret-stdin", action="store_true", help="read the secret from standard input")
    verb.add_argument("--secret-file", metavar="FILE", help="read the secret from a file, as a private key")
    verb.add_argument("--no-secret", action="store_true", help="it asks for none")
    verb.add_argument("--ca", metavar="FILE", help="the certificate authority of a server of the house, in PEM")
    verb.add_argument("--group", action="store_true", help="people of your groups may use it")
    push.verb("test", test, "Ask a target, with its credentials; 6 when it does not work.").add_argument("target")
    push.verb("forget-host-key", forget, "Let the next test pin the key a host shows then.").add_argument("target")
    verb = push.verb("delete-target", delete, "Forget a target; what lies there stays.")
    verb.add_argument("target", help="id or name")
    verb.add_argument("--yes", action="store_true", help="do not ask")


def start(args: argparse.Namespace) -> int:
    fields = {
        "model_version": lookup.model_version(args.client, args.model),
        "target": lookup.push_target(args.client, args.target),
        "content": "files" if args.files else "package",
    }
    row = args.client.post("pushes/", fields, once=True)
    while args.wait and row["state"] not in OVER:
        time.sleep(LOOK_S)
        row = args.client.get(f"pushes/{row['id']}/")
    if row["state"] == "done":
        done(args, row, f"{row['model']} lies at {row['landed']}.")
        return OK
    if row["state"] in OVER:
        done(args, row, f"Push {row['id']} {row['state']}. {row['sentence']}".strip())
        return JOB_FAILED
    if not args.json:
        print(row["id"])
    done(args, row, f"{row['model']} goes to {row['target_name']}. See: aip push list")
    return OK


def listed(args: argparse.Namespace) -> None:
    rows = args.client.pages("pushes/", limit=args.limit)
    show_list(args, rows, PUSHES, empty="No pushes. aip push start begins one.")


def show(args: argparse.Namespace) -> None:
    show_one(args, args.client.get(f"pushes/{args.id}/"), [(name.capitalize(), key) for name, key in PUSHES])


def stop(args: argparse.Namespace) -> None:
    row = args.client.post(f"pushes/{args.id}/stop/", {})
    done(args, row, f"Push {row['id']} is {row['state']}.")


def again(args: argparse.Namespace) -> None:
    row = args.client.post(f"pushes/{args.id}/again/", {})
    done(args, row, f"{row['model']} goes to {row['target_name']} once more, as push {row['id']}.")


def targets(args: argparse.Namespace) -> None:
    rows = args.client.pages("push-targets/", limit=args.limit)
    show_list(args, rows, TARGETS, empty="No targets. aip push add-target adds one.")


def add_target(args: argparse.Namespace) -> int:
    fields: dict[str, Any] = {
        "name": args.name, "kind": args.kind, "address": args.address,
        "options": pairs(args.option, what="--option"), "secret": _secret(args),
        "visibility": "group" if args.group else "private",
    }  # fmt: skip
    if args.ca:
        fields["ca"] = _read(args.ca)
    row = args.client.post("push-targets/", fields, once=True)
    return _tested(args, row["id"])


def _secret(args: argparse.Namespace) -> str:
    """The secret, never taken from the command line: others see that."""
    if args.no_secret:
        return ""
    if args.secret_file:
        return _read(args.secret_file)
    if args.secret_stdin:
        return sys.stdin.read().rstrip("\n")
    if not sys.stdin.isatty():
        raise ClientError("Give the secret with --secret-stdin or --secret-file, or say --no-secret.", USAGE)
    return getpass.getpass("Secret: ")


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise ClientError(f"{path} cannot be read: {exc}", USAGE) from exc


def test(args: argparse.Namespace) -> int:
    return _tested(args, lookup.push_target(args.client, args.target))


def _tested(args: argparse.Namespace, number: int) -> int:
    row = args.client.post(f"push-targets/{number}/test/", {})
    key = f" Its host key is {row['host_key']}." if row["host_key"] else ""
    words = f"{row['name']} answers and takes the credentials.{key}"
    done(args, row, words if row["works"] else f"{row['name']}: {row['message']}")
    return OK if row["works"] else JOB_FAILED


def forget(args: argparse.Namespace) -> None:
    row = args.client.post(f"push-targets/{lookup.push_target(args.client, args.target)}/forget-host-key/", {})
    done(args, row, f"The host key of {row['name']} is forgotten. aip push test pins the next one.")


def delete(args: argparse.Namespace) -> None:
    route = f"push-targets/{lookup.push_target(args.client, args.target)}/"
    question = f"Forget target {args.target}?"
    versioned.remove(args, route, question=question, removed=f"Target {args.target} is forgotten.")
