"""`aip model` (also `aip models`), `aip evaluate`: models and their evaluations."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aiplatform.client import output, waiting
from aiplatform.client.commands import (
    converting,
    evaluation_sets,
    evaluations_compared,
    evaluations_judged,
    evaluations_scripted,
    import_trials,
    lookup,
    model_composition,
    model_imports,
    registry,
    resources,
    versioned,
)
from aiplatform.client.commands.verbs import Noun, Nouns, Parent, done, paging, show_list, show_one
from aiplatform.client.errors import JOB_FAILED
from aiplatform.client.output import Column

FIGURES = 3  # in a column


def _figures(row: Mapping[str, Any]) -> str:
    """The first of its figures, as "val/ap50 0.888, …": all of them stand in `show`."""
    figures = [(name, value) for name, value in (row.get("metrics") or {}).items() if isinstance(value, int | float)]
    return ", ".join(f"{name} {value:.3f}" for name, value in figures[:FIGURES])


COLUMNS: list[Column] = [
    ("id", "id"),
    ("name", "name"),
    ("task", "task"),
    ("version", "latest_version"),
    ("stage", "stage"),
    ("aliases", lambda row: ", ".join(f"{one['name']}=v{one['number']}" for one in row.get("aliases") or [])),
    ("metrics", _figures),
    ("made", lambda row: output.ago(row.get("created_at"))),
]


def _speed(row: Mapping[str, Any]) -> str:
    """What its export measured, with the conditions."""
    speed = row["facts"].get("speed") or {}
    if "ms" not in speed:
        return ""
    where = f"{speed.get('provider', '').removesuffix('ExecutionProvider')}, {speed.get('threads', 1):g} threads"
    return f"{speed['ms']:g} ms an image, one at a time ({where})"


SHOWN: list[Column] = [
    *((name.capitalize(), key) for name, key in COLUMNS),
    ("Parameters", lambda row: row["facts"].get("parameters")),
    ("Size", lambda row: output.size(row.get("size_bytes"))),
    ("GFLOPs", lambda row: (row["facts"].get("speed") or {}).get("gflops")),
    ("Speed", _speed),
    ("Description", "description"),
]
EVALUATIONS: list[Column] = [
    ("id", "id"),
    ("name", "name"),
    ("model", "model"),
    ("dataset", "dataset"),
    ("split", lambda row: row.get("split") or "all"),
    ("state", "state"),
    ("metrics", _figures),
    ("made", lambda row: output.ago(row.get("created_at"))),
]


SHOWN_EVALUATION: list[Column] = [
    *((name.capitalize(), key) for name, key in EVALUATIONS if name != "metrics"),
    *output.PROGRESS,
    *evaluations_scripted.SHOWN,
    ("Conditions", "conditions"),
]


def add(nouns: Nouns, parent: Parent) -> None:
    models = Noun(nouns, parent, "models", "The model registry.", also=("model",))
    verb = models.verb("list", model_list, "List models you can see.")
    verb.add_argument("--search", help="only names that contain this")
    verb.add_argument("--task", help="only models with a version for this task, such as detection")
    verb.add_argument("--stage", choices=registry.STAGES, help="only models with a version in this stage")
    verb.add_argument("--alias", help="only models with this alias, such as champion")
    paging(verb)
    models.verb("baseline", baseline, "Count the images that a version learned from, for monitoring.").add_argument(
        "model", help="version id, NAME, or NAME:VERSION"
    )
    models.verb("show", show, "Show one model.").add_argument("model", help="id or name")
    verb = models.verb("download", fetch, "Download a model version as a zip.")
    verb.add_argument("model", help=registry.VERSION)
    verb.add_argument("--to", type=Path, help="file to write; an unfinished one is continued")
    verb = models.verb("package", package, "Download a version as a zip that answers pictures by one command.")
    verb.add_argument("model", help=registry.VERSION)
    verb.add_argument("--to", type=Path, help="file to write; an unfinished one is continued")
    verb = models.verb("torch", torch, "Download a version as a program of torch.export, or let a job make it.")
    verb.add_argument("model", help=registry.VERSION)
    verb.add_argument("--export", action="store_true", help="queue the job that makes it")
    verb.add_argument("--to", type=Path, help="file to write; an unfinished one is continued")
    verb = models.verb("delete", delete, "Remove a model that nothing uses.")
    verb.add_argument("model", help="id or name")
    verb.add_argument("--yes", action="store_true", help="do not ask")
    model_imports.add(models)
    import_trials.add(models)
    registry.add(models)
    converting.add(models)
    model_composition.add(models)
    evaluate = Noun(nouns, parent, "evaluate", "Evaluations of models.", also=["evaluations"])
    verb = evaluate.verb("start", start, "Evaluate a model version on a dataset version.")
    verb.add_argument("model", help=registry.VERSION)
    verb.add_argument("--data", help="dataset version: its id, NAME, or NAME:VERSION; that of the set when left out")
    verb.add_argument("--set", metavar="SET", help="a parameter set by id or name; what you give goes before it")
    verb.add_argument(
        "--split",
        help="auto (default: test, else val, else unseen), train, val, test, unseen (not trained on), or all",
    )
    verb.add_argument("--name", help="a name for the evaluation")
    verb.add_argument("-p", "--param", action="append", metavar="NAME=VALUE", help="repeat for more")
    evaluations_scripted.options(verb)
    resources.options(verb, gpus="cards; 0 evaluates on the processor")
    verb.add_argument("--wait", action="store_true", help="wait for the end; 6 when it failed")
    paging(evaluate.verb("list", evaluation_list, "List evaluations."))
    evaluate.verb("show", evaluation, "Show the figures of one evaluation.").add_argument("id")
    evaluations_compared.add(evaluate)
    evaluation_sets.add(evaluate, parent)
    evaluations_judged.add(evaluate)


def model_list(args: argparse.Namespace) -> None:
    filters = {"search": args.search, "task": args.task, "stage": args.stage, "alias": args.alias}
    rows = args.client.pages("models/", limit=args.limit, **filters)
    show_list(
        args, rows, COLUMNS, empty="No models yet. A finished training makes one, and aip models import brings one in."
    )


def show(args: argparse.Namespace) -> None:
    row = args.client.get(f"models/{lookup.model(args.client, args.model)}/")
    newest = args.client.get(f"model-versions/{row['latest_version_id']}/") if row.get("latest_version_id") else {}
    show_one(args, row | {"facts": newest.get("facts", {})}, SHOWN)


def fetch(args: argparse.Namespace) -> None:
    version = lookup.model_version(args.client, args.model)
    versioned.fetch(args, f"model-versions/{version}/download/", args.model)


def package(args: argparse.Namespace) -> None:
    version = lookup.model_version(args.client, args.model)
    versioned.fetch(args, f"model-versions/{version}/package/", f"{args.model}_package")


def torch(args: argparse.Namespace) -> None:
    version = lookup.model_version(args.client, args.model)
    if args.export:
        row = args.client.post(f"model-versions/{version}/torch/", once=True)
        done(args, row, f"Queued as job {row['job']}. Once it has ended, aip models torch {args.model} downloads it.")
        return
    versioned.fetch(args, f"model-versions/{version}/torch/", args.model, ending=".pt2")


def delete(args: argparse.Namespace) -> None:
    question = f"Remove model {args.model} with all its versions?"
    route = f"models/{lookup.model(args.client, args.model)}/"
    versioned.remove(args, route, question=question, removed=f"Model {args.model} is removed.")


def baseline(args: argparse.Namespace) -> None:
    version = lookup.model_version(args.client, args.model)
    row = args.client.post(f"model-versions/{version}/baseline/", once=True)
    done(args, row, f"Queued as job {row['job']}. Services with this version are compared with what it counts.")


def start(args: argparse.Namespace) -> int | None:
    fields = {
        "model_version": lookup.model_version(args.client, args.model),
        "version": lookup.version(args.client, args.data) if args.data else None,
        "parameter_set": lookup.evaluation_set(args.client, args.set) if args.set else None,
        "split": _split(args),
        "name": args.name,
    }
    fields = {name: value for name, value in fields.items() if value is not None} | resources.fields(args)
    fields |= evaluations_scripted.fields(args)
    row = args.client.post("evaluations/", fields, once=True)
    if args.wait:
        row = waiting.until_over(args.client, f"evaluations/{row['id']}/")
        show_one(args, row, SHOWN_EVALUATION)
        return waiting.exit_code(row) or (JOB_FAILED if (row.get("script") or {}).get("problems") else None)
    if not args.json:
        print(row["id"])
    done(args, row, f"Queued as evaluation {row['id']}.")
    return None


def _split(args: argparse.Namespace) -> str | None:
    """The split that the API gets; None leaves it to the parameter set."""
    if args.split is None:
        return None if args.set else "auto"
    return "" if args.split == "all" else str(args.split)


def evaluation_list(args: argparse.Namespace) -> None:
    show_list(args, args.client.pages("evaluations/", limit=args.limit), EVALUATIONS, empty="No evaluations.")


def evaluation(args: argparse.Namespace) -> None:
    show_one(args, args.client.get(f"evaluations/{args.id}/"), SHOWN_EVALUATION)
