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
    return f"{row['model_name']} v{row['number']} is composed of {len(args.parts)} versions."


FORMS = (
    "fp32 (simplified), fp16, int8 (calibrated), int8_dynamic, openvino, int8_openvino; with an NVIDIA card (--gpus 1) "
    "tensorrt, tensorrt_fp16"
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
EMPTY = "No variant is made yet."


def _show(args: argparse.Namespace, row: Any) -> None:
    show_list(args, args.client.get(f"conversions/{row['id']}/results/")["rows"], VARIANTS, empty=EMPTY)


def split_list(text: str) -> list[str]:
    """Items of a text separated by commas."""
    return [item.strip() for item in text.split(",") if item.strip()]


COMPOSE = Verb("compose", "Make a version of others: an ensemble, or a detector and a classifier.", (
    option("kind", choices=["ensemble", "chain"], help="all look at a picture; or one at what another found"),
    option("parts", nargs="+", metavar="version", find=lookup.model_version,
           help=f"2 to 5, of a chain 2: {registry.VERSION}"),
    option("--weights", convert=lambda text: [float(part) for part in text.split(",")],
           help="of an ensemble's parts, separated by commas; alike when left out"),
    option("--way", choices=["mean", "wbf", "nms"], help="how answers are joined; the task's usual way"),
    option("--iou", type=float, help="overlap from which boxes are of one object; 0.55 when left out"),
    option("--min-score", type=float, help="of a chain's detector; 0.3 when left out"),
    option("--margin", type=float, help="around a box, as a share of its sides; as the second learned"),
    option("--only", convert=split_list, help="classes of the detector, separated by commas; all when left out"),
    option("--name", help="a name for the new model; made of the parts when left out"),
    option("--to", metavar="MODEL", field="model", find=lookup.model,
           help="add a version to this model of yours: its id or name"),
    option("--description", help="what it is, in a sentence"),
), post="models/compose/", once=True, prints="id", done=_describe_composition)  # fmt: skip
VERBS = (
    Verb("convert", "Make smaller and faster variants of a version.", (
        registry.MODEL_VERSION,
        option("--data", required=True, field="version", find=lookup.version,
               help="annotated dataset version: its id, NAME, or NAME:VERSION"),
        option("--to", field="targets", convert=split_list,
               help=f"variants, separated by commas: {FORMS}; fp16,int8 when left out"),
        option("--split", help="what is measured on: train, val, test, unseen, or auto (the default)"),
        option("--looks", type=int, help="pictures for calibration; 300 when left out"),
        option("--method", choices=["minmax", "entropy", "percentile"], help="how calibration finds ranges"),
        option("--max-loss", type=float, help="by how much the main figure may be lower; 0.01 when left out"),
        option("--keep", choices=["fastest", "all", "none"], help="which accepted variants become versions"),
        option("--name", help="a name for the conversion"),
        *resources.options("cards; 0 runs on the processor"),
        flag("--wait", field="", help="wait for the end and show the table; 6 when it failed"),
    ), post="conversions/", once=True, prints="id", done="Queued as conversion {row[id]}.",
         wait_for="conversions/{row[id]}/", result=_show),
    Verb("conversions", "List conversions.", (LIMIT,),
         get="conversions/", table=CONVERSIONS, empty="No conversions. aip models convert begins one."),
    Verb("conversion", "Show the variants of a conversion.", (ID,),
         get="conversions/{id}/results/", rows="rows", table=VARIANTS, empty=EMPTY),
    Verb("stop-conversion", "Stop a conversion.", (ID,),
         post="conversions/{id}/stop/", done="Requested a stop of conversion {args.id}."),
    Verb("keep", "Make a variant of a conversion a version of its model.", (
        option("id", help="the conversion"),
        option("variant", field="target", help=FORMS),
    ), post="conversions/{id}/keep/", done="{args.variant} is {row[model_name]} v{row[number]}."),
)  # fmt: skip
