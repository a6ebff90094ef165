"""`aip datasets`: list, show, download, delete; imports are in `importing`."""

from __future__ import annotations

import argparse

from aiplatform.client import output, waiting
from aiplatform.client.commands import importing, lookup
from aiplatform.client.commands.importing import DATASET, shares
from aiplatform.client.errors import JOB_FAILED, OK
from aiplatform.client.options import LIMIT, TO, YES, either, fields, flag, option
from aiplatform.client.output import columns, titled
from aiplatform.client.verbs import Verb, done

FORMS = ["zip", "tar", "yolo", "yolo-seg", "voc"]
COLUMNS = columns("id, name, version=latest_version, images, annotated, public, owner, made=created_at|ago")
VERSIONS = columns("id, version=number, state, images, annotations, annotated, note, made=created_at|ago")
VERSION = option("version", field="", help="id, NAME, or NAME:VERSION")
SPLIT = (
    option("--shares", type=shares, default="80/10/10", field="*", help="percent of train/val/test (80/10/10)"),
    option("--seed", type=int, default=0, help="seed of the split"),
    option("--group", choices=["folder", "prefix"], default="", help="keep images of a scene together"),
    flag("--no-stratify", field="stratify", convert=lambda no: not no, help="do not stratify by class"),
)


def _create(args: argparse.Namespace) -> int | None:
    if args.from_files is not None or args.from_job is not None:
        return importing.create_from(args)
    body = {"name": args.name, "description": args.description, "public": args.public}
    row = args.client.post("datasets/", body, once=True)
    output.as_json(row) if args.json else print(row["id"])
    return None


def _file_name(args: argparse.Namespace) -> str:
    ending = {"zip": ".zip", "tar": ".tar"}.get(args.form, f"-{args.form}.zip")
    return f"{args.version}{ending}"


def _split(args: argparse.Namespace) -> int | None:
    """Print the result of a split, or create the version."""
    route = f"versions/{lookup.version(args.client, args.version)}/split/"
    if args.dry_run:
        splits = args.client.post(route, {**fields(args, SPLIT), "dry_run": True})
        if args.json:
            output.as_json(splits)
        else:
            for name, count in splits["images"].items():
                print(f"{name}\t{count}")
        return None
    job = args.client.post(route, fields(args, SPLIT), once=True)
    if not args.wait:
        done(args, job, f"Version {args.version} is being split: import {job['id']} of dataset {job['dataset']}.")
        return None
    row = waiting.until_over(args.client, f"datasets/{job['dataset']}/imports/{job['id']}/", until=set())
    sentence = f"Version {row['version']} has the new splits." if row["version"] else output.clean(row["sentence"])
    done(args, row, sentence)
    return OK if row.get("state") in waiting.GOOD else JOB_FAILED


NOUNS = {
    "datasets": (
        Verb("list", "List datasets.", (option("--search", help="only names that contain this text"), LIMIT),
             get="datasets/", table=COLUMNS, empty="No datasets yet. Upload one: aip upload NAME FILE"),
        Verb("show", "Show one dataset.", (DATASET,),
             get="datasets/{dataset}/", record=[*titled(COLUMNS), ("Description", "description")]),
        Verb("versions", "List the versions of a dataset.", (DATASET,),
             get="datasets/{dataset}/versions/", table=VERSIONS, empty="No versions yet."),
        Verb("create", "Create a dataset: empty, or from files on the platform.", (
            option("name"),
            either(option("--from-files", metavar="PATH", help="folder, archive or image in your home folder"),
                   option("--from-job", type=int, metavar="ID", help="outputs of a finished job")),
            option("--shared", type=int, metavar="ID", help="with --from-files: in this shared folder"),
            option("--folder", default="", help="with --from-job: only this folder of the outputs"),
            *importing.READING,
            importing.WAIT,
            option("--description", default=""),
            flag("--public", help="make it visible and usable for all users"),
        ), run=_create),
        *importing.VERBS,
        Verb("download", "Download a version as a zip file.", (
            option("version", find=lookup.version, help="id, NAME, or NAME:VERSION"),
            TO,
            option("--as", dest="form", field="as", choices=FORMS, default="zip",
                   help="format; all except tar are zip files"),
        ), get="versions/{version}/download/", file=_file_name),
        Verb("split", "Split a version again, as the next version of its dataset.", (
            VERSION, *SPLIT,
            flag("--dry-run", help="only show the counts per split"),
            flag("--wait", help="wait until the version is created"),
        ), run=_split),
        Verb("delete-version", "Delete an unused version.",
             (option("version", find=lookup.any_version, help="id, NAME, or NAME:VERSION"), YES),
             delete="versions/{version}/", confirm="Delete version {args.version}?",
             done="Deleted version {args.version}."),
        Verb("delete", "Delete an unused dataset.", (DATASET, YES), delete="datasets/{dataset}/",
             confirm="Delete dataset {args.dataset} with all its versions and images?",
             done="Deleted dataset {args.dataset}."),
    ),
    "upload": importing.UPLOAD,
}  # fmt: skip
