"""`aip models import`, `measure`, `try`, `use`: models from elsewhere, and their speed here."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from aiplatform.client import tus, waiting
from aiplatform.client.commands import lookup, registry
from aiplatform.client.errors import JOB_FAILED, OK, USAGE, ClientError
from aiplatform.client.http import Client
from aiplatform.client.options import fields, flag, option, read_text, repeated
from aiplatform.client.output import columns
from aiplatform.client.packing import packed
from aiplatform.client.verbs import Verb, done, show_list


def _best_predictions(images: list[list[dict[str, Any]]]) -> str:
    """The best prediction for each image, as "cat 0.91 | nothing"."""
    best = [f"{rows[0].get('name', '')} {rows[0].get('score', 0):.2f}" if rows else "nothing" for rows in images]
    return " | ".join(best)


CONFIGURATIONS = columns(
    "=rank, score=score|percent, layout=title, how=about|joined, found=answers|best", best=_best_predictions
)


def _try(args: argparse.Namespace) -> int | None:
    """Send model and images, wait for the job, and print the configurations."""
    if not args.picture and not args.dataset:
        raise ClientError("Specify test images: --picture FILE, or --dataset NAME.", USAGE)
    body = fields(args, DECLARATION)
    model = find_own(args.client, args.name or args.file.stem)
    body |= {"name": args.name or args.file.stem} if model is None else {"model": model}
    if args.dataset:
        body["version"] = lookup.any_version(args.client, args.dataset)
    body["upload"] = tus.upload(args.client, args.file, quiet=args.json)
    body["picture_uploads"] = [tus.upload(args.client, image, quiet=args.json) for image in args.picture]
    row = args.client.post("model-tasks/try/", body, once=True)
    if args.no_wait:
        done(args, row, f"Job {row['job']} tests it: see aip models ways {row['id']}.")
        return None
    row = waiting.until_over(args.client, f"model-tasks/{row['id']}/")
    if not row["figures"]:
        done(args, row, row["refused"] or row["sentence"])
        return JOB_FAILED
    return _print_configurations(args, row)


def _ways(args: argparse.Namespace) -> int:
    return _print_configurations(args, args.client.get(f"model-tasks/{args.trial}/"))


def _print_configurations(args: argparse.Namespace, row: dict[str, Any]) -> int:
    rows = args.client.get(f"model-tasks/{row['id']}/ways/")["ways"]
    show_list(args, rows, CONFIGURATIONS, empty=row["refused"] or row["sentence"] or "The job has not ended.")
    if not args.json and rows:
        hint = row["refused"] or f"aip models use {row['id']} 1 creates a version from the first."
        print(hint if not row["made"] else f"Version {row['made']} was created from it.")
    return OK if rows and not row["refused"] else JOB_FAILED


MEASUREMENTS = columns(
    "measured=created_at|ago, node=figures.node, single image=figures.p50_ms|ms, p95=figures.p95_ms|ms, "
    "batches=figures.images_per_s|rate, threads=figures.threads|g, on=figures.processor",
    ms=lambda value: _with_unit(value, "ms"),
    rate=lambda value: _with_unit(value, "images/s"),
)
HARDWARE = columns(
    "hardware, edge devices=devices, nodes=nodes|joined, single image=p50_ms|ms, p95=p95_ms|ms, threads, by=provider",
    ms=lambda value: _with_unit(value, "ms"),
)


def _with_unit(value: float | None, unit: str) -> str:
    return "" if value is None else f"{value:g} {unit}"


def _size(text: str) -> dict[str, int]:
    width, cross, height = text.lower().replace("×", "x").partition("x")
    if not cross or not width.isdecimal() or not height.isdecimal():
        raise argparse.ArgumentTypeError("write it as 640x480")
    return {"width": int(width), "height": int(height)}


#: What the files of a model do not state.
DECLARATION = (
    option("--task", help="task of the model, such as detection"),
    option("--labels", metavar="FILE", convert=read_text, help="one label per line, or JSON; - reads standard input"),
    option("--layout", help="output layout, such as logits, yolo or detr"),
    option("--pixels", help="pixel normalization: imagenet, unit (0..1), signed (-1..1), bytes (0..255), *_bgr"),
    option("--size", type=_size, metavar="WxH", field="*", help="input size, if the file does not define it"),
    option("--resize", choices=["stretch", "letterbox"], help="resize mode of images"),
)
MEASUREMENT = (
    option("--cpus", type=float, help="CPU cores"),
    option("--gpus", type=int, choices=[0, 1], help="1 measures on a GPU"),
    option("--card", dest="device_model", help="measures on a GPU of this model"),
)


def _import(args: argparse.Namespace) -> int | None:
    """Send the file or its path on the platform; of an archive of torch follow the job that reads it."""
    if sum((bool(args.file), args.home is not None, args.job is not None)) != 1:
        raise ClientError("Specify files, or --home PATH, or --job N: exactly one.", USAGE)
    body: dict[str, Any] = fields(args, DECLARATION) | {"path": args.home or args.path, "job": args.job}
    model = find_own(args.client, args.name)
    if model is None:
        body |= {"name": args.name, "description": args.description}
    body = {name: value for name, value in body.items() if value is not None}
    if args.file:
        single = len(args.file) == 1 and not args.file[0].is_dir()
        body["upload"] = tus.upload(args.client, args.file[0] if single else packed(args.file), quiet=args.json)
    row = args.client.post("models/" if model is None else f"models/{model}/versions/", body, once=True)
    if "act" not in row:
        done(args, row, _registered(row))
        return None
    if not args.wait:
        done(args, row, f"Job {row['job']} reads the files; they become a version when it has completed.")
        return None
    row = waiting.until_over(args.client, f"model-tasks/{row['id']}/")
    if not row["made"]:
        done(args, row, row["refused"] or row["sentence"])
        return JOB_FAILED
    version = args.client.get(f"model-versions/{row['made']}/")
    done(args, version, _registered(version))
    return OK


def _registered(version: dict[str, Any]) -> str:
    """Name the version, what was detected in its files, and the options that replace a guess."""
    lines = [f"{version['model_name']} v{version['number']} is in the registry: {version['task']}."]
    detected = version["facts"].get("detected") or []
    if detected:
        lines.append("Detected: " + ", ".join(f"{row['field']} {row['value']} ({row['source']})" for row in detected))
    if version["task"] == "tensor" and detected:
        lines.append("Guesses are not used. Confirm them with aip models try, or by --task, --labels and --pixels.")
    return "\n".join(lines)


def find_own(client: Client, name: str) -> int | None:
    """Id of one's own model of a name, or by its number; None where the name is free."""
    if name.isdigit():
        return int(name)
    me = client.get("me/")["username"]
    rows = client.pages("models/", search=name)
    return next((int(row["id"]) for row in rows if row["name"] == name and row["owner"] == me), None)


