"""`aip upload`, `aip datasets import|imports|finish|cancel`: data on its way into a dataset."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from aiplatform.client import output, tus, waiting
from aiplatform.client.commands import lookup
from aiplatform.client.errors import JOB_FAILED, NOT_FOUND, OK, ClientError
from aiplatform.client.options import YES, fields, flag, option, repeated
from aiplatform.client.output import columns
from aiplatform.client.packing import packed
from aiplatform.client.verbs import Verb, confirm, done

FORMATS = ["auto", "coco", "voc", "cvat", "label-studio", "labelme", "yolo", "masks", "folders", "images"]
OPEN = ("waiting", "checking", "checked", "committing")
COLUMNS = columns("id, state, format, version, found=sentence, begun=created_at|ago")
DATASET = option("dataset", find=lookup.dataset, help="id or name")


def _upload(args: argparse.Namespace) -> int | None:
    """Send the data, make the dataset where the name is new, import."""
    single = len(args.file) == 1 and not args.file[0].is_dir()
    source = args.file[0] if single else packed(args.file)
    if args.no_import:
        print(tus.upload(args.client, source, quiet=args.json))
        return None
    return _import(args, lambda: {"upload": tus.upload(args.client, source, quiet=args.json)})


def _import_path(args: argparse.Namespace) -> int | None:
    return _import(args, lambda: {"path": args.path})


def _import(args: argparse.Namespace, source: Any) -> int | None:
    dataset, new = lookup.dataset_or_new(args.client, args.dataset)
    if not args.dry_run:
        return _run(args, dataset, source())
    try:
        return _run(args, dataset, source())
    finally:
        _leave_nothing(args, dataset, new=new)


def _run(args: argparse.Namespace, dataset: int, source: dict[str, str]) -> int | None:
    body: dict[str, Any] = {**source, **_reading(args), "dry_run": args.dry_run}
    try:
        row = args.client.post(f"datasets/{dataset}/import/", body, once=True)
    except ClientError as exc:
        if exc.code == "not_now":
            exc.message += f" See `aip datasets finish {args.dataset}` and `aip datasets cancel {args.dataset}`."
        raise
    args.begun = row["id"]
    if not (args.wait or args.dry_run):
        done(args, row, f"Import {row['id']} of dataset {dataset} has started.")
        return None
    return _follow(args, dataset, row["id"])


def _reading(args: argparse.Namespace) -> dict[str, Any]:
    """Fields of a request for the options of READING."""
    return fields(args, READING) | ({"split": {**args.split, "seed": args.seed}} if args.split else {})


def create_from(args: argparse.Namespace) -> int | None:
    """Create a dataset of files in the home folder, or of a job's outputs."""
    body = {"name": args.name, **_reading(args)}
    if args.from_job is not None:
        row = args.client.post("training/outputs/", {**body, "job": args.from_job, "folder": args.folder}, once=True)
    else:
        shared = {"shared": args.shared} if args.shared else {}
        row = args.client.post("files/dataset/", {**body, **shared, "path": args.from_files}, once=True)
    if args.wait:
        return _follow(args, row["dataset"], row["id"])
    done(args, row, f"Import {row['id']} of dataset {row['dataset']} has started.")
    return None


def _follow(args: argparse.Namespace, dataset: int, number: int) -> int:
    """Wait, print the summary and the problems, and return the exit code.

    It is 0 for a version, and for a dry run whose report would become one; a report that forbids the import or waits
    for a decision is a failure.
    """
    row = waiting.until_over(args.client, f"datasets/{dataset}/imports/{number}/", until={"checked"})
    summary = row.get("summary") or {}
    if args.json:
        output.as_json(row)
    else:
        for problem in row.get("problems") or []:
            output.say(output.text(problem))
    if row.get("state") in waiting.GOOD:
        return OK
    fatal = (row.get("report") or {}).get("fatal")
    unlabelled = summary.get("unlabelled") and not args.allow_unlabelled
    if row.get("state") == "checked" and not fatal and not unlabelled and getattr(args, "dry_run", False):
        return OK
    if unlabelled and not args.json:
        output.say("Add --allow-unlabelled to import the images without annotations.")
    if "mask_folders" in summary.get("undecided", ()) and not args.json:
        output.say("Add --masks FOLDER=masks or FOLDER=images, or run `aip datasets finish` to import them as images.")
    if "sizes" in summary.get("undecided", ()) and not args.json:
        output.say("Add --sizes scale or --sizes keep, or run `aip datasets finish` to keep the shapes as stated.")
    return JOB_FAILED


