"""`aip models try`, `aip models use`: run a model in every way that is possible, and keep the one that is right."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from aiplatform.client import tus, waiting
from aiplatform.client.commands import lookup, model_imports
from aiplatform.client.commands.verbs import Noun, done, show_list
from aiplatform.client.errors import JOB_FAILED, OK, USAGE, ClientError
from aiplatform.client.output import Column

COLUMNS: list[Column] = [
    ("", "rank"),
    ("score", lambda row: f"{100 * row['score']:.0f} %"),
    ("layout", "title"),
    ("how", lambda row: ", ".join(row["about"])),
    ("found", lambda row: _found(row["answers"])),
]


def _found(answers: list[list[dict[str, Any]]]) -> str:
    """The best answer to each picture, as "cat 0.91 | nothing"."""
    best = [f"{one[0].get('name', '')} {one[0].get('score', 0):.2f}" if one else "nothing" for one in answers]
    return " | ".join(best)


def add(models: Noun) -> None:
    verb = models.verb("try", begin, "Run an ONNX model on pictures in every way that is possible, best first.")
    verb.add_argument("file", type=Path, help=".onnx, or an archive with one")
    verb.add_argument("--picture", type=Path, action="append", default=[], help="to try it on; up to six of them")
    verb.add_argument("--dataset", help="dataset version whose pictures with most on them are taken: id, NAME, NAME:2")
    verb.add_argument("--name", help="of the model that is made of it; that of the file when left out")
    model_imports.declaring(verb)
    verb.add_argument("--no-wait", action="store_true", help="only queue it")
    verb = models.verb("ways", ways, "Show what came of a trial.")
    verb.add_argument("trial", type=int, help="its number, as try says it")
    verb = models.verb("use", use, "Make a version of one of the ways of a trial.")
    verb.add_argument("trial", type=int, help="its number, as try says it")
    verb.add_argument("rank", type=int, help="of the way; 1 is the best")
    verb.add_argument("--name", help="of the model, in place of the one that was given to try")


def begin(args: argparse.Namespace) -> int | None:
    """Send model and pictures, wait for the job, and show the ways."""
    if not args.picture and not args.dataset:
        raise ClientError("Name what to try it on: --picture FILE, or --dataset NAME.", USAGE)
    fields = model_imports.declared(args)
    model = model_imports.own(args.client, args.name or args.file.stem)
    fields |= {"name": args.name or args.file.stem} if model is None else {"model": model}
    if args.dataset:
        fields["version"] = lookup.any_version(args.client, args.dataset)
    fields["upload"] = tus.upload(args.client, args.file, quiet=args.json)
    fields["picture_uploads"] = [tus.upload(args.client, one, quiet=args.json) for one in args.picture]
    row = args.client.post("model-tasks/try/", fields, once=True)
    if args.no_wait:
        done(args, row, f"Job {row['job']} tries it: aip models ways {row['id']} shows what came of it.")
        return None
    row = waiting.until_over(args.client, f"model-tasks/{row['id']}/")
    if not row["figures"]:
        done(args, row, row["refused"] or row["sentence"])
        return JOB_FAILED
    return _shown(args, row)


def ways(args: argparse.Namespace) -> int:
    return _shown(args, args.client.get(f"model-tasks/{args.trial}/"))


def _shown(args: argparse.Namespace, row: dict[str, Any]) -> int:
    found = args.client.get(f"model-tasks/{row['id']}/ways/")
    show_list(args, found["ways"], COLUMNS, empty=row["refused"] or row["sentence"] or "It has not ended.")
    if not args.json and found["ways"]:
        said = row["refused"] or f"aip models use {row['id']} 1 makes a version of the first."
        print(said if not row["made"] else f"Version {row['made']} was made of it.")
    return OK if found["ways"] and not row["refused"] else JOB_FAILED


def use(args: argparse.Namespace) -> None:
    fields = {"rank": args.rank} | ({"name": args.name} if args.name else {})
    row = args.client.post(f"model-tasks/{args.trial}/use/", fields, once=True)
    done(args, row, f"{row['model_name']} v{row['number']} is in the registry: {row['task']}.")
