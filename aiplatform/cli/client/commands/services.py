"""`aip serve`: inference services."""

from __future__ import annotations

import argparse
import mimetypes
from pathlib import Path
from typing import Any

from aiplatform.cli.client import output, waiting
from aiplatform.cli.client.commands import lookup, resources
from aiplatform.cli.client.commands.verbs import Noun, Nouns, Parent, done, paging, show_list, show_one
from aiplatform.cli.client.errors import NOT_FOUND, ClientError
from aiplatform.cli.client.output import Column

COLUMNS: list[Column] = [
    ("id", "id"),
    ("name", "name"),
    ("model", "model"),
    ("state", "state"),
    ("running", lambda row: output.duration(row.get("running_s"))),
    ("url", "url"),
]


def add(nouns: Nouns, parent: Parent) -> None:
    serve = Noun(nouns, parent, "serve", "Inference services.")
    paging(serve.verb("list", service_list, "List services."))
    serve.verb("show", show, "Show one service.").add_argument("service", help="id or name")
    verb = serve.verb("create", create, "Make a service for a model version and start it.")
    verb.add_argument("name", nargs="?", default="", help="the model's when left out")
    verb.add_argument("--model", required=True, help="version id, NAME, or NAME:VERSION")
    resources.options(verb, gpus="cards; 0 serves on the processor")
    verb.add_argument("--wait", action="store_true", help="wait until it answers")
    verb = serve.verb("start", start, "Start a stopped service again.")
    verb.add_argument("service", help="id or name")
    verb.add_argument("--wait", action="store_true", help="wait until it answers")
    verb = serve.verb("update", update, "Answer with another version, without a moment in which it does not answer.")
    verb.add_argument("service", help="id or name")
    verb.add_argument("--model", required=True, help="version id, NAME, or NAME:VERSION")
    serve.verb("stop", stop, "Stop a service; it can be started again.").add_argument("service", help="id or name")
    verb = serve.verb("predict", predict, "Send an image, print the answer as JSON.")
    verb.add_argument("service", help="id or name")
    verb.add_argument("image", type=Path)


def service_list(args: argparse.Namespace) -> None:
    show_list(args, args.client.pages("services/", limit=args.limit), COLUMNS, empty="No services yet.")


def show(args: argparse.Namespace) -> None:
    show_one(args, lookup.service(args.client, args.service), COLUMNS)


def create(args: argparse.Namespace) -> None:
    fields: dict[str, Any] = {
        "name": args.name,
        "model_version": lookup.model_version(args.client, args.model),
    }
    fields |= resources.fields(args)
    row = args.client.post("services/", fields, once=True)
    if not args.json and not args.wait:
        print(row["id"])
    _ready(args, row)


def start(args: argparse.Namespace) -> None:
    row = lookup.service(args.client, args.service)
    _ready(args, args.client.post(f"services/{row['id']}/start/"))


def update(args: argparse.Namespace) -> None:
    row = lookup.service(args.client, args.service)
    fields = {"model_version": lookup.model_version(args.client, args.model)}
    row = args.client.post(f"services/{row['id']}/model/", fields)
    said = "It changes once the other model answers." if row["next_version"] else f"It answers with {row['model']}."
    done(args, row, said)


def _ready(args: argparse.Namespace, row: Any) -> None:
    if not args.wait:
        done(args, row, f"Service {row['id']} is starting.")
        return
    row = waiting.until_over(args.client, f"services/{row['id']}/", until={"ready"})
    if waiting.state_of(row) != "ready":
        raise waiting.ended_early(row)
    show_one(args, row, COLUMNS)


def stop(args: argparse.Namespace) -> None:
    row = lookup.service(args.client, args.service)
    done(args, args.client.post(f"services/{row['id']}/stop/"), f"Asked to stop service {row['id']}.")


def predict(args: argparse.Namespace) -> None:
    if not args.image.is_file():
        raise ClientError(f"{args.image} is not a file.", NOT_FOUND)
    row = lookup.service(args.client, args.service)
    kind = mimetypes.guess_type(args.image.name)[0] or "application/octet-stream"
    answer = args.client.open(
        "POST",
        f"/serve/{row['slug']}/predict",
        data=args.image.read_bytes(),
        headers={"Content-Type": kind},
    )
    try:
        output.as_json(answer.json())
    finally:
        answer.close()
