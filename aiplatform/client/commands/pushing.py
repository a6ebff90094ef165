"""`aip push`: push model versions to targets of users."""

from __future__ import annotations

import argparse
import getpass
import sys
import time
from pathlib import Path
from typing import Any

from aiplatform.client.commands import lookup, registry
from aiplatform.client.errors import JOB_FAILED, OK, USAGE, ClientError
from aiplatform.client.options import ID, LIMIT, YES, flag, option, pairs, repeated
from aiplatform.client.output import columns, titled
from aiplatform.client.verbs import Verb, done

TARGETS = columns(
    "id, name, kind, address, works=works|works, usable by=visibility, owner, message",
    works={None: "not tested", True: "yes", False: "no"}.get,
)
PUSHES = columns(
    "id, model, target=target_name, state, sent=|sent, made=created_at|ago, lies at=landed, message=sentence",
    sent=lambda row: f"{100 * row['sent_bytes'] // max(row['size_bytes'], 1)} %",
)
POLL_S = 1.0
FINAL = ("done", "failed", "stopped")
TARGET = option("target", find=lookup.push_target, help="id or name")


def _start(args: argparse.Namespace) -> int:
    fields = {
        "model_version": lookup.model_version(args.client, args.model),
        "target": lookup.push_target(args.client, args.target),
        "content": "files" if args.files else "package",
    }
    row = args.client.post("pushes/", fields, once=True)
    while args.wait and row["state"] not in FINAL:
        time.sleep(POLL_S)
        row = args.client.get(f"pushes/{row['id']}/")
    if row["state"] == "done":
        done(args, row, f"{row['model']} lies at {row['landed']}.")
        return OK
    if row["state"] in FINAL:
        done(args, row, f"Push {row['id']} {row['state']}. {row['sentence']}".strip())
        return JOB_FAILED
    if not args.json:
        print(row["id"])
    done(args, row, f"{row['model']} goes to {row['target_name']}. See: aip push list")
    return OK


def _add_target(args: argparse.Namespace) -> int:
    fields: dict[str, Any] = {
        "name": args.name, "kind": args.kind, "address": args.address,
        "options": pairs(args.option, option="--option"), "secret": _read_secret(args),
        "visibility": "group" if args.group else "private",
    }  # fmt: skip
    if args.ca:
        fields["ca"] = _read_file(args.ca)
    row = args.client.post("push-targets/", fields, once=True)
    return TEST.report(args, args.client.post(f"push-targets/{row['id']}/test/", {})) or OK


def _read_secret(args: argparse.Namespace) -> str:
    """The secret, never an argument of the command line: other users of the computer see that."""
    if args.no_secret:
        return ""
    if args.secret_file:
        return _read_file(args.secret_file)
    if args.secret_stdin:
        return sys.stdin.read().rstrip("\n")
    if not sys.stdin.isatty():
        raise ClientError("Give the secret with --secret-stdin or --secret-file, or say --no-secret.", USAGE)
    return getpass.getpass("Secret: ")


def _read_file(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise ClientError(f"{path} cannot be read: {exc}", USAGE) from exc


def _describe_test(args: argparse.Namespace, row: Any) -> str:
    key = f" Its host key is {row['host_key']}." if row["host_key"] else ""
    works = f"{row['name']} answers and takes the credentials.{key}"
    return works if row["works"] else f"{row['name']}: {row['message']}"


TEST = Verb("test", "Ask a target, with its credentials; 6 when it does not work.", (TARGET,),
            post="push-targets/{target}/test/", done=_describe_test,
            exit_code=lambda row: OK if row["works"] else JOB_FAILED)  # fmt: skip

NOUNS = {
    "push": (
        Verb("start", "Push a version.", (
            option("model", help=registry.VERSION),
            option("target", help="id or name"),
            flag("--files", help="the version's own files instead of the package that runs"),
            flag("--wait", help="until it is there; 6 where it fails"),
        ), run=_start),
        Verb("list", "List your pushes.", (LIMIT,),
             get="pushes/", table=PUSHES, empty="No pushes. aip push start begins one."),
        Verb("show", "Show a push.", (ID,), get="pushes/{id}/", record=titled(PUSHES)),
        Verb("stop", "End a push.", (ID,), post="pushes/{id}/stop/", done="Push {row[id]} is {row[state]}."),
        Verb("again", "Push once more what failed or was stopped.", (ID,), post="pushes/{id}/again/",
             done="{row[model]} goes to {row[target_name]} once more, as push {row[id]}."),
        Verb("targets", "List targets.", (LIMIT,),
             get="push-targets/", table=TARGETS, empty="No targets. aip push add-target adds one."),
        Verb("add-target", "Keep a target, and test it; the secret is asked for.", (
            option("name"),
            option("kind", help="put, s3, ssh, oci or fd"),
            option("address"),
            repeated("-p", "--option", metavar="NAME=VALUE", help="what the kind asks for"),
            flag("--secret-stdin", help="read the secret from standard input"),
            option("--secret-file", metavar="FILE", help="read the secret from a file, as a private key"),
            flag("--no-secret", help="it asks for none"),
            option("--ca", metavar="FILE", help="the certificate authority of a server of the house, in PEM"),
            flag("--group", help="people of your groups may use it"),
        ), run=_add_target),
        TEST,
        Verb("forget-host-key", "Let the next test pin the key a host shows then.", (TARGET,),
             post="push-targets/{target}/forget-host-key/",
             done="The host key of {row[name]} is forgotten. aip push test pins the next one."),
        Verb("delete-target", "Forget a target; what lies there stays.", (TARGET, YES),
             delete="push-targets/{target}/", confirm="Forget target {args.target}?",
             done="Target {args.target} is forgotten."),
    ),
}  # fmt: skip
