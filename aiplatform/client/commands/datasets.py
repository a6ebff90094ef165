"""`aip datasets`: list, show, download, delete; imports are in `importing`."""

from __future__ import annotations

import argparse
from pathlib import Path

from aiplatform.client import output, waiting
from aiplatform.client.commands import importing, lookup, versioned
from aiplatform.client.commands.importing import shares
from aiplatform.client.commands.verbs import Noun, Nouns, Parent, done, paging, show_list
from aiplatform.client.errors import JOB_FAILED, OK
from aiplatform.client.output import Column

FORMS = ["zip", "tar", "yolo", "yolo-seg", "voc"]
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
    verb = datasets.verb("create", create, "Create a dataset: empty, or of files that are on the platform.")
    verb.add_argument("name")
    source = verb.add_mutually_exclusive_group()
    source.add_argument("--from-files", metavar="PATH", help="folder, archive or image in your home folder")
    source.add_argument("--from-job", type=int, metavar="ID", help="outputs of a job that has ended")
    verb.add_argument("--shared", type=int, metavar="ID", help="with --from-files: in this shared folder")
    verb.add_argument("--folder", default="", help="with --from-job: only this folder of the outputs")
    importing.reading_options(verb)
    verb.add_argument("--wait", action="store_true", help="wait until it is imported")
    verb.add_argument("--description", default="")
    verb.add_argument("--public", action="store_true", help="everybody may read it and train on it")
    importing.add(datasets, nouns, parent)
    verb = datasets.verb("download", fetch, "Download a version as a zip.")
    verb.add_argument("version", help="its id, NAME, or NAME:VERSION")
    verb.add_argument("--to", type=Path, help="file to write; an unfinished one is continued")
    verb.add_argument("--as", dest="form", choices=FORMS, default="zip", help="format; all but tar are zips")
    verb = datasets.verb("split", split, "Split a version anew, as the next version of its dataset.")
    verb.add_argument("version", help="its id, NAME, or NAME:VERSION")
    verb.add_argument("--shares", type=shares, default="80/10/10", help="percent of train/val/test (80/10/10)")
    verb.add_argument("--seed", type=int, default=0, help="another number deals anew")
    verb.add_argument("--group", choices=["folder", "prefix"], default="", help="keep images of a scene together")
    verb.add_argument("--no-stratify", action="store_true", help="do not spread classes evenly")
    verb.add_argument("--dry-run", action="store_true", help="only show what each split would get")
    verb.add_argument("--wait", action="store_true", help="wait until the version is there")
    verb = datasets.verb("delete", delete, "Remove a dataset that nothing uses.")
    verb.add_argument("dataset", help="id or name")
    verb.add_argument("--yes", action="store_true", help="do not ask")


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


def create(args: argparse.Namespace) -> int | None:
    if args.from_files is not None or args.from_job is not None:
        return importing.create_from(args)
    fields = {"name": args.name, "description": args.description, "public": args.public}
    made = args.client.post("datasets/", fields, once=True)
    if args.json:
        output.as_json(made)
    else:
        print(made["id"])
    return None


def fetch(args: argparse.Namespace) -> None:
    version = lookup.version(args.client, args.version)
    ending = {"zip": ".zip", "tar": ".tar"}.get(args.form, f"-{args.form}.zip")
    versioned.fetch(args, f"versions/{version}/download/", args.version, query={"as": args.form}, ending=ending)


def split(args: argparse.Namespace) -> int | None:
    """Show what the shares would give, or make the version."""
    version = lookup.version(args.client, args.version)
    fields = {**args.shares, "seed": args.seed, "group": args.group, "stratify": not args.no_stratify}
    if args.dry_run:
        found = args.client.post(f"versions/{version}/split/", {**fields, "dry_run": True})
        if args.json:
            output.as_json(found)
        else:
            for name, count in found["images"].items():
                print(f"{name}\t{count}")
        return None
    made = args.client.post(f"versions/{version}/split/", fields, once=True)
    if not args.wait:
        done(args, made, f"Version {args.version} is being split: import {made['id']} of dataset {made['dataset']}.")
        return None
    row = waiting.until_over(args.client, f"datasets/{made['dataset']}/imports/{made['id']}/", until=set())
    done(
        args, row, f"Version {row['version']} has the new splits." if row["version"] else output.clean(row["sentence"])
    )
    return OK if row.get("state") in waiting.GOOD else JOB_FAILED


def delete(args: argparse.Namespace) -> None:
    question = f"Remove dataset {args.dataset} with all its versions and images?"
    route = f"datasets/{lookup.dataset(args.client, args.dataset)}/"
    versioned.remove(args, route, question=question, removed=f"Dataset {args.dataset} is removed.")
