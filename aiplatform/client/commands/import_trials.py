"""`aip models try`, `ways`, `use`: run a model with every possible configuration, and register the right one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from aiplatform.client import tus, waiting
from aiplatform.client.commands import lookup, model_imports
from aiplatform.client.errors import JOB_FAILED, OK, USAGE, ClientError
from aiplatform.client.options import fields, flag, option, repeated
from aiplatform.client.output import columns
from aiplatform.client.verbs import Verb, done, show_list


def _best_predictions(images: list[list[dict[str, Any]]]) -> str:
    """The best prediction for each image, as "cat 0.91 | nothing"."""
    best = [f"{rows[0].get('name', '')} {rows[0].get('score', 0):.2f}" if rows else "nothing" for rows in images]
    return " | ".join(best)


COLUMNS = columns(
    "=rank, score=score|percent, layout=title, how=about|joined, found=answers|best", best=_best_predictions
)


def _try(args: argparse.Namespace) -> int | None:
    """Send model and images, wait for the job, and print the configurations."""
    if not args.picture and not args.dataset:
        raise ClientError("Name what to try it on: --picture FILE, or --dataset NAME.", USAGE)
    body = fields(args, model_imports.DECLARATION)
    model = model_imports.find_own(args.client, args.name or args.file.stem)
    body |= {"name": args.name or args.file.stem} if model is None else {"model": model}
    if args.dataset:
        body["version"] = lookup.any_version(args.client, args.dataset)
    body["upload"] = tus.upload(args.client, args.file, quiet=args.json)
    body["picture_uploads"] = [tus.upload(args.client, image, quiet=args.json) for image in args.picture]
    row = args.client.post("model-tasks/try/", body, once=True)
    if args.no_wait:
        done(args, row, f"Job {row['job']} tries it: aip models ways {row['id']} shows what came of it.")
        return None
    row = waiting.until_over(args.client, f"model-tasks/{row['id']}/")
    if not row["figures"]:
        done(args, row, row["refused"] or row["sentence"])
        return JOB_FAILED
    return _print_configurations(args, row)


def _ways(args: argparse.Namespace) -> int:
    return _print_configurations(args, args.client.get(f"model-tasks/{args.trial}/"))


def _print_configurations(args: argparse.Namespace, row: dict[str, Any]) -> int:
    rows = args.client.get(f"model-tasks/{row['id']}/ways/")["ways"]
    show_list(args, rows, COLUMNS, empty=row["refused"] or row["sentence"] or "It has not ended.")
    if not args.json and rows:
        hint = row["refused"] or f"aip models use {row['id']} 1 makes a version of the first."
        print(hint if not row["made"] else f"Version {row['made']} was made of it.")
    return OK if rows and not row["refused"] else JOB_FAILED


TRIAL = option("trial", type=int, help="its number, as try says it")
VERBS = (
    Verb("try", "Run an ONNX model on pictures in every way that is possible, best first.", (
        option("file", type=Path, help=".onnx, or an archive with one"),
        repeated("--picture", type=Path, default=[], help="to try it on; up to six of them"),
        option("--dataset", help="dataset version whose pictures with most on them are taken: id, NAME, NAME:2"),
        option("--name", help="of the model that is made of it; that of the file when left out"),
        *model_imports.DECLARATION,
        flag("--no-wait", help="only queue it"),
    ), run=_try),
    Verb("ways", "Show what came of a trial.", (TRIAL,), run=_ways),
    Verb("use", "Make a version of one of the ways of a trial.", (
        TRIAL,
        option("rank", type=int, help="of the way; 1 is the best"),
        option("--name", help="of the model, in place of the one that was given to try"),
    ), post="model-tasks/{trial}/use/", once=True,
         done="{row[model_name]} v{row[number]} is in the registry: {row[task]}."),
)  # fmt: skip
