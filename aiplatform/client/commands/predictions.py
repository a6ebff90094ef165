"""`aip predict`: let a model answer many pictures, and take its answers along."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from aiplatform.client import output, waiting
from aiplatform.client.commands import lookup, registry, resources, versioned
from aiplatform.client.commands.verbs import Noun, Nouns, Parent, done, paging, show_list, show_one
from aiplatform.client.errors import NOT_FOUND, USAGE, ClientError
from aiplatform.client.output import Column

ENDINGS = {"csv": ".csv", "coco": ".json", "jsonl": ".jsonl"}
LISTED: list[Column] = [
    ("id", "id"),
    ("name", "name"),
    ("pictures", "source"),
    ("model", "model"),
    ("state", "state"),
    ("progress", output.progress),
    ("answered", lambda row: row["summary"].get("done", "")),
    ("made", lambda row: output.ago(row.get("created_at"))),
]


def _classes(row: dict[str, Any]) -> str:
    return ", ".join(f"{one['name']} {one['count']}" for one in row.get("classes", []))


def _left_out(row: dict[str, Any]) -> str:
    return ", ".join(f"{one['path']} ({one['code']})" for one in row.get("left_out", [])[:10])


ANSWERED: list[Column] = [
    ("Pictures", lambda row: f"{row.get('done', 0)} of {row.get('total', 0)}"),
    ("Answers", "predictions"),
    ("Classes", _classes),
    ("Left out", "broken"),
    ("Which", _left_out),
]


def add(nouns: Nouns, parent: Parent) -> None:
    predict = Noun(nouns, parent, "predict", "Let models answer many pictures.", also=("predictions",))
    verb = predict.verb("start", start, "Let a model answer the pictures of a dataset version or a folder.")
    verb.add_argument("model", help=registry.VERSION)
    verb.add_argument("version", nargs="?", help="dataset version: 17, name (its newest) or name:2")
    verb.add_argument("--folder", help="instead of a version: a folder on the server, as an absolute path")
    verb.add_argument("--split", help="only this split: train, val, test, unseen")
    verb.add_argument("--list", type=Path, metavar="FILE", help=".txt or .csv here with the names of the pictures")
    verb.add_argument(
        "--min-score",
        type=float,
        help="lowest score of an answer; left out: the best of the newest evaluation, else the model's own",
    )
    verb.add_argument("--most", type=int, help="most answers for a picture; the model's own when left out")
    verb.add_argument("--batch", type=int, help="pictures in one run of the model")
    verb.add_argument("--nodes", type=int, help="machines that share the pictures")
    verb.add_argument("--name", help="a name for the prediction")
    resources.options(verb, gpus="cards of each machine; 0 runs on the processor")
    verb.add_argument("--wait", action="store_true", help="wait for the end and show the counts; 6 when it failed")
    paging(predict.verb("list", listed, "List predictions."))
    predict.verb("show", show, "Show how far it is and what was found.").add_argument("id")
    verb = predict.verb("download", download, "Download all answers.")
    verb.add_argument("id")
    verb.add_argument("--as", dest="form", choices=list(ENDINGS), default="csv", help="csv when left out")
    verb.add_argument("--to", type=Path, help="file to write")
    verb = predict.verb("version", version, "Make a dataset version whose annotations are the answers.")
    verb.add_argument("id")
    verb.add_argument("--name", help="of a new dataset; left out: the next version of the one that was answered")
    verb.add_argument("--min-score", type=float, help="answers below it are left out")
    predict.verb("stop", stop, "Request a stop; what was answered stays.").add_argument("id")


def start(args: argparse.Namespace) -> int | None:
    if bool(args.version) == bool(args.folder):
        raise ClientError("Give a dataset version, or --folder: one of them.", USAGE)
    given = {
        "version": args.version and lookup.any_version(args.client, args.version),
        "server_path": args.folder,
        "split": args.split,
        "score_threshold": args.min_score,
        "max_detections": args.most,
        "batch": args.batch,
        "nodes": args.nodes,
        "name": args.name,
    }
    fields = {"model_version": lookup.model_version(args.client, args.model)} | resources.fields(args)
    fields |= {name: value for name, value in given.items() if value is not None}
    if args.list:
        row = args.client.post_file("predictions/", _as_text(fields), "list_file", _list(args.list))
    else:
        row = args.client.post("predictions/", fields, once=True)
    if args.wait:
        row = waiting.until_over(args.client, f"predictions/{row['id']}/")
        _show(args, row["id"])
        return waiting.exit_code(row)
    if not args.json:
        print(row["id"])
    done(args, row, f"Queued as prediction {row['id']}.")
    return None


def _as_text(fields: dict[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in fields.items()}


def _list(given: Path) -> Path:
    file = given.expanduser()
    if not file.is_file():
        raise ClientError(f"There is no file {file}.", NOT_FOUND)
    return file


def listed(args: argparse.Namespace) -> None:
    rows = args.client.pages("predictions/", limit=args.limit)
    show_list(args, rows, LISTED, empty="No predictions. aip predict start begins one.")


def show(args: argparse.Namespace) -> None:
    _show(args, args.id)


def _show(args: argparse.Namespace, number: Any) -> None:
    show_one(args, args.client.get(f"predictions/{number}/results/"), ANSWERED)


def download(args: argparse.Namespace) -> None:
    route = f"predictions/{args.id}/download/"
    called = f"prediction-{args.id}"
    versioned.fetch(args, route, called, query={"as": args.form}, ending=ENDINGS[args.form])


def version(args: argparse.Namespace) -> None:
    given = {"name": args.name, "min_score": args.min_score}
    fields = {name: value for name, value in given.items() if value is not None}
    row = args.client.post(f"predictions/{args.id}/version/", fields)
    done(args, row, f"Dataset {row['dataset']} gets a version of the answers.")


def stop(args: argparse.Namespace) -> None:
    row = args.client.post(f"predictions/{args.id}/stop/")
    done(args, row, f"Prediction {args.id} is asked to stop.")
