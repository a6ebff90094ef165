"""`aip annotation`: projects, and their labels as COCO or as a dataset version."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from aiplatform.client import download, output, waiting
from aiplatform.client.commands import lookup
from aiplatform.client.commands.verbs import Noun, Nouns, Parent, done, paging, show_list
from aiplatform.client.errors import JOB_FAILED, NOT_FOUND, USAGE, ClientError
from aiplatform.client.output import Column

TARGETS = ["coco", "yolo", "yolo-seg", "voc"]
COLUMNS: list[Column] = [
    ("id", "id"),
    ("name", "name"),
    ("about", "intro"),
    ("datasets", "datasets"),
    ("owner", "owner"),
    ("made", lambda row: output.ago(row.get("created_at"))),
]
SETS: list[Column] = [
    ("id", "id"),
    ("name", "name"),
    ("about", "intro"),
    ("progress", "progress"),
    ("exported", "conversion"),
]


def add(nouns: Nouns, parent: Parent) -> None:
    annotation = Noun(nouns, parent, "annotation", "Annotation projects.")
    paging(annotation.verb("list", project_list, "List the projects you can see."))
    verb = annotation.verb("datasets", set_list, "List the datasets of a project.")
    verb.add_argument("project", help="id or name")
    verb = annotation.verb("export", export, "Export the labels of a project's dataset, as COCO where nothing is said.")
    _which(verb)
    verb.add_argument("--as", dest="target", choices=TARGETS, default="coco", help="format; all but coco are zips")
    verb.add_argument("--to", type=Path, help="file to write; an unfinished one is continued")
    verb = annotation.verb("freeze", freeze, "Make an annotated dataset version of the labels; prints its id.")
    _which(verb)
    verb.add_argument("--new-dataset", default="", metavar="NAME", help="in a new dataset instead of the images' own")


def _which(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("project", help="id or name")
    verb.add_argument("--dataset", help="id or name, where the project has several")


def project_list(args: argparse.Namespace) -> None:
    rows = args.client.pages("annotation/projects/", limit=args.limit)
    show_list(args, rows, COLUMNS, empty="No annotation projects.")


def set_list(args: argparse.Namespace) -> None:
    project = lookup.project(args.client, args.project)
    show_list(args, args.client.pages(f"annotation/projects/{project}/datasets/"), SETS, empty="No datasets.")


def export(args: argparse.Namespace) -> int | None:
    made = _converted(args, make_version=False, target=args.target)
    if made["state"] == "failed":
        return JOB_FAILED
    target = args.to or Path(f"annotation-{made['id']}.{'json' if args.target == 'coco' else 'zip'}")
    download.fetch(args.client, f"{made['route']}{made['id']}/download/", target, quiet=args.json)
    done(args, {"file": str(target)}, f"Written to {target}.")
    return None


def freeze(args: argparse.Namespace) -> int | None:
    made = _converted(args, make_version=True, new_dataset=args.new_dataset)
    if made["state"] == "failed":
        return JOB_FAILED
    if not args.json:
        print(made["version"])
    done(args, made, f"The labels are dataset version {made['version']}.")
    return None


def _converted(
    args: argparse.Namespace, *, make_version: bool, target: str = "coco", new_dataset: str = ""
) -> dict[str, Any]:
    """The finished export, with the `route` it lives under."""
    project = lookup.project(args.client, args.project)
    route = f"annotation/projects/{project}/exports/"
    fields: dict[str, Any] = {"dataset": _set(args, project), "make_version": make_version}
    if target != "coco":
        fields["target"] = target
    if new_dataset:
        fields["new_dataset"] = new_dataset
    made = args.client.post(route, fields, once=True)
    row = waiting.until_over(args.client, f"{route}{made['id']}/", until={"success"})
    if row["state"] == "failed":
        output.say(output.clean(row.get("detail") or "The export failed."))
    return {**row, "route": route}


def _set(args: argparse.Namespace, project: int) -> int:
    rows = list(args.client.pages(f"annotation/projects/{project}/datasets/"))
    if args.dataset:
        rows = [row for row in rows if args.dataset in (str(row["id"]), row["name"])]
    if not rows:
        raise ClientError("This project has no such dataset.", NOT_FOUND)
    if len(rows) > 1:
        raise ClientError(f"Say which with --dataset: {', '.join(row['name'] for row in rows)}.", USAGE)
    return int(rows[0]["id"])
