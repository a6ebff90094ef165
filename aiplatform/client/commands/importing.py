"""`aip upload`, `aip datasets import|imports|finish|cancel`: data on its way into a dataset."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from aiplatform.client import output, tus, waiting
from aiplatform.client.commands import lookup
from aiplatform.client.commands.verbs import Noun, Nouns, Parent, command, confirm, done, show_list
from aiplatform.client.errors import JOB_FAILED, NOT_FOUND, OK, ClientError
from aiplatform.client.output import Column
from aiplatform.client.packing import packed

FORMATS = ["auto", "coco", "voc", "cvat", "label-studio", "labelme", "yolo", "masks", "folders", "images"]
OPEN = ("waiting", "checking", "checked", "committing")
COLUMNS: list[Column] = [
    ("id", "id"),
    ("state", "state"),
    ("format", "format"),
    ("version", "version"),
    ("found", "sentence"),
    ("begun", lambda row: output.ago(row.get("created_at"))),
]


def add(datasets: Noun, nouns: Nouns, parent: Parent) -> None:
    """Add the verbs of imports to those of datasets."""
    words = "Upload files, folders or an archive and import them; a cut upload goes on."
    _upload_options(datasets.verb("upload", upload, words))
    _upload_options(command(nouns, parent, "upload", upload, "The same as `aip datasets upload`."))
    verb = datasets.verb("import", import_path, "Import a folder the server can read.")
    verb.add_argument("dataset", help="id or name")
    verb.add_argument("path", help="folder on the server, beneath an allowed root")
    _import_options(verb)
    verb = datasets.verb("imports", imports, "List the imports of a dataset, with what was found.")
    verb.add_argument("dataset", help="id or name")
    verb = datasets.verb("finish", finish, "Agree to the report of the open import: it becomes a version.")
    verb.add_argument("dataset", help="id or name")
    verb.add_argument("--allow-unlabelled", action="store_true", help="import images although no annotation is used")
    verb.add_argument("--wait", action="store_true", help="wait until it is imported")
    verb = datasets.verb("cancel", cancel, "Cancel the open import; what was uploaded for it goes.")
    verb.add_argument("dataset", help="id or name")
    verb.add_argument("--yes", action="store_true", help="do not ask")


def _upload_options(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("dataset", help="id or name; a new name makes a new dataset")
    verb.add_argument("file", type=Path, nargs="+", help="archive, images with their annotation files, or folders")
    verb.add_argument("--no-import", action="store_true", help="only send the bytes; print the upload's id")
    _import_options(verb)


def _import_options(verb: argparse.ArgumentParser) -> None:
    reading_options(verb)
    verb.add_argument("--dry-run", action="store_true", help="check and report; nothing of it stays")
    verb.add_argument("--wait", action="store_true", help="wait until it is imported")


def reading_options(verb: argparse.ArgumentParser) -> None:
    """Options that say how data is read."""
    verb.add_argument("--format", choices=FORMATS, default="auto")
    verb.add_argument("--split", type=shares, help="split all images anew: percent of train/val/test, as 80/10/10")
    verb.add_argument("--seed", type=int, default=0, help="with --split: another number deals anew")
    verb.add_argument("--allow-unlabelled", action="store_true", help="import images although no annotation is used")
    verb.add_argument("--encoding", default="", help="of text files that are not UTF-8, such as gb18030 (detected)")
    verb.add_argument(
        "--sizes", choices=("scale", "keep"), default="", help="shapes where all stated sizes differ alike"
    )
    verb.add_argument(
        "--masks",
        action="append",
        default=[],
        type=folder_kind,
        metavar="FOLDER=masks|images",
        help="what the images of a folder are, where the report asks; may be repeated",
    )


def upload(args: argparse.Namespace) -> int | None:
    """Send the data, make the dataset where the name is new, import."""
    single = len(args.file) == 1 and not args.file[0].is_dir()
    source = args.file[0] if single else packed(args.file)
    if args.no_import:
        print(tus.upload(args.client, source, quiet=args.json))
        return None
    return _import(args, lambda: {"upload": tus.upload(args.client, source, quiet=args.json)})


def import_path(args: argparse.Namespace) -> int | None:
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
    fields: dict[str, Any] = {**source, **_reading(args), "dry_run": args.dry_run}
    try:
        made = args.client.post(f"datasets/{dataset}/import/", fields, once=True)
    except ClientError as exc:
        if exc.code == "not_now":
            exc.message += f" See `aip datasets finish {args.dataset}` and `aip datasets cancel {args.dataset}`."
        raise
    args.begun = made["id"]
    if not (args.wait or args.dry_run):
        done(args, made, f"Import {made['id']} of dataset {dataset} has begun.")
        return None
    return _follow(args, dataset, made["id"])


def _reading(args: argparse.Namespace) -> dict[str, Any]:
    """Fields of a request that say how data is read."""
    fields: dict[str, Any] = {"format": args.format, "allow_unlabelled": args.allow_unlabelled}
    if args.encoding:
        fields["encoding"] = args.encoding
    if args.sizes:
        fields["sizes"] = args.sizes
    if args.masks:
        fields["mask_folders"] = dict(args.masks)
    if args.split:
        fields["split"] = {**args.split, "seed": args.seed}
    return fields


def create_from(args: argparse.Namespace) -> int | None:
    """Create a dataset of files in the home folder, or of a job's outputs."""
    fields = {"name": args.name, **_reading(args)}
    if args.from_job is not None:
        made = args.client.post("training/outputs/", {**fields, "job": args.from_job, "folder": args.folder}, once=True)
    else:
        shared = {"shared": args.shared} if args.shared else {}
        made = args.client.post("files/dataset/", {**fields, **shared, "path": args.from_files}, once=True)
    if args.wait:
        return _follow(args, made["dataset"], made["id"])
    done(args, made, f"Import {made['id']} of dataset {made['dataset']} has begun.")
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


