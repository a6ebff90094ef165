"""`aip predict`: batch predictions of a model, and their download."""

from __future__ import annotations

import argparse
from pathlib import Path

from aiplatform.client.commands import lookup, registry, resources
from aiplatform.client.errors import NOT_FOUND, USAGE, ClientError
from aiplatform.client.options import ID, LIMIT, fields, flag, option
from aiplatform.client.output import columns
from aiplatform.client.verbs import Verb, show_one

ENDINGS = {"csv": ".csv", "coco": ".json", "jsonl": ".jsonl"}
COLUMNS = columns(
    "id, name, pictures=source, model, state, progress=|progress, answered=summary.done, made=created_at|ago"
)
RESULTS = columns(
    "Pictures=|images, Answers=predictions, Classes=classes|classes, Left out=broken, Which=left_out|paths",
    images=lambda row: f"{row.get('done', 0)} of {row.get('total', 0)}",
    classes=lambda rows: ", ".join(f"{row['name']} {row['count']}" for row in rows or ()),
    paths=lambda rows: ", ".join(f"{row['path']} ({row['code']})" for row in (rows or ())[:10]),
)
REQUEST = (
    registry.MODEL_VERSION,
    option("version", nargs="?", find=lookup.any_version, help="dataset version: 17, name (its newest) or name:2"),
    option("--folder", field="server_path", help="instead of a version: a folder on the server, as an absolute path"),
    option("--split", help="only this split: train, val, test, unseen"),
    option("--list", type=Path, metavar="FILE", field="", help=".txt or .csv here with the names of the pictures"),
    option("--min-score", type=float, field="score_threshold",
           help="lowest score of an answer; left out: the best of the newest evaluation, else the model's own"),
    option("--most", type=int, field="max_detections",
           help="most answers for a picture; the model's own when left out"),
    option("--batch", type=int, help="pictures in one run of the model"),
    option("--nodes", type=int, help="machines that share the pictures"),
    option("--name", help="a name for the prediction"),
    *resources.options("cards of each machine; 0 runs on the processor"),
    flag("--wait", field="", help="wait for the end and show the counts; 6 when it failed"),
)  # fmt: skip


def _start(args: argparse.Namespace) -> int | None:
    if bool(args.version) == bool(args.folder):
        raise ClientError("Give a dataset version, or --folder: one of them.", USAGE)
    body = fields(args, REQUEST)
    if args.list:
        form = {name: str(value) for name, value in body.items()}
        row = args.client.post_file("predictions/", form, "list_file", _existing(args.list))
    else:
        row = args.client.post("predictions/", body, once=True)
    verb: Verb = args.declared
    return verb.report(args, row)


def _existing(path: Path) -> Path:
    file = path.expanduser()
    if not file.is_file():
        raise ClientError(f"There is no file {file}.", NOT_FOUND)
    return file


NOUNS = {
    "predict": (
        Verb("start", "Let a model answer the pictures of a dataset version or a folder.", REQUEST, run=_start,
             prints="id", done="Queued as prediction {row[id]}.",
             wait_for="predictions/{row[id]}/",
             result=lambda args, row: show_one(args, args.client.get(f"predictions/{row['id']}/results/"), RESULTS)),
        Verb("list", "List predictions.", (LIMIT,),
             get="predictions/", table=COLUMNS, empty="No predictions. aip predict start begins one."),
        Verb("show", "Show how far it is and what was found.", (ID,), get="predictions/{id}/results/", record=RESULTS),
        Verb("download", "Download all answers.", (
            ID,
            option("--as", dest="form", field="as", choices=list(ENDINGS), default="csv", help="csv when left out"),
            option("--to", type=Path, field="", help="file to write"),
        ), get="predictions/{id}/download/", file=lambda args: f"prediction-{args.id}{ENDINGS[args.form]}"),
        Verb("version", "Make a dataset version whose annotations are the answers.", (
            ID,
            option("--name", help="of a new dataset; left out: the next version of the one that was answered"),
            option("--min-score", type=float, help="answers below it are left out"),
        ), post="predictions/{id}/version/", done="Dataset {row[dataset]} gets a version of the answers."),
        Verb("stop", "Request a stop; what was answered stays.", (ID,),
             post="predictions/{id}/stop/", done="Prediction {args.id} is asked to stop."),
    ),
}  # fmt: skip
