"""`aip models convert`, `conversions`, `conversion`, `keep`, `compose`: versions made of other versions."""

from __future__ import annotations

import argparse
from typing import Any

from aiplatform.client import output
from aiplatform.client.commands import lookup, registry, resources
from aiplatform.client.options import ID, LIMIT, flag, option
from aiplatform.client.output import columns
from aiplatform.client.verbs import Verb, show_list


def _describe_composition(args: argparse.Namespace, row: Any) -> str:
    return f"{row['model_name']} v{row['number']} combines {len(args.parts)} versions."


FORMS = (
    "fp32 (simplified), fp16, int8 (calibrated), int8_dynamic, openvino, int8_openvino; with an NVIDIA GPU "
    "(--gpus 1) tensorrt, tensorrt_fp16"
)
CONVERSIONS = columns(
    "id, name, model, dataset, state, progress=|progress, variants=variants|states, made=created_at|ago",
    states=lambda variants: ", ".join(f"{variant['target']}: {variant['state']}" for variant in variants),
)
VARIANTS = columns(
    "variant=target, state=|state, figure=value|.4f, loss=loss|.4f, agreement=agreement|.4f, ms=speed.p50_ms|.3f, "
    "img/s=speed.images_per_s|.0f, size=size_bytes|size, error",
    state=lambda row: "" if row["target"] == "source" else row["state"],
    size=lambda size: output.size(size) if size else "",
)
EMPTY = "No variants yet."


def _show(args: argparse.Namespace, row: Any) -> None:
    show_list(args, args.client.get(f"conversions/{row['id']}/results/")["rows"], VARIANTS, empty=EMPTY)


def split_list(text: str) -> list[str]:
    """Items of a text separated by commas."""
    return [item.strip() for item in text.split(",") if item.strip()]


COMPOSE = Verb("compose", "Combine versions: an ensemble, or a detector and a classifier.", (
    option("kind", choices=["ensemble", "chain"], help=("ensemble: all predict on an image; chain: the second "
                                                       "predicts on detections of the first")),
    option("parts", nargs="+", metavar="version", find=lookup.model_version,
           help=f"2 to 5 versions, for a chain 2: {registry.VERSION}"),
    option("--weights", convert=lambda text: [float(part) for part in text.split(",")],
           help="weights of an ensemble, separated by commas; default: equal"),
    option("--way", choices=["mean", "wbf", "nms"], help="combination method; default: that of the task"),
    option("--iou", type=float, help="IoU from which boxes belong to one object; default: 0.55"),
    option("--min-score", type=float, help="minimum confidence of the detector of a chain; default: 0.3"),
    option("--margin", type=float, help="margin around a box, as a share of its sides; default: as trained"),
    option("--only", convert=split_list, help="classes of the detector, separated by commas; default: all"),
    option("--name", help="name of the new model; default: from its parts"),
    option("--to", metavar="MODEL", field="model", find=lookup.model,
           help="add a version to this model of yours: its id or name"),
    option("--description", help="description in one sentence"),
), post="models/compose/", once=True, prints="id", done=_describe_composition)  # fmt: skip
VERBS = (
    Verb("convert", "Create smaller and faster variants of a version.", (
        registry.MODEL_VERSION,
        option("--data", required=True, field="version", find=lookup.version,
               help="annotated dataset version: its id, NAME, or NAME:VERSION"),
        option("--to", field="targets", convert=split_list,
               help=f"variants, separated by commas: {FORMS}; default: fp16,int8"),
        option("--split", help="evaluation split: train, val, test, unseen, or auto (the default)"),
        option("--looks", type=int, help="calibration images; default: 300"),
        option("--method", choices=["minmax", "entropy", "percentile"], help="calibration method"),
        option("--max-loss", type=float, help="maximum loss of the main metric; default: 0.01"),
        option("--keep", choices=["fastest", "all", "none"], help="accepted variants to promote"),
        option("--name", help="name of the conversion"),
        *resources.options("GPUs; 0 runs on the CPU"),
        flag("--wait", field="", help="wait for the end and show the table; exit code 6 on failure"),
    ), post="conversions/", once=True, prints="id", done="Queued as conversion {row[id]}.",
         wait_for="conversions/{row[id]}/", result=_show),
    Verb("conversions", "List conversions.", (LIMIT,),
         get="conversions/", table=CONVERSIONS, empty="No conversions. Start one: aip models convert"),
    Verb("conversion", "Show the variants of a conversion.", (ID,),
         get="conversions/{id}/results/", rows="rows", table=VARIANTS, empty=EMPTY),
    Verb("stop-conversion", "Stop a conversion.", (ID,),
         post="conversions/{id}/stop/", done="Requested a stop of conversion {args.id}."),
    Verb("keep", "Promote a variant of a conversion to a version of its model.", (
        option("id", help="the conversion"),
        option("variant", field="target", help=FORMS),
    ), post="conversions/{id}/keep/", done="{args.variant} is {row[model_name]} v{row[number]}."),
)  # fmt: skip
