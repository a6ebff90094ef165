"""`aip models compose`: a version that answers by others."""

from __future__ import annotations

import argparse
from typing import Any

from aiplatform.client.commands import lookup, registry
from aiplatform.client.commands.verbs import Noun, done


def add(models: Noun) -> None:
    """The verb of composed versions."""
    verb = models.verb("compose", compose, "Make a version of others: an ensemble, or a detector and a classifier.")
    verb.add_argument("kind", choices=["ensemble", "chain"], help="all look at a picture; or one at what another found")
    verb.add_argument("parts", nargs="+", metavar="version", help=f"2 to 5, of a chain 2: {registry.VERSION}")
    verb.add_argument("--weights", help="of an ensemble's parts, separated by commas; alike when left out")
    verb.add_argument("--way", choices=["mean", "wbf", "nms"], help="how answers are joined; the task's usual way")
    verb.add_argument("--iou", type=float, help="overlap from which boxes are of one object; 0.55 when left out")
    verb.add_argument("--min-score", type=float, help="of a chain's detector; 0.3 when left out")
    verb.add_argument("--margin", type=float, help="around a box, as a share of its sides; as the second learned")
    verb.add_argument("--only", help="classes of the detector, separated by commas; all when left out")
    verb.add_argument("--name", help="a name for the new model; made of the parts when left out")
    verb.add_argument("--to", metavar="MODEL", help="add a version to this model of yours: its id or name")
    verb.add_argument("--description", help="what it is, in a sentence")


def compose(args: argparse.Namespace) -> None:
    given = {
        "weights": [float(part) for part in args.weights.split(",")] if args.weights else None,
        "way": args.way,
        "iou": args.iou,
        "min_score": args.min_score,
        "margin": args.margin,
        "only": [part.strip() for part in args.only.split(",") if part.strip()] if args.only else None,
        "name": args.name,
        "model": lookup.model(args.client, args.to) if args.to else None,
        "description": args.description,
    }
    fields: dict[str, Any] = {
        "kind": args.kind,
        "parts": [lookup.model_version(args.client, part) for part in args.parts],
    }
    fields |= {name: value for name, value in given.items() if value is not None}
    row = args.client.post("models/compose/", fields, once=True)
    if not args.json:
        print(row["id"])
    done(args, row, f"{row['model_name']} v{row['number']} is composed of {len(args.parts)} versions.")
