"""`aip models convert`, `conversions`, `conversion`, `keep`: smaller and faster variants of a model."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from aiplatform.client import output, waiting
from aiplatform.client.commands import lookup, registry, resources
from aiplatform.client.commands.verbs import Noun, done, paging, show_list
from aiplatform.client.output import Column

FORMS = (
    "fp32 (simplified), fp16, int8 (calibrated), int8_dynamic, openvino, int8_openvino; with an NVIDIA card (--gpus 1) "
    "tensorrt, tensorrt_fp16"
)
LISTED: list[Column] = [
    ("id", "id"),
    ("name", "name"),
    ("model", "model"),
    ("dataset", "dataset"),
    ("state", "state"),
    ("progress", output.progress),
    ("variants", lambda row: ", ".join(f"{variant['target']}: {variant['state']}" for variant in row["variants"])),
    ("made", lambda row: output.ago(row.get("created_at"))),
]


def _number(key: str, digits: int) -> Any:
    def shown(row: Mapping[str, Any]) -> str:
        value = row.get(key)
        return "" if value is None else f"{value:.{digits}f}"

    return shown


def _speed(key: str, digits: int) -> Any:
    def shown(row: Mapping[str, Any]) -> str:
        value = (row.get("speed") or {}).get(key)
        return "" if value is None else f"{value:.{digits}f}"

    return shown


ROWS: list[Column] = [
    ("variant", "target"),
    ("state", lambda row: "" if row["target"] == "source" else row["state"]),
    ("figure", _number("value", 4)),
    ("loss", _number("loss", 4)),
    ("agreement", _number("agreement", 4)),
    ("ms", _speed("p50_ms", 3)),
    ("img/s", _speed("images_per_s", 0)),
    ("size", lambda row: output.size(row.get("size_bytes")) if row.get("size_bytes") else ""),
    ("error", "error"),
]


def add(models: Noun) -> None:
    """The verbs of conversions."""
    verb = models.verb("convert", convert, "Make smaller and faster variants of a version.")
    verb.add_argument("model", help=registry.VERSION)
    verb.add_argument("--data", required=True, help="annotated dataset version: its id, NAME, or NAME:VERSION")
    verb.add_argument("--to", help=f"variants, separated by commas: {FORMS}; fp16,int8 when left out")
    verb.add_argument("--split", help="what is measured on: train, val, test, unseen, or auto (the default)")
    verb.add_argument("--looks", type=int, help="pictures for calibration; 300 when left out")
    verb.add_argument("--method", choices=["minmax", "entropy", "percentile"], help="how calibration finds ranges")
    verb.add_argument("--max-loss", type=float, help="by how much the main figure may be lower; 0.01 when left out")
    verb.add_argument("--keep", choices=["fastest", "all", "none"], help="which accepted variants become versions")
    verb.add_argument("--name", help="a name for the conversion")
    resources.options(verb, gpus="cards; 0 runs on the processor")
    verb.add_argument("--wait", action="store_true", help="wait for the end and show the table; 6 when it failed")
    paging(models.verb("conversions", conversion_list, "List conversions."))
    models.verb("conversion", show, "Show the variants of a conversion.").add_argument("id")
    verb = models.verb("keep", keep, "Make a variant of a conversion a version of its model.")
    verb.add_argument("id", help="the conversion")
    verb.add_argument("variant", help=FORMS)


def convert(args: argparse.Namespace) -> int | None:
    given = {
        "targets": [part.strip() for part in args.to.split(",") if part.strip()] if args.to else None,
        "split": args.split,
        "looks": args.looks,
        "method": args.method,
        "max_loss": args.max_loss,
        "keep": args.keep,
        "name": args.name,
    }
    fields: dict[str, Any] = {
        "model_version": lookup.model_version(args.client, args.model),
        "version": lookup.version(args.client, args.data),
    }
    fields |= {name: value for name, value in given.items() if value is not None} | resources.fields(args)
    row = args.client.post("conversions/", fields, once=True)
    if args.wait:
        row = waiting.until_over(args.client, f"conversions/{row['id']}/")
        _show(args, row["id"])
        return waiting.exit_code(row)
    if not args.json:
        print(row["id"])
    done(args, row, f"Queued as conversion {row['id']}.")
    return None


def conversion_list(args: argparse.Namespace) -> None:
    rows = args.client.pages("conversions/", limit=args.limit)
    show_list(args, rows, LISTED, empty="No conversions. aip models convert begins one.")


def show(args: argparse.Namespace) -> None:
    _show(args, args.id)


def _show(args: argparse.Namespace, number: Any) -> None:
    rows = args.client.get(f"conversions/{number}/results/")["rows"]
    show_list(args, rows, ROWS, empty="No variant is made yet.")


def keep(args: argparse.Namespace) -> None:
    row = args.client.post(f"conversions/{args.id}/keep/", {"target": args.variant})
    done(args, row, f"{args.variant} is {row['model_name']} v{row['number']}.")
