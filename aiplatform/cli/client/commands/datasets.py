"""`aip datasets`, `aip upload`: import images, list, delete."""

from __future__ import annotations

import argparse
from pathlib import Path

from aiplatform.cli.client import output, tus, waiting
from aiplatform.cli.client.commands import lookup, versioned
from aiplatform.cli.client.commands.verbs import (
    Noun,
    Nouns,
    Parent,
    command,
    done,
    paging,
    show_list,
)
from aiplatform.cli.client.errors import JOB_FAILED, OK
from aiplatform.cli.client.output import Column

FORMATS = ["auto", "coco", "voc", "labelme", "yolo", "masks", "folders", "images"]
COLUMNS: list[Column] = [
    ("id", "id"),
    ("name", "name"),
    ("version", "latest_version"),
    ("images", "images"),
    ("annotated", "annotated"),
    ("public", "public"),
    ("owner", "owner"),
    ("made", lambda row: output.ago(row.get("created_at"))),
]


def add(nouns: Nouns, parent: Parent) -> None:
    datasets = Noun(nouns, parent, "datasets", "Datasets and their versions.")
    verb = datasets.verb("list", dataset_list, "List datasets you can see.")
    verb.add_argument("--search", help="only names that contain this")
    paging(verb)
    datasets.verb("show", show, "Show one dataset.").add_argument("dataset", help="id or name")
    datasets.verb("versions", versions, "List its versions.").add_argument("dataset", help="id or name")
    verb = datasets.verb("create", create, "Make an empty dataset.")
    verb.add_argument("name")
    verb.add_argument("--description", default="")
    verb.add_argument("--public", action="store_true", help="everybody may read it and train on it")
    verb = datasets.verb("upload", upload, "Upload an archive and import it; a cut upload goes on.")
    _upload_options(verb)
    _upload_options(command(nouns, parent, "upload", upload, "The same as `aip datasets upload`."))
    verb = datasets.verb("import", import_path, "Import a folder the server can read.")
    verb.add_argument("dataset", help="id or name")
    verb.add_argument("path", help="folder on the server, beneath an allowed root")
    _import_options(verb)
    verb = datasets.verb("download", fetch, "Download a version as a zip.")
    verb.add_argument("version", help="its id, NAME, or NAME:VERSION")
    verb.add_argument("--to", type=Path, help="file to write; an unfinished one is continued")
    verb = datasets.verb("delete", delete, "Remove a dataset that nothing uses.")
    verb.add_argument("dataset", help="id or name")
    verb.add_argument("--yes", action="store_true", help="do not ask")


def _upload_options(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("dataset", help="id or name; a new name makes a new dataset")
    verb.add_argument("file", type=Path, help="zip or tar archive")
    verb.add_argument("--no-import", action="store_true", help="only send the bytes; print the upload's id")
    _import_options(verb)


def _import_options(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--format", choices=FORMATS, default="auto")
    verb.add_argument("--dry-run", action="store_true", help="check and report, take nothing")
    verb.add_argument("--wait", action="store_true", help="wait until it is imported")


def dataset_list(args: argparse.Namespace) -> None:
    rows = args.client.pages("datasets/", limit=args.limit, search=args.search)
    show_list(args, rows, COLUMNS, empty="No datasets yet. Bring one in: aip upload NAME FILE")


def show(args: argparse.Namespace) -> None:
    versioned.show(args, f"datasets/{lookup.dataset(args.client, args.dataset)}/", COLUMNS)


def versions(args: argparse.Namespace) -> None:
    columns: list[Column] = [
        ("id", "id"),
        ("version", "number"),
        ("state", "state"),
        ("images", "images"),
        ("annotations", "annotations"),
        ("annotated", "annotated"),
        ("note", "note"),
        ("made", lambda row: output.ago(row.get("created_at"))),
    ]
    dataset = lookup.dataset(args.client, args.dataset)
    show_list(args, args.client.pages(f"datasets/{dataset}/versions/"), columns, empty="No versions yet.")


def create(args: argparse.Namespace) -> None:
    fields = {"name": args.name, "description": args.description, "public": args.public}
    made = args.client.post("datasets/", fields, once=True)
    if args.json:
        output.as_json(made)
    else:
        print(made["id"])


def upload(args: argparse.Namespace) -> int | None:
    """Send the archive, make the dataset where the name is new, import."""
    if args.no_import:
        print(tus.upload(args.client, args.file, quiet=args.json))
        return None
    dataset = lookup.dataset(args.client, args.dataset, make=True)
    sent = tus.upload(args.client, args.file, quiet=args.json)
    return _import(args, dataset, {"upload": sent})


def import_path(args: argparse.Namespace) -> int | None:
    return _import(args, lookup.dataset(args.client, args.dataset, make=True), {"path": args.path})


def _import(args: argparse.Namespace, dataset: int, source: dict[str, str]) -> int | None:
    fields = {**source, "format": args.format, "dry_run": args.dry_run}
    made = args.client.post(f"datasets/{dataset}/import/", fields, once=True)
    if not (args.wait or args.dry_run):
        done(args, made, f"Import {made['id']} of dataset {dataset} has begun.")
        return None
    row = waiting.until_over(args.client, f"datasets/{dataset}/imports/{made['id']}/", until={"checked"})
    if args.json:
        output.as_json(row)
    else:
        for problem in row.get("problems") or []:
            output.say(output.text(problem))
        output.say(output.clean(row.get("sentence") or row.get("state")))
    return OK if row.get("state") in (*waiting.GOOD, "checked") else JOB_FAILED


def fetch(args: argparse.Namespace) -> None:
    version = lookup.version(args.client, args.version)
    versioned.fetch(args, f"versions/{version}/download/", args.version)


def delete(args: argparse.Namespace) -> None:
    question = f"Remove dataset {args.dataset} with all its versions and images?"
    route = f"datasets/{lookup.dataset(args.client, args.dataset)}/"
    versioned.remove(args, route, question=question, removed=f"Dataset {args.dataset} is removed.")
