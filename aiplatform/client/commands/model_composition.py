"""`aip models compose`: an ensemble or a chain of versions."""

from __future__ import annotations

import argparse
from typing import Any

from aiplatform.client.commands import lookup, registry
from aiplatform.client.commands.converting import split_list
from aiplatform.client.options import option
from aiplatform.client.verbs import Verb


def _describe(args: argparse.Namespace, row: Any) -> str:
    return f"{row['model_name']} v{row['number']} is composed of {len(args.parts)} versions."


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
), post="models/compose/", once=True, prints="id", done=_describe)  # fmt: skip