def imports(args: argparse.Namespace) -> None:
    dataset = lookup.dataset(args.client, args.dataset)
    show_list(args, args.client.pages(f"datasets/{dataset}/imports/"), COLUMNS, empty="Nothing was imported yet.")


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


def finish(args: argparse.Namespace) -> int | None:
    dataset, row = _open_import(args)
    agreed = args.client.post(
        f"datasets/{dataset}/imports/{row['id']}/commit/", {"allow_unlabelled": args.allow_unlabelled}
    )
    if not args.wait:
        done(args, agreed, f"Import {row['id']} of dataset {args.dataset} becomes a version.")
        return None
    return _follow(args, dataset, row["id"])


def cancel(args: argparse.Namespace) -> None:
    dataset, row = _open_import(args)
    confirm(args, f"Cancel import {row['id']} of dataset {args.dataset}? What was uploaded for it goes.")
    over = args.client.post(f"datasets/{dataset}/imports/{row['id']}/cancel/")
    done(args, over, f"Import {row['id']} is cancelled.")


def folder_kind(text: str) -> tuple[str, str]:
    """ "train/labels=masks" as folder and kind.

    Raises:
        argparse.ArgumentTypeError: it is neither masks nor images.
    """
    folder, sign, kind = text.rpartition("=")
    if not sign or kind not in {"masks", "images"}:
        raise argparse.ArgumentTypeError("write a folder and what its images are, as train/labels=masks")
    return folder.strip("/") or ".", kind


def shares(text: str) -> dict[str, int]:
    """ "80/10/10" as the API takes it.

    Raises:
        argparse.ArgumentTypeError: it is not three whole numbers.
    """
    parts = text.split("/")
    if len(parts) != 3 or not all(part.strip().isdecimal() for part in parts):
        raise argparse.ArgumentTypeError("write three whole numbers, as 80/10/10")
    return dict(zip(("train", "val", "test"), map(int, parts), strict=True))
