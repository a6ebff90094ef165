"""`aip train preview`, `layers`, `profile`: what a model would see, what it learned, and what its steps take."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from aiplatform.client import output, waiting
from aiplatform.client.commands import lookup, outputs, submitting
from aiplatform.client.errors import NOT_FOUND, USAGE, ClientError
from aiplatform.client.options import option
from aiplatform.client.output import columns
from aiplatform.client.verbs import Verb


def _preview(args: argparse.Namespace) -> int:
    if args.code or args.home_code or args.snapshot or args.command or args.script:
        raise ClientError("Custom code has no preview: specify --preset and --data.", USAGE)
    args.extra = f"{args.extra or ''} -ShowBatch".strip()
    fields = submitting.requested(args) | submitting.data_fields(args, custom=False)
    job = args.client.post("training/jobs/", fields, once=True)
    return _print_result(args, job, "preview/preview.json", _print_preview)


def _layers(args: argparse.Namespace) -> int:
    number = lookup.training(args.client, args.id)
    route, fields = f"training/jobs/{number}/layers/", {"checkpoint": args.checkpoint}
    if args.image and not args.image.is_file():
        raise ClientError(f"Image {args.image} not found.", NOT_FOUND)
    if args.image:
        job = args.client.post_file(route, fields, "image", args.image)
    else:
        job = args.client.post(route, fields, once=True)
    return _print_result(args, job, "layers/layers.json", _print_layers)


def _profile(args: argparse.Namespace) -> int:
    number = lookup.training(args.client, args.id)
    if not args.client.get(f"training/jobs/{number}/")["preset"]:
        return _own_profile(args, number)
    job = args.client.post(f"training/jobs/{number}/profile/", {"steps": args.steps}, once=True)
    return _print_result(args, job, "profile/profile.json", _print_profile)


def _own_profile(args: argparse.Namespace, number: int) -> int:
    """Print the profile that a custom script recorded; the exit code."""
    noted = args.client.get(f"training/jobs/{number}/profile/")
    if args.json:
        output.as_json(noted)
        return 0
    _print_profile(noted)
    for name, share in noted["named"].items():
        print(f"other, {output.clean(name)} {100 * share:.0f} %")
    for item in noted["advice"]:
        print(f"- {output.clean(item['text'])}")
    return 0


def _print_result(args: argparse.Namespace, job: dict[str, Any], path: str, show: Any) -> int:
    """Wait for a job, fetch its images, print its result; the exit code."""
    if not args.json:
        output.say(f"Queued as training {job['id']}.")
    row = waiting.until_over(args.client, f"training/jobs/{job['id']}/")
    if code := waiting.exit_code(row):
        output.say(output.clean(row.get("sentence") or f"The job ended in state {row.get('state')}."))
        return code
    folder = args.to or outputs.folder_of(row["job"])
    sentence = outputs.bring_back(args.client, row["job"], folder, quiet=args.json)
    result = json.loads((folder / path).read_text(encoding="utf-8"))
    if args.json:
        output.as_json(result)
    else:
        show(result)
        output.say(f"{sentence}.")
    return 0


def _print_preview(preview: dict[str, Any]) -> None:
    images, size = preview["images"], preview.get("input") or ["?", "?"]
    print(f"{images['learn']} training images, {images['score']} evaluation images, input {size[0]}×{size[1]} px")
    for row in preview["classes"]:
        print(f"{row['count']:>9} {preview['counted']} of {output.clean(str(row['name']))}")
    if preview.get("lost"):
        print(f"{preview['lost']} of {preview['objects']} objects are smaller than 8 px: choose a larger width")
    if "epoch_s" in preview:
        print(
            f"{preview['step_ms']:.0f} ms per step over {preview['steps_timed']} steps, {preview['epoch_s']:.1f} "
            "s per epoch"
        )


def _print_layers(report: dict[str, Any]) -> None:
    for layer in report["layers"]:
        shape = " × ".join(str(side) for side in layer["shape"])
        print(f"{layer['number']:>3}  {output.clean(layer['name']):40} {layer['kind']:8} {shape}")
    for cam in report["cams"]:
        print(f"image {cam['image']}: {output.clean(str(cam['class']))} {cam['score']:.2f}, see cam-{cam['image']}.jpg")


def _print_profile(profile: dict[str, Any]) -> None:
    shares = ", ".join(f"{name} {100 * share:.0f} %" for name, share in profile["shares"].items())
    print(f"{profile['step_ms']:.1f} ms per step on {output.clean(profile['device'])}: {output.clean(shares)}")
    if profile["operations"]:
        output.table(profile["operations"][:15], OPERATIONS)


OPERATIONS = columns("operation=name, calls, own CPU ms=self_cpu_ms, GPU ms=self_device_ms")
FOLDER = option("--to", type=Path, help="folder for the images; default: aip-outputs/JOB")
ID = option("id", help="id or name")
VERBS = (
    Verb("preview", "Preview the model input of a training and its time per epoch, without training.",
         (*submitting.SUBMIT, FOLDER), run=_preview),
    Verb("layers", "Show the activations of each layer of a training, and Grad-CAM for classifiers.", (
        ID,
        option("--checkpoint", default="", help="a name listed by `aip train checkpoints`; default: the newest"),
        option("--image", type=Path, help="input image; default: evaluation images"),
        FOLDER,
    ), run=_layers),
    Verb("profile",
         "Show where the time of training steps is spent: of a preset by a short job, of custom code by its own "
         "profile.",
         (ID, option("--steps", type=int, default=10, help="number of steps (10)"), FOLDER), run=_profile),
)  # fmt: skip
