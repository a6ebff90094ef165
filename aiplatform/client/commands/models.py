"""`aip model` (also `aip models`), `aip evaluate`: models and their evaluations."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from aiplatform.client.commands import (
    converting,
    lookup,
    model_imports,
    registry,
)
from aiplatform.client.commands.registry import MODEL, MODEL_VERSION
from aiplatform.client.options import LIMIT, TO, YES, flag, option
from aiplatform.client.output import columns, titled
from aiplatform.client.verbs import Verb, show_one

COLUMN_METRICS = 3  # in a column; `show` prints all of them


def first_metrics(metrics: Mapping[str, Any] | None) -> str:
    """The first metrics, as "val/ap50 0.888, …"."""
    numbers = [(name, value) for name, value in (metrics or {}).items() if isinstance(value, (int, float))]
    return ", ".join(f"{name} {value:.3f}" for name, value in numbers[:COLUMN_METRICS])


def _speed(speed: Mapping[str, Any] | None) -> str:
    """The speed that the export measured, with the conditions."""
    if not speed or "ms" not in speed:
        return ""
    provider = speed.get("provider", "").removesuffix("ExecutionProvider")
    return f"{speed['ms']:g} ms per image, single image ({provider}, {speed.get('threads', 1):g} threads)"


COLUMNS = columns(
    "id, name, task, version=latest_version, stage, aliases=aliases|aliases, metrics=metrics|metrics, "
    "made=created_at|ago",
    aliases=lambda rows: ", ".join(f"{row['name']}=v{row['number']}" for row in rows or ()),
    metrics=first_metrics,
)
FIELDS = titled(COLUMNS) + columns(
    "Parameters=facts.parameters, Size=size_bytes|size, GFLOPs=facts.speed.gflops, Speed=facts.speed|speed, "
    "Description=description",
    speed=_speed,
)
VERSIONS = columns(
    "id, version=number, task, stage, source, preset, dataset=dataset_label, metrics=metrics|metrics, "
    "size=size_bytes|size, created=created_at|ago",
    metrics=first_metrics,
)


def _show(args: argparse.Namespace) -> None:
    row = args.client.get(f"models/{lookup.model(args.client, args.model)}/")
    newest = args.client.get(f"model-versions/{row['latest_version_id']}/") if row.get("latest_version_id") else {}
    show_one(args, row | {"facts": newest.get("facts", {})}, FIELDS)


TORCH = "model-versions/{model_version}/torch/"
EXPORT_TORCH = Verb(
    "torch", "", (MODEL_VERSION,), post=TORCH, once=True,
    done="Queued as job {row[job]}. When it has completed, download it with aip models torch {args.model}.",
)  # fmt: skip
DOWNLOAD_TORCH = Verb("torch", "", (MODEL_VERSION,), get=TORCH, file="{args.model}.pt2")
NOUNS = {
    "models": (
        Verb("list", "List models.", (
            option("--search", help="only names that contain this text"),
            option("--task", help="only models with a version for this task, such as detection"),
            option("--stage", choices=registry.STAGES, help="only models with a version in this stage"),
            option("--alias", help="only models with this alias, such as champion"),
            LIMIT,
        ), get="models/", table=COLUMNS,
             empty="No models yet. A completed training creates one; import one with aip models import."),
        Verb("baseline", "Compute the training statistics of a version for monitoring.", (MODEL_VERSION,),
             post="model-versions/{model_version}/baseline/", once=True,
             done="Queued as job {row[job]}. Endpoints with this version are compared with these statistics."),
        Verb("show", "Show one model.", (MODEL,), run=_show),
        Verb("versions", "List the versions of a model.", (MODEL, LIMIT),
             get="models/{model}/versions/", table=VERSIONS, empty="No versions."),
        Verb("delete-version", "Delete an unused version.", (MODEL_VERSION, YES),
             delete="model-versions/{model_version}/", confirm="Delete version {args.model}?",
             done="Deleted version {args.model}."),
        Verb("download", "Download a model version as a zip file.", (MODEL_VERSION, TO),
             get="model-versions/{model_version}/download/", file="{args.model}.zip"),
        Verb("package", "Download a version as a standalone package that "
                        "predicts with one command.", (MODEL_VERSION, TO),
             get="model-versions/{model_version}/package/", file="{args.model}_package.zip"),
        Verb("torch", "Download a version as a torch.export program, or create it with a job.",
             (MODEL_VERSION, flag("--export", help="submit the job that creates it"), TO),
             run=lambda args: (EXPORT_TORCH if args.export else DOWNLOAD_TORCH).call(args)),
        Verb("delete", "Delete an unused model.", (MODEL, YES),
             delete="models/{model}/", confirm="Delete model {args.model} with all its versions?",
             done="Deleted model {args.model}."),
        *model_imports.VERBS,
        *model_imports.TRIAL_VERBS,
        *registry.VERBS,
        *converting.VERBS,
        converting.COMPOSE,
    ),
}  # fmt: skip
