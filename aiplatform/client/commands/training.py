"""`aip train`: submit, watch and control trainings, download their results."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from aiplatform.client import download, output, waiting
from aiplatform.client.commands import cross_validation, lookup, outputs, previews, run_comparison, submitting
from aiplatform.client.commands.queue import force_option, force_stop, logs, print_log
from aiplatform.client.commands.verbs import Noun, Nouns, Parent, done, paging, pairs, show_list, show_one
from aiplatform.client.output import Column

COLUMNS: list[Column] = [
    ("id", "id"),
    ("name", "name"),
    ("state", "state"),
    ("preset", lambda row: row.get("preset") or "own code"),
    ("dataset", "dataset"),
    ("progress", output.progress),
    ("loss", lambda row: _figure(row.get("loss"))),
    ("rate", lambda row: _figure(row.get("lr"))),
    ("cluster", "cluster_name"),
    ("made", lambda row: output.ago(row.get("created_at"))),
]
FIELDS: list[Column] = [
    *((heading.capitalize(), source) for heading, source in COLUMNS),
    ("Why it waits", "wait_sentence"),
    ("Place in the queue", "position"),
    ("Time left", lambda row: output.duration(row.get("eta_s"))),
    ("Time by phase", output.phase_times),
    ("What happened", "sentence"),
    ("Cards", lambda row: f"{row.get('nodes')} × {row.get('gpus_per_node')}"),
    ("Start file", "start_file"),
    ("Parameters", "params"),
    ("Metrics", "metrics"),
    ("Buttons", lambda row: ", ".join(row.get("actions") or [])),
]


def add(nouns: Nouns, parent: Parent) -> None:
    train = Noun(nouns, parent, "train", "Trainings: submit, watch, steer.")
    submitting.options(train.verb("submit", submitting.submit, "Queue a training."))
    previews.add(train)
    run_comparison.add(train)
    verb = train.verb("list", train_list, "List your trainings, newest first.")
    verb.add_argument("--state", help="only trainings in this state")
    verb.add_argument("--search", help="only names that contain this")
    paging(verb)
    train.verb("show", show, "Show one training.").add_argument("id", help="id or name")
    logs(train.verb("logs", train_logs, "Print the log."))
    verb = train.verb(
        "wait", wait, "Wait for the end, of all folds where it is one; leaves with 0 when all went well and 6 when not."
    )
    verb.add_argument("id")
    submitting.result_option(verb)
    for name, sentence in (
        ("pause", "Pause it: memory is kept, computing stops."),
        ("continue", "Let a paused training go on."),
        ("suspend", "Save and give its cards back; it waits until it is continued."),
        ("stop", "End it at once."),
        ("finish", "End it now, save, evaluate and keep the model."),
    ):
        verb = train.verb(name, steer, sentence)
        verb.add_argument("id")
        if name == "stop":
            force_option(verb)
        submitting.wait_option(verb)
    verb = train.verb("restore", restore, "Go on from a checkpoint with the remembered parameters and cards.")
    verb.add_argument("id")
    verb.add_argument("--checkpoint", help="a name from `aip train checkpoints`; the newest when left out")
    verb.add_argument("--gpus", type=int, help="cards per node, where it shall differ")
    verb.add_argument("-p", "--param", action="append", metavar="NAME=VALUE", help="change a parameter")
    submitting.wait_option(verb)
    verb = train.verb("metrics", metrics, "Print the newest value of each metric.")
    verb.add_argument("id")
    verb.add_argument("--key", action="append", help="print all points of this metric instead")
    train.verb("checkpoints", checkpoints, "List the checkpoints that can be restored.").add_argument("id")
    train.verb("folds", folds, "List the folds of its cross-validation and what they reached.").add_argument("id")
    train.verb("files", files, "List what the training gave back.").add_argument("id")
    verb = train.verb("download", fetch, "Download one output file, or all outputs as a zip.")
    verb.add_argument("id")
    verb.add_argument("path", nargs="?", help="path from `aip train files`; everything when left out")
    verb.add_argument("--to", type=Path, help="file to write; an unfinished one is continued")
    train.verb("presets", presets, "List the presets.")


def _figure(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, int | float) else ""


def _of_training(act: Callable[[argparse.Namespace], Any]) -> Callable[[argparse.Namespace], Any]:
    """Let a verb take the name of a training in place of its id."""

    @wraps(act)
    def named(args: argparse.Namespace) -> Any:
        args.id = str(lookup.training(args.client, args.id))
        return act(args)

    return named


def train_list(args: argparse.Namespace) -> None:
    rows = args.client.pages("training/jobs/", limit=args.limit, state=args.state, search=args.search)
    show_list(args, rows, COLUMNS, empty="No trainings yet. Start one: aip train submit --help")


@_of_training
def show(args: argparse.Namespace) -> None:
    show_one(args, args.client.get(f"training/jobs/{args.id}/"), FIELDS)


@_of_training
def train_logs(args: argparse.Namespace) -> None:
    print_log(args, f"training/jobs/{args.id}/log/")


@_of_training
def wait(args: argparse.Namespace) -> int:
    found = cross_validation.of(args.client, waiting.read(args.client, f"training/jobs/{args.id}/"))
    return cross_validation.end(args, found) if found else submitting.end(args, args.id)


@_of_training
def steer(args: argparse.Namespace) -> int | None:
    forced = getattr(args, "force", False)
    if forced:
        row = force_stop(args.client, args.client.get(f"training/jobs/{args.id}/")["job"])
    else:
        row = args.client.post(f"training/jobs/{args.id}/{args.verb}/")
    if args.wait:
        return _settle(args)
    done(args, row, row["sentence"] if forced else f"Asked to {args.verb} training {args.id}.")
    return None


def _settle(args: argparse.Namespace) -> int | None:
    """Wait until the job reached the requested state: paused, running, or ended."""
    until = {"pause": {"paused"}, "continue": {"running"}}.get(args.verb, set())
    row = waiting.until_over(args.client, f"training/jobs/{args.id}/", until=until)
    if args.json:
        output.as_json(row)
    if until:
        return None if waiting.state_of(row) in until else waiting.exit_code(row)
    if args.verb == "stop":
        return None  # it ended, as requested
    return waiting.exit_code(row)


@_of_training
def restore(args: argparse.Namespace) -> int | None:
    fields: dict[str, Any] = {}
    if args.checkpoint:
        fields["checkpoint"] = args.checkpoint
    if args.gpus is not None:
        fields["gpus_per_node"] = args.gpus
    if args.param:
        fields["params"] = pairs(args.param)
    row = args.client.post(f"training/jobs/{args.id}/restore/", fields, once=True)
    if args.wait:
        return submitting.end(args, row["id"])
    done(args, row, f"Training {row['id']} is queued again.")
    return None


@_of_training
def metrics(args: argparse.Namespace) -> None:
    curves = args.client.get(f"training/jobs/{args.id}/metrics/", key=args.key)
    if args.json:
        output.as_json(curves)
        return
    if args.key:
        rows = [
            {"key": name, "step": step, "value": value}
            for name, points in curves["series"].items()
            for step, value in points
        ]
    else:
        rows = [{"key": name, **newest} for name, newest in curves["newest"].items()]
    columns: list[Column] = [("metric", "key"), ("step", "step"), ("value", "value")]
    output.table(rows, columns, empty="No metrics yet.")


@_of_training
def checkpoints(args: argparse.Namespace) -> None:
    columns: list[Column] = [
        ("name", "name"),
        ("attempt", "attempt"),
        ("step", "step"),
        ("epoch", "epoch"),
        ("metric", "metric"),
        ("size", lambda row: output.size(row.get("size_bytes"))),
        ("written", lambda row: output.ago(row.get("written_at"))),
    ]
    rows = args.client.get(f"training/jobs/{args.id}/checkpoints/")
    show_list(args, rows, columns, empty="No checkpoints yet.")


@_of_training
def folds(args: argparse.Namespace) -> None:
    cross_validation.report(args, args.client.get(f"training/jobs/{args.id}/cross-validation/"))


@_of_training
def files(args: argparse.Namespace) -> None:
    rows = args.client.get(f"training/jobs/{args.id}/files/")
    show_list(args, rows, outputs.COLUMNS, empty="No outputs yet.")


@_of_training
def fetch(args: argparse.Namespace) -> None:
    if args.path:
        route = f"training/jobs/{args.id}/files/content/"
        target = args.to or Path(Path(args.path).name)
        download.fetch(args.client, route, target, query={"path": args.path}, quiet=args.json)
    else:
        target = args.to or Path(f"training-{args.id}.zip")
        download.fetch(args.client, f"training/jobs/{args.id}/files/zip/", target, quiet=args.json)
    done(args, {"file": str(target)}, f"Written to {target}.")


def presets(args: argparse.Namespace) -> None:
    columns: list[Column] = [
        ("name", "name"),
        ("purpose", "purpose"),
        ("accuracy", "accuracy"),
        ("size", "size"),
        ("time", "reference_time"),
        ("created", "created"),
    ]
    show_list(args, args.client.get("training/presets/"), columns)
