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
    "id, name, kind, address, works=works|works, visible to=visibility, owner, message",
    works={None: "not tested", True: "yes", False: "no"}.get,
)
PUSHES = columns(
    "id, model, target=target_name, state, sent=|sent, created=created_at|ago, location=landed, message=sentence",
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
        done(args, row, f"{row['model']} is stored at {row['landed']}.")
        return OK
    if row["state"] in FINAL:
        done(args, row, f"Export {row['id']} {row['state']}. {row['sentence']}".strip())
        return JOB_FAILED
    if not args.json:
        print(row["id"])
    done(args, row, f"{row['model']} is exported to {row['target_name']}. See: aip push list")
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
        raise ClientError("Specify the secret with --secret-stdin or --secret-file, or use --no-secret.", USAGE)
    return getpass.getpass("Secret: ")


def _read_file(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise ClientError(f"{path} cannot be read: {exc}", USAGE) from exc


def _describe_test(args: argparse.Namespace, row: Any) -> str:
    key = f" Its host key is {row['host_key']}." if row["host_key"] else ""
    works = f"{row['name']} responds and accepts the credentials.{key}"
    return works if row["works"] else f"{row['name']}: {row['message']}"


TEST = Verb("test", "Test a target with its credentials; exit code 6 on failure.", (TARGET,),
            post="push-targets/{target}/test/", done=_describe_test,
            exit_code=lambda row: OK if row["works"] else JOB_FAILED)  # fmt: skip

NOUNS = {
    "push": (
        Verb("start", "Export a version.", (
            option("model", help=registry.VERSION),
            option("target", help="id or name"),
            flag("--files", help="only the files of the version instead of the standalone package"),
            flag("--wait", help="wait until it is done; exit code 6 on failure"),
        ), run=_start),
        Verb("list", "List your exports.", (LIMIT,),
             get="pushes/", table=PUSHES, empty="No exports. Start one: aip push start"),
        Verb("show", "Show an export.", (ID,), get="pushes/{id}/", record=titled(PUSHES)),
        Verb("stop", "Stop an export.", (ID,), post="pushes/{id}/stop/", done="Export {row[id]} is {row[state]}."),
        Verb("again", "Retry a failed or stopped export.", (ID,), post="pushes/{id}/again/",
             done="{row[model]} is exported to {row[target_name]} again, as export {row[id]}."),
        Verb("targets", "List export targets.", (LIMIT,),
             get="push-targets/", table=TARGETS, empty="No targets. Add one: aip push add-target"),
        Verb("add-target", "Add an export target and test it; prompts for the secret.", (
            option("name"),
            option("kind", help="put, s3, ssh, oci or fd"),
            option("address"),
            repeated("-p", "--option", metavar="NAME=VALUE", help="option required by the kind of target"),
            flag("--secret-stdin", help="read the secret from standard input"),
            option("--secret-file", metavar="FILE", help="read the secret from a file, such as a private key"),
            flag("--no-secret", help="the target requires no secret"),
            option("--ca", metavar="FILE", help="certificate authority of an internal server, in PEM"),
            flag("--group", help="share with your groups"),
        ), run=_add_target),
        TEST,
        Verb("forget-host-key", "Remove the pinned host key, so that the next test pins a new one.", (TARGET,),
             post="push-targets/{target}/forget-host-key/",
             done="The host key of {row[name]} is removed. aip push test pins the next one."),
        Verb("delete-target", "Delete an export target; exported files are kept.", (TARGET, YES),
             delete="push-targets/{target}/", confirm="Delete target {args.target}?",
             done="Deleted target {args.target}."),
    ),
}  # fmt: skip