def _measure(args: argparse.Namespace) -> int | None:
    """Queue a measurement, wait for it, and print all measurements."""
    route = f"model-versions/{lookup.model_version(args.client, args.model)}/measurements/"
    code: int | None = None
    if not args.list:
        task = args.client.post(route, fields(args, MEASUREMENT), once=True)
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


TRIAL = option("trial", type=int, help="its number, as shown by try")
TRIAL_VERBS = (
    Verb("try", "Test an ONNX model on images in all possible interpretations, best first.", (
        option("file", type=Path, help=".onnx, or an archive with one"),
        repeated("--picture", type=Path, default=[], help="test images; up to six"),
        option("--dataset", help="dataset version whose images with most objects are used: id, NAME, NAME:2"),
        option("--name", help="name of the created model; default: from the file"),
        *DECLARATION,
        flag("--no-wait", help="submit only"),
    ), run=_try),
    Verb("ways", "Show the results of a test.", (TRIAL,), run=_ways),
    Verb("use", "Create a version from one of the tested interpretations.", (
        TRIAL,
        option("rank", type=int, help="of the interpretation; 1 is the best"),
        option("--name", help="name of the model, instead of the one given for the test"),
    ), post="model-tasks/{trial}/use/", once=True,
         done="{row[model_name]} v{row[number]} is in the registry: {row[task]}."),
)  # fmt: skip
VERBS = (
    Verb("import", "Import a model from local files, from your home, or from the outputs of a job.", (
        option("name", help="a new name creates a new model, the name of your own model adds a version"),
        option("file", type=Path, nargs="*", help=".onnx, .safetensors, .pt, an archive, or a model folder"),
        option("--home", metavar="PATH", help="a file or a folder in your home on the platform instead"),
        option("--job", type=int, metavar="N", help="the outputs of this job instead"),
        option("--path", help="with --job: a file or a folder of its outputs"),
        *DECLARATION,
        option("--description", help="description of a new model in one sentence"),
        flag("--wait", help="wait until a PyTorch archive is converted; exit code 6 on failure"),
    ), run=_import),
    Verb("measure", "Measure the speed of a version, and show earlier measurements.", (
        registry.MODEL_VERSION, *MEASUREMENT,
        flag("--no-wait", help="submit only"),
        flag("--list", help="only show measurements"),
    ), run=_measure),
    Verb("hardware", "Show the speed of a version on each kind of hardware.", (registry.MODEL_VERSION,),
         get="model-versions/{model_version}/hardware/", table=HARDWARE,
         empty="Not measured yet. Measure it: aip models measure"),
)  # fmt: skip
