"""`aip sample`: the sample project."""

from __future__ import annotations

import argparse
import time
from typing import Any

from aiplatform.client import output, waiting
from aiplatform.client.errors import JOB_FAILED, OK, ClientError
from aiplatform.client.options import YES, flag
from aiplatform.client.output import columns
from aiplatform.client.verbs import Verb, confirm, show_one

ROUTE = "sample-project/"
EVERY_S = 1.0


def _describe_steps(steps: Any) -> str:
    return ", ".join(f"{step['label']}: {step['name'] or step['detail'] or step['state']}" for step in steps)


FIELDS = columns(
    "state, message, steps=steps|described, dataset, training, model, service, created_at", described=_describe_steps
)
WAIT = flag("--wait", field="", help="wait until it is done")


def _create(args: argparse.Namespace) -> int:
    row = args.client.post(ROUTE, once=True)
    if args.wait:
        row = _follow(args)
    show_one(args, row, FIELDS)
    return JOB_FAILED if row["state"] == "failed" else OK


def _follow(args: argparse.Namespace) -> Any:
    """Print each step of the creation once, until it is ready or has failed."""
    last_line = ""
    while True:
        row = waiting.read(args.client, ROUTE)
        current = next((step for step in row["steps"] if step["state"] == "current"), None)
        line = f"{current['label']}: {output.clean(current['detail'])}" if current else row["state"]
        if line != last_line:
            output.say(line)
            last_line = line
        if row["state"] != "creating":
            return row
        time.sleep(EVERY_S)


def _remove(args: argparse.Namespace) -> int:
    confirm(args, "Remove the sample project with its dataset, model and endpoint?")
    args.client.call("DELETE", ROUTE)
    while args.wait:
        try:
            row = waiting.read(args.client, ROUTE)
        except ClientError as exc:
            if exc.status != 404:
                raise
            output.say("Removed the sample project.")
            return OK
        if row["state"] == "removal_failed":
            raise ClientError(row["message"])
        time.sleep(EVERY_S)
    output.say("The sample project is being removed.")
    return OK


NOUNS = {
    "sample": (
        Verb("create", "Create a sample dataset, train a model on it and start an endpoint.", (WAIT,), run=_create),
        Verb("show", "Show the sample project and its progress.", get=ROUTE, record=FIELDS),
        Verb("remove", "Remove exactly what was created.", (WAIT, YES), run=_remove),
    ),
}