def _leave_nothing(args: argparse.Namespace, dataset: int, *, new: bool) -> None:
    """Undo a dry run: the import it began, with its upload, and the dataset it made."""
    if number := getattr(args, "begun", None):
        try:
            args.client.post(f"datasets/{dataset}/imports/{number}/cancel/")
        except ClientError as exc:
            if exc.code != "not_now":  # it failed, and left nothing to cancel
                raise
    if new:
        args.client.delete(f"datasets/{dataset}/")


def _open_import(args: argparse.Namespace) -> tuple[int, Any]:
    """The dataset and its import that is not over.

    Raises:
        ClientError: there is none.
    """
    dataset = lookup.dataset(args.client, args.dataset)
    rows = args.client.pages(f"datasets/{dataset}/imports/")
    row = next((row for row in rows if row.get("state") in OPEN), None)
    if row is None:
        raise ClientError(f"Dataset {args.dataset} has no open import.", NOT_FOUND)
    return dataset, row


def _finish(args: argparse.Namespace) -> int | None:
    dataset, row = _open_import(args)
    commit = args.client.post(
        f"datasets/{dataset}/imports/{row['id']}/commit/", {"allow_unlabelled": args.allow_unlabelled}
    )
    if not args.wait:
        done(args, commit, f"Import {row['id']} of dataset {args.dataset} becomes a version.")
        return None
    return _follow(args, dataset, row["id"])


def _cancel(args: argparse.Namespace) -> None:
    dataset, row = _open_import(args)
    confirm(args, f"Cancel import {row['id']} of dataset {args.dataset}? Its upload is deleted.")
    over = args.client.post(f"datasets/{dataset}/imports/{row['id']}/cancel/")
    done(args, over, f"Import {row['id']} is cancelled.")


def folder_kind(text: str) -> tuple[str, str]:
    """ "train/labels=masks" as folder and kind.

    Raises:
        argparse.ArgumentTypeError: it is neither masks nor images.
    """
    folder, sign, kind = text.rpartition("=")
    if not sign or kind not in {"masks", "images"}:
        raise argparse.ArgumentTypeError("write a folder and the kind of its images, such as train/labels=masks")
    return folder.strip("/") or ".", kind


def shares(text: str) -> dict[str, int]:
    """ "80/10/10" as the API takes it.

    Raises:
        argparse.ArgumentTypeError: it is not three whole numbers.
    """
    parts = text.split("/")
    if len(parts) != 3 or not all(part.strip().isdecimal() for part in parts):
        raise argparse.ArgumentTypeError("write three integers, such as 80/10/10")
    return dict(zip(("train", "val", "test"), map(int, parts)))


WAIT = flag("--wait", field="", help="wait until it is imported")
UNLABELLED = flag("--allow-unlabelled", help="import images although no annotation is used")
#: How data is read.
READING = (
    option("--format", choices=FORMATS, default="auto"),
    option("--split", type=shares, help="split all images again: percent of train/val/test, such as 80/10/10"),
    option("--seed", type=int, default=0, field="", help="with --split: seed"),
    UNLABELLED,
    option("--encoding", help="of text files that are not UTF-8, such as gb18030 (detected)"),
    option("--sizes", choices=("scale", "keep"), help="shapes if all stated sizes differ by the same factor"),
    repeated("--masks", type=folder_kind, metavar="FOLDER=masks|images", field="mask_folders", convert=dict,
             help="kind of the images of a folder, if the report asks; can be repeated"),
)  # fmt: skip
IMPORT = (*READING, flag("--dry-run", help="check and report only; nothing is kept"), WAIT)
UPLOAD = Verb("upload", "Upload files, folders or an archive and import them; interrupted uploads resume.", (
    option("dataset", help="id or name; a new name creates a new dataset"),
    option("file", type=Path, nargs="+", help="archive, images with their annotation files, or folders"),
    flag("--no-import", help="upload only; print the id of the upload"),
    *IMPORT,
), run=_upload)  # fmt: skip
VERBS = (
    UPLOAD,
    Verb("import", "Import a folder of the server.", (
        option("dataset", help="id or name"),
        option("path", help="folder on the server, below an allowed root"),
        *IMPORT,
    ), run=_import_path),
    Verb("imports", "List the imports of a dataset with their reports.", (DATASET,),
         get="datasets/{dataset}/imports/", table=COLUMNS, empty="No imports yet."),
    Verb("finish", "Confirm the report of the open import: it becomes a version.",
         (DATASET, UNLABELLED, WAIT), run=_finish),
    Verb("cancel", "Cancel the open import; its upload is deleted.", (DATASET, YES), run=_cancel),
)  # fmt: skip
