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
    "Images=|images, Predictions=predictions, Classes=classes|classes, Skipped=broken, Which=left_out|paths",
    images=lambda row: f"{row.get('done', 0)} of {row.get('total', 0)}",
    classes=lambda rows: ", ".join(f"{row['name']} {row['count']}" for row in rows or ()),
    paths=lambda rows: ", ".join(f"{row['path']} ({row['code']})" for row in (rows or ())[:10]),
)
REQUEST = (
    registry.MODEL_VERSION,
    option("version", nargs="?", find=lookup.any_version, help="dataset version: 17, name (its newest) or name:2"),
    option("--folder", field="server_path", help=("a folder on the server instead of a version, as an absolute "
                                                 "path")),
    option("--split", help="only this split: train, val, test, unseen"),
    option("--list", type=Path, metavar="FILE", field="", help="local .txt or .csv file with the names of the images"),
    option("--min-score", type=float, field="score_threshold",
           help="minimum confidence; default: the best of the newest evaluation, otherwise that of the model"),
    option("--most", type=int, field="max_detections",
           help="maximum predictions per image; default: that of the model"),
    option("--batch", type=int, help="images per batch"),
    option("--nodes", type=int, help="nodes that share the images"),
    option("--name", help="name of the batch prediction"),
    *resources.options("GPUs per node; 0 runs on the CPU"),
    flag("--wait", field="", help="wait for the end and show the counts; exit code 6 on failure"),
)  # fmt: skip


def _start(args: argparse.Namespace) -> int | None:
    if bool(args.version) == bool(args.folder):
        raise ClientError("Specify a dataset version, or --folder: exactly one.", USAGE)
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
        raise ClientError(f"File {file} not found.", NOT_FOUND)
    return file


NOUNS = {
    "predict": (
        Verb("start", "Run a model on the images of a dataset version or a folder.", REQUEST, run=_start,
             prints="id", done="Queued as batch prediction {row[id]}.",
             wait_for="predictions/{row[id]}/",
             result=lambda args, row: show_one(args, args.client.get(f"predictions/{row['id']}/results/"), RESULTS)),
        Verb("list", "List batch predictions.", (LIMIT,),
             get="predictions/", table=COLUMNS, empty="No batch predictions. Start one: aip predict start"),
        Verb("show", "Show progress and counts.", (ID,), get="predictions/{id}/results/", record=RESULTS),
        Verb("download", "Download all predictions.", (
            ID,
            option("--as", dest="form", field="as", choices=list(ENDINGS), default="csv", help="default: csv"),
            option("--to", type=Path, field="", help="file to write"),
        ), get="predictions/{id}/download/", file=lambda args: f"prediction-{args.id}{ENDINGS[args.form]}"),
        Verb("version", "Create a dataset version with the predictions as annotations.", (
            ID,
            option("--name", help="name of a new dataset; default: the next version of the used dataset"),
            option("--min-score", type=float, help="predictions below are ignored"),
        ), post="predictions/{id}/version/", done="Dataset {row[dataset]} gets a version from the predictions."),
        Verb("stop", "Request a stop; predictions so far are kept.", (ID,),
             post="predictions/{id}/stop/", done="Requested a stop of batch prediction {args.id}."),
    ),
}  # fmt: skip
