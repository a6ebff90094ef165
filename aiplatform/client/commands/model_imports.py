"""`aip models import`, `aip models measure`: models from elsewhere, and how fast a version answers here."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aiplatform.client import output, tus, waiting
from aiplatform.client.commands import lookup, registry
from aiplatform.client.commands.verbs import Noun, done, show_list
from aiplatform.client.errors import JOB_FAILED, OK, USAGE, ClientError
from aiplatform.client.http import Client
from aiplatform.client.output import Column
from aiplatform.client.packing import packed

MEASUREMENTS: list[Column] = [
    ("measured", lambda row: output.ago(row["created_at"])),
    ("machine", lambda row: row["figures"].get("node", "")),
    ("one at a time", lambda row: _with(row, "p50_ms", " ms")),
    ("95 %", lambda row: _with(row, "p95_ms", " ms")),
    ("in batches", lambda row: _with(row, "images_per_s", " images/s")),
    ("threads", lambda row: _with(row, "threads", "")),
    ("on", lambda row: row["figures"].get("processor", "")),
]
MEASURED_ON = ("cpus", "gpus", "device_model")
HARDWARE: list[Column] = [
    ("hardware", "hardware"),
    ("edge devices", "devices"),
    ("nodes", lambda row: ", ".join(row["nodes"])),
    ("one at a time", lambda row: f"{row['p50_ms']:g} ms"),
    ("95 %", lambda row: f"{row['p95_ms']:g} ms"),
    ("threads", "threads"),
    ("by", "provider"),
]


def _with(row: Mapping[str, Any], name: str, unit: str) -> str:
    value = row["figures"].get(name)
    return "" if value is None else f"{value:g}{unit}"


def add(models: Noun) -> None:
    verb = models.verb("import", bring_in, "Bring in a model from here, from your home, or from a job's outputs.")
    verb.add_argument("name", help="a new name makes a new model, that of your own one a further version")
    verb.add_argument("file", type=Path, nargs="*", help=".onnx, .safetensors, .pt, an archive, or a model's folder")
    verb.add_argument("--home", metavar="PATH", help="a file or a folder in your home on the platform instead")
    verb.add_argument("--job", type=int, metavar="N", help="the outputs of this job instead")
    verb.add_argument("--path", help="with --job: a file or a folder of its outputs")
    declaring(verb)
    verb.add_argument("--description", help="what it is, in a sentence; of a new model")
    verb.add_argument("--wait", action="store_true", help="wait until an archive of torch was read; 6 when it was not")
    verb = models.verb("measure", measure, "Measure how fast a version answers, and show what was measured before.")
    verb.add_argument("model", help=registry.VERSION)
    verb.add_argument("--cpus", type=float, help="processor cores")
    verb.add_argument("--gpus", type=int, choices=[0, 1], help="1 measures on a card")
    verb.add_argument("--card", dest="device_model", help="measures on a card of this model")
    verb.add_argument("--no-wait", action="store_true", help="only queue it")
    verb.add_argument("--list", action="store_true", help="only show what was measured")
    verb = models.verb("hardware", hardware, "Show how fast a version answers on each kind of hardware.")
    verb.add_argument("model", help=registry.VERSION)


def declaring(verb: argparse.ArgumentParser) -> None:
    """Options that say what the files of a model do not."""
    verb.add_argument("--task", help="what the model is for, such as detection")
    verb.add_argument("--labels", metavar="FILE", help="a label a line, or JSON; - reads standard input")
    verb.add_argument("--layout", help="how its outputs are laid out, such as logits, yolo or detr")
    verb.add_argument(
        "--pixels", help="what pixels become: imagenet, unit (0..1), signed (-1..1), bytes (0..255), *_bgr"
    )
    verb.add_argument("--size", type=_size, metavar="WxH", help="of its input, where the file leaves that free")
    verb.add_argument("--resize", choices=["stretch", "letterbox"], help="how pictures come into the input")


def _size(text: str) -> tuple[int, int]:
    width, cross, height = text.lower().replace("×", "x").partition("x")
    if not cross or not width.isdecimal() or not height.isdecimal():
        raise argparse.ArgumentTypeError("write it as 640x480")
    return int(width), int(height)


def bring_in(args: argparse.Namespace) -> int | None:
    """Send the file or name where it lies; of an archive of torch follow the job that reads it."""
    ways = [bool(args.file), args.home is not None, args.job is not None]
    if sum(ways) != 1:
        raise ClientError("Name files, or --home PATH, or --job N: one of them.", USAGE)
    fields: dict[str, Any] = declared(args) | {"path": args.home or args.path, "job": args.job}
    model = own(args.client, args.name)
    if model is None:
        fields |= {"name": args.name, "description": args.description}
    fields = {name: value for name, value in fields.items() if value is not None}
    if args.file:
        single = len(args.file) == 1 and not args.file[0].is_dir()
        fields["upload"] = tus.upload(args.client, args.file[0] if single else packed(args.file), quiet=args.json)
    row = args.client.post("models/" if model is None else f"models/{model}/versions/", fields, once=True)
    if "act" not in row:
        done(args, row, f"{row['model_name']} v{row['number']} is in the registry: {row['task']}.")
        return None
    if not args.wait:
        done(args, row, f"Job {row['job']} reads the files; they become a version when it has ended.")
        return None
    row = waiting.until_over(args.client, f"model-tasks/{row['id']}/")
    made = args.client.get(f"model-versions/{row['made']}/") if row["made"] else None
    said = f"{made['model_name']} v{made['number']} is in the registry." if made else row["refused"] or row["sentence"]
    done(args, made or row, said)
    return OK if made else JOB_FAILED


def declared(args: argparse.Namespace) -> dict[str, Any]:
    """What the options of `declaring` say, as the API has it."""
    fields: dict[str, Any] = {name: getattr(args, name) for name in ("task", "layout", "pixels", "resize")}
    if args.size:
        fields["width"], fields["height"] = args.size
    if args.labels:
        fields["labels"] = _text(args.labels)
    return {name: value for name, value in fields.items() if value is not None}


def _text(path: str) -> str:
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise ClientError(f"{path} cannot be read: {exc}", USAGE) from None


def own(client: Client, name: str) -> int | None:
    """Id of one's own model of a name, or by its number; None where the name is free."""
    if name.isdigit():
        return int(name)
    me = client.get("me/")["username"]
    rows = client.pages("models/", search=name)
    return next((int(row["id"]) for row in rows if row["name"] == name and row["owner"] == me), None)


def measure(args: argparse.Namespace) -> int | None:
    """Queue a measurement, wait for it, and show all there are."""
    version = lookup.model_version(args.client, args.model)
    route = f"model-versions/{version}/measurements/"
    code: int | None = None
    if not args.list:
        fields = {name: value for name in MEASURED_ON if (value := getattr(args, name)) is not None}
        task = args.client.post(route, fields, once=True)
        if args.no_wait:
            done(args, task, f"Job {task['job']} measures it.")
            return None
        task = waiting.until_over(args.client, f"model-tasks/{task['id']}/")
        if not task["figures"]:
            done(args, task, task["refused"] or task["sentence"])
            return JOB_FAILED
        code = OK
    show_list(args, args.client.get(route), MEASUREMENTS, empty="Not measured yet.")
    return code


def hardware(args: argparse.Namespace) -> None:
    """What edge devices and nodes found."""
    rows = args.client.get(f"model-versions/{lookup.model_version(args.client, args.model)}/hardware/")
    show_list(args, rows, HARDWARE, empty="Timed nowhere yet. aip models measure does, and so do edge devices.")
