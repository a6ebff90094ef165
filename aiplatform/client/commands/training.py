"""`aip train`: submit, watch and control trainings, download their results."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from aiplatform.client import download, output, waiting
from aiplatform.client.commands import cross_validation, lookup, outputs, previews, run_comparison, submitting
from aiplatform.client.commands.queue import FORCE, LOG, force_stop, print_log
from aiplatform.client.commands.submitting import WAIT
from aiplatform.client.options import LIMIT, TO, option, pairs, repeated
from aiplatform.client.output import columns, titled
from aiplatform.client.verbs import Group, Verb, done

COLUMNS = columns(
    "id, name, state, preset=preset|program, dataset, progress=|progress, loss=loss|figure, rate=lr|figure, "
    "cluster=cluster_name, made=created_at|ago",
    program=lambda preset: preset or "custom code",
    figure=lambda value: f"{value:.3g}" if isinstance(value, (int, float)) else "",
)
FIELDS = titled(COLUMNS) + columns(
    "Reason=wait_sentence, Position=position, Time left=eta_s|duration, Time by phase=|phases, Message=sentence, "
    "Devices=|devices, Entry point=start_file, Parameters=params, Metrics=metrics, Actions=actions|joined",
    phases=output.phase_times,
    devices=lambda row: f"{row.get('nodes')} × {row.get('gpus_per_node')}",
)
CHECKPOINTS = columns("name, attempt, step, epoch, metric, size=size_bytes|size, written=written_at|ago")
METRICS = columns("metric=key, step, value")
PRESETS = columns("name, purpose, accuracy, size, time=reference_time, created")
PLANNED = columns("id, name, state, dataset, training, owner, message=sentence, created=created_at|ago")
ID = option("id", find=lookup.training)
PLAN = option("plan", metavar="id")
STEERED = {
    "pause": "Pause a job: memory is kept, computation is suspended.",
    "continue": "Resume a paused training.",
    "suspend": "Suspend a job: save a checkpoint and release its GPUs until it is resumed.",
    "finish": "Finish a training early: save, evaluate and keep the model.",
}


def _find(args: argparse.Namespace) -> None:
    """Replace the name of the training by its id, as messages show it."""
    args.id = lookup.training(args.client, args.id)


def _print_log(args: argparse.Namespace) -> None:
    _find(args)
    print_log(args, f"training/jobs/{args.id}/log/")


def _wait(args: argparse.Namespace) -> int:
    _find(args)
    folds = cross_validation.list_folds(args.client, waiting.read(args.client, f"training/jobs/{args.id}/"))
    return cross_validation.end(args, folds) if folds else submitting.end(args, args.id)


def _steer(args: argparse.Namespace) -> int | None:
    _find(args)
    forced = getattr(args, "force", False)
    if forced:
        row = force_stop(args.client, args.client.get(f"training/jobs/{args.id}/")["job"])
    else:
        row = args.client.post(f"training/jobs/{args.id}/{args.verb}/")
    if args.wait:
        return _settle(args)
    done(args, row, row["sentence"] if forced else f"Requested to {args.verb} training {args.id}.")
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


def _print_restored(args: argparse.Namespace, row: Any) -> int | None:
    if args.wait:
        return submitting.end(args, row["id"])
    done(args, row, f"Training {row['id']} is requeued.")
    return None


def _print_metrics(args: argparse.Namespace, curves: Any) -> None:
    if args.key:
        rows = [
            {"key": name, "step": step, "value": value}
            for name, points in curves["series"].items()
            for step, value in points
        ]
    else:
        rows = [{"key": name, **newest} for name, newest in curves["newest"].items()]
    output.table(rows, METRICS, empty="No metrics yet.")


def _download(args: argparse.Namespace) -> None:
    _find(args)
    if args.path:
        route = f"training/jobs/{args.id}/files/content/"
        target = args.to or Path(Path(args.path).name)
        download.fetch(args.client, route, target, query={"path": args.path}, quiet=args.json)
    else:
        target = args.to or Path(f"training-{args.id}.zip")
        download.fetch(args.client, f"training/jobs/{args.id}/files/zip/", target, quiet=args.json)
    done(args, {"file": str(target)}, f"Written to {target}.")


NOUNS = {
    "train": (
        Verb("submit", "Submit a training.", submitting.SUBMIT, run=submitting.submit),
        *previews.VERBS,
        run_comparison.COMPARE,
        Verb("list", "List your trainings, newest first.", (
            option("--state", help="only trainings in this state"),
            option("--search", help="only names that contain this text"),
            LIMIT,
        ), get="training/jobs/", table=COLUMNS, empty="No trainings yet. Start one: aip train submit --help"),
        Verb("show", "Show one training.", (option("id", find=lookup.training, help="id or name"),),
             get="training/jobs/{id}/", record=FIELDS),
        Verb("logs", "Print the log.", LOG, run=_print_log),
        Verb("wait",
             "Wait for the end, including all folds; exit code 0 if all completed, otherwise 6.",
             (ID, submitting.DOWNLOAD), run=_wait),
        Verb("stop", "Stop a job immediately.", (ID, FORCE, WAIT), run=_steer),
        *(Verb(name, help, (ID, WAIT), run=_steer) for name, help in STEERED.items()),
        Verb("restore", "Continue from a checkpoint with the stored parameters and resources.", (
            ID,
            option("--checkpoint", help="a name listed by `aip train checkpoints`; default: the newest"),
            option("--gpus", type=int, field="gpus_per_node", help="GPUs per node, if different"),
            repeated("-p", "--param", metavar="NAME=VALUE", field="params", convert=pairs, help="change a parameter"),
            WAIT,
        ), post="training/jobs/{id}/restore/", once=True, finish=_print_restored),
        Verb("metrics", "Print the newest value of each metric.",
             (ID, repeated("--key", help="print all points of this metric instead")),
             get="training/jobs/{id}/metrics/", show=_print_metrics),
        Verb("checkpoints", "List the checkpoints that can be restored.", (ID,),
             get="training/jobs/{id}/checkpoints/", table=CHECKPOINTS, empty="No checkpoints yet."),
        Verb("folds", "List the folds of its cross-validation with their results.", (ID,),
             get="training/jobs/{id}/cross-validation/", show=cross_validation.print_report),
        Verb("files", "List the outputs of a training.", (ID,),
             get="training/jobs/{id}/files/", table=outputs.COLUMNS, empty="No outputs yet."),
        Verb("download", "Download one output file, or all outputs as a zip file.", (
            ID, option("path", nargs="?", help="path listed by `aip train files`; default: everything"), TO,
        ), run=_download),
        Group("planned", "Trainings that start when their data is imported.", (
            Verb("list", "List planned trainings.", (LIMIT,),
                 get="training/planned/", table=PLANNED, empty="No planned trainings."),
            Verb("cancel", "Cancel a planned training.", (PLAN,),
                 post="training/planned/{plan}/cancel/", done="Planned training {row[id]} is {row[state]}."),
            Verb("retry", "Retry the start of a planned training.", (PLAN,),
                 post="training/planned/{plan}/retry/", done="Planned training {row[id]} is {row[state]}."),
        )),
        Verb("presets", "List the presets.", get="training/presets/", table=PRESETS),
    ),
}  # fmt: skip
