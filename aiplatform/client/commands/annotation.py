"""`aip annotation`: projects, and their labels as COCO or as a dataset version."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from aiplatform.client import download, output, waiting
from aiplatform.client.commands import lookup
from aiplatform.client.errors import JOB_FAILED, NOT_FOUND, USAGE, ClientError
from aiplatform.client.options import LIMIT, TO, option
from aiplatform.client.output import columns
from aiplatform.client.verbs import Verb, done

TARGETS = ["coco", "yolo", "yolo-seg", "voc"]
COLUMNS = columns("id, name, about=intro, datasets, owner, made=created_at|ago")
DATASETS = columns("id, name, about=intro, progress, exported=conversion")
PROJECT = option("project", find=lookup.project, help="id or name")
DATASET = option("--dataset", help="id or name, if the project has several")


def _export(args: argparse.Namespace) -> int | None:
    row = _converted(args, make_version=False, target=args.target)
    if row["state"] == "failed":
        return JOB_FAILED
    target = args.to or Path(f"annotation-{row['id']}.{'json' if args.target == 'coco' else 'zip'}")
    download.fetch(args.client, f"{row['route']}{row['id']}/download/", target, quiet=args.json)
    done(args, {"file": str(target)}, f"Written to {target}.")
    return None


def _freeze(args: argparse.Namespace) -> int | None:
    row = _converted(args, make_version=True, new_dataset=args.new_dataset)
    if row["state"] == "failed":
        return JOB_FAILED
    if not args.json:
        print(row["version"])
    done(args, row, f"The labels are dataset version {row['version']}.")
    return None


def _converted(
    args: argparse.Namespace, *, make_version: bool, target: str = "coco", new_dataset: str = ""
) -> dict[str, Any]:
    """The finished export, with its `route`."""
    project = lookup.project(args.client, args.project)
    route = f"annotation/projects/{project}/exports/"
    fields: dict[str, Any] = {"dataset": _find_dataset(args, project), "make_version": make_version}
    if target != "coco":
        fields["target"] = target
    if new_dataset:
        fields["new_dataset"] = new_dataset
    export = args.client.post(route, fields, once=True)
    row = waiting.until_over(args.client, f"{route}{export['id']}/", until={"success"})
    if row["state"] == "failed":
        output.say(output.clean(row.get("detail") or "The export failed."))
    return {**row, "route": route}


def _find_dataset(args: argparse.Namespace, project: int) -> int:
    rows = list(args.client.pages(f"annotation/projects/{project}/datasets/"))
    if args.dataset:
        rows = [row for row in rows if args.dataset in (str(row["id"]), row["name"])]
    if not rows:
        raise ClientError("This project has no such dataset.", NOT_FOUND)
    if len(rows) > 1:
        raise ClientError(f"Specify one with --dataset: {', '.join(row['name'] for row in rows)}.", USAGE)
    return int(rows[0]["id"])


NOUNS = {
    "annotation": (
        Verb("list", "List projects.", (LIMIT,),
             get="annotation/projects/", table=COLUMNS, empty="No annotation projects."),
        Verb("datasets", "List the datasets of a project.", (PROJECT,),
             get="annotation/projects/{project}/datasets/", table=DATASETS, empty="No datasets."),
        Verb("export", "Export the labels of a dataset of a project, by default as COCO.", (
            PROJECT, DATASET,
            option("--as", dest="target", choices=TARGETS, default="coco", help=
                "format; all except coco "
                "are zip files"),
            TO,
        ), run=_export),
        Verb("freeze", "Create an annotated dataset version from the labels; prints its id.", (
            PROJECT, DATASET,
            option("--new-dataset", default="", metavar="NAME", help="in a new dataset instead of the dataset of "
                                                                     "the images"),
        ), run=_freeze),
    ),
}  # fmt: skip
