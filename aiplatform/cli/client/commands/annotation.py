"""`aip annotation`: projects, and their labels as COCO or as a dataset version."""

from __future__ import annotations

import argparse
from pathlib import Path

from aiplatform.cli.client import download, output, waiting
from aiplatform.cli.client.commands import lookup
from aiplatform.cli.client.commands.verbs import Noun, Nouns, Parent, done, paging, show_list
from aiplatform.cli.client.errors import JOB_FAILED
from aiplatform.cli.client.output import Column

COLUMNS: list[Column] = [
    ("id", "id"),
    ("name", "name"),
    ("dataset", "dataset"),
    ("images", "images"),
    ("done", "done"),
    ("made", lambda row: output.ago(row.get("created_at"))),
]


def add(nouns: Nouns, parent: Parent) -> None:
    annotation = Noun(nouns, parent, "annotation", "Annotation projects.")
    paging(annotation.verb("list", project_list, "List the projects you can see."))
    verb = annotation.verb("export", export, "Export the labels of a project as COCO.")
    verb.add_argument("project", help="id or name")
    verb.add_argument("--to", type=Path, help="file to write")
    verb = annotation.verb("freeze", freeze, "Make an annotated dataset version of a project.")
    verb.add_argument("project", help="id or name")
    verb.add_argument("--note", default="")


def project_list(args: argparse.Namespace) -> None:
    rows = args.client.pages("annotation/projects/", limit=args.limit)
    show_list(args, rows, COLUMNS, empty="No annotation projects.")


def export(args: argparse.Namespace) -> int | None:
    base = f"annotation/projects/{lookup.project(args.client, args.project)}/exports/"
    made = args.client.post(base, {}, once=True)
    row = waiting.until_over(args.client, f"{base}{made['id']}/", until={"success"})
    if row["state"] not in ("success", *waiting.GOOD):
        output.say(output.clean(row.get("error") or "The export failed."))
        return JOB_FAILED
    target = args.to or Path(f"annotation-{made['id']}.json")
    download.fetch(args.client, f"{base}{made['id']}/download/", target, quiet=args.json)
    done(args, {"file": str(target)}, f"Written to {target}.")
    return None


def freeze(args: argparse.Namespace) -> None:
    project = lookup.project(args.client, args.project)
    made = args.client.post(f"annotation/projects/{project}/freeze/", {"note": args.note}, once=True)
    done(args, made, f"The labels are frozen as dataset version {made['id']}.")
