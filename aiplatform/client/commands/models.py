"""`aip model` (also `aip models`), `aip evaluate`: models and their evaluations."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
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
)
from aiplatform.client.commands.registry import MODEL, MODEL_VERSION
from aiplatform.client.errors import JOB_FAILED
from aiplatform.client.options import ID, LIMIT, TO, WAIT, YES, fields, flag, option, repeated
from aiplatform.client.output import columns, titled
from aiplatform.client.verbs import Verb, done, show_one

COLUMN_METRICS = 3  # in a column; `show` prints all of them


def _first_metrics(metrics: Mapping[str, Any] | None) -> str:
    """The first metrics, as "val/ap50 0.888, …"."""
    numbers = [(name, value) for name, value in (metrics or {}).items() if isinstance(value, int | float)]
    return ", ".join(f"{name} {value:.3f}" for name, value in numbers[:COLUMN_METRICS])


def _speed(speed: Mapping[str, Any] | None) -> str:
    """The speed that the export measured, with the conditions."""
    if not speed or "ms" not in speed:
        return ""
    provider = speed.get("provider", "").removesuffix("ExecutionProvider")
    return f"{speed['ms']:g} ms an image, one at a time ({provider}, {speed.get('threads', 1):g} threads)"


COLUMNS = columns(
    "id, name, task, version=latest_version, stage, aliases=aliases|aliases, metrics=metrics|metrics, "
    "made=created_at|ago",
    aliases=lambda rows: ", ".join(f"{row['name']}=v{row['number']}" for row in rows or ()),
    metrics=_first_metrics,
)
FIELDS = titled(COLUMNS) + columns(
    "Parameters=facts.parameters, Size=size_bytes|size, GFLOPs=facts.speed.gflops, Speed=facts.speed|speed, "
    "Description=description",
    speed=_speed,
)
VERSIONS = columns(
    "id, version=number, task, stage, source, preset, dataset=dataset_label, metrics=metrics|metrics, "
    "size=size_bytes|size, created=created_at|ago",
    metrics=_first_metrics,
)
EVALUATIONS = columns(
    "id, name, model, dataset, split=split|split, state, metrics=metrics|metrics, made=created_at|ago",
    split=lambda split: split or "all",
    metrics=_first_metrics,
)
EVALUATION_FIELDS = [
    *titled(column for column in EVALUATIONS if column[0] != "metrics"),
    *output.PROGRESS,
    *evaluations_scripted.FIELDS,
    ("Conditions", "conditions"),
]


def _show(args: argparse.Namespace) -> None:
    row = args.client.get(f"models/{lookup.model(args.client, args.model)}/")
    newest = args.client.get(f"model-versions/{row['latest_version_id']}/") if row.get("latest_version_id") else {}
    show_one(args, row | {"facts": newest.get("facts", {})}, FIELDS)


TORCH = "model-versions/{model_version}/torch/"
EXPORT_TORCH = Verb(
    "torch", "", (MODEL_VERSION,), post=TORCH, once=True,
    done="Queued as job {row[job]}. Once it has ended, aip models torch {args.model} downloads it.",
)  # fmt: skip
DOWNLOAD_TORCH = Verb("torch", "", (MODEL_VERSION,), get=TORCH, file="{args.model}.pt2")
EVALUATION = (
    MODEL_VERSION,
    option("--data", field="version", find=lookup.version,
           help="dataset version: its id, NAME, or NAME:VERSION; that of the set when left out"),
    option("--set", metavar="SET", field="parameter_set", find=lookup.evaluation_set,
           help="a parameter set by id or name; what you give goes before it"),
    option("--split", field="",
           help="auto (default: test, else val, else unseen), train, val, test, unseen (not trained on), or all"),
    option("--name", help="a name for the evaluation"),
    repeated("-p", "--param", metavar="NAME=VALUE", field="", help="repeat for more"),
    *evaluations_scripted.OPTIONS,
    *resources.options("cards; 0 evaluates on the processor"),
)  # fmt: skip


def _evaluate(args: argparse.Namespace) -> int | None:
    body = fields(args, EVALUATION) | evaluations_scripted.script_fields(args)
    if args.split is not None or not args.set:  # a parameter set has a split
        body["split"] = "" if args.split == "all" else args.split or "auto"
    row = args.client.post("evaluations/", body, once=True)
    if args.wait:
        row = waiting.until_over(args.client, f"evaluations/{row['id']}/")
        show_one(args, row, EVALUATION_FIELDS)
        return waiting.exit_code(row) or (JOB_FAILED if (row.get("script") or {}).get("problems") else None)
    if not args.json:
        print(row["id"])
    done(args, row, f"Queued as evaluation {row['id']}.")
    return None


NOUNS = {
    "models": (
        Verb("list", "List models you can see.", (
            option("--search", help="only names that contain this"),
            option("--task", help="only models with a version for this task, such as detection"),
            option("--stage", choices=registry.STAGES, help="only models with a version in this stage"),
            option("--alias", help="only models with this alias, such as champion"),
            LIMIT,
        ), get="models/", table=COLUMNS,
             empty="No models yet. A finished training makes one, and aip models import brings one in."),
        Verb("baseline", "Count the images that a version learned from, for monitoring.", (MODEL_VERSION,),
             post="model-versions/{model_version}/baseline/", once=True,
             done="Queued as job {row[job]}. Services with this version are compared with what it counts."),
        Verb("show", "Show one model.", (MODEL,), run=_show),
        Verb("versions", "List the versions of a model.", (MODEL, LIMIT),
             get="models/{model}/versions/", table=VERSIONS, empty="No versions."),
        Verb("delete-version", "Delete a version that nothing uses.", (MODEL_VERSION, YES),
             delete="model-versions/{model_version}/", confirm="Delete version {args.model}?",
             done="Deleted version {args.model}."),
        Verb("download", "Download a model version as a zip.", (MODEL_VERSION, TO),
             get="model-versions/{model_version}/download/", file="{args.model}.zip"),
        Verb("package", "Download a version as a zip that answers pictures by one command.", (MODEL_VERSION, TO),
             get="model-versions/{model_version}/package/", file="{args.model}_package.zip"),
        Verb("torch", "Download a version as a program of torch.export, or let a job make it.",
             (MODEL_VERSION, flag("--export", help="queue the job that makes it"), TO),
             run=lambda args: (EXPORT_TORCH if args.export else DOWNLOAD_TORCH).call(args)),
        Verb("delete", "Remove a model that nothing uses.", (MODEL, YES),
             delete="models/{model}/", confirm="Remove model {args.model} with all its versions?",
             done="Model {args.model} is removed."),
        *model_imports.VERBS,
        *import_trials.VERBS,
        *registry.VERBS,
        *converting.VERBS,
        model_composition.COMPOSE,
    ),
    "evaluate": (
        Verb("start", "Evaluate a model version on a dataset version.", (*EVALUATION, WAIT), run=_evaluate),
        Verb("list", "List evaluations.", (LIMIT,), get="evaluations/", table=EVALUATIONS, empty="No evaluations."),
        Verb("show", "Show the figures of one evaluation.", (ID,), get="evaluations/{id}/", record=EVALUATION_FIELDS),
        Verb("stop", "Stop an evaluation.", (ID,),
             post="evaluations/{id}/stop/", done="Requested a stop of evaluation {args.id}."),
        *evaluations_compared.VERBS,
        evaluation_sets.SETS,
        *evaluations_judged.VERBS,
    ),
}  # fmt: skip
