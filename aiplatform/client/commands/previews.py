"""`aip train preview`, `layers`, `profile`: what a model would see, what it learned, and what its steps take."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from aiplatform.client import output, waiting
from aiplatform.client.commands import lookup, outputs, submitting
from aiplatform.client.commands.verbs import Noun
from aiplatform.client.errors import NOT_FOUND, USAGE, ClientError


def add(train: Noun) -> None:
    verb = train.verb("preview", preview, "Show what a training would see and how long a pass takes; trains nothing.")
    submitting.options(verb)
    _folder(verb)
    verb = train.verb("layers", layers, "Show what each layer of a training answers, and where a classifier looked.")
    verb.add_argument("id", help="id or name")
    verb.add_argument("--checkpoint", default="", help="a name from `aip train checkpoints`; the newest when left out")
    verb.add_argument("--image", type=Path, help="what the model is given; images it is scored on when left out")
    _folder(verb)
    verb = train.verb(
        "profile",
        profile,
        "Say where the time of a training's steps goes: of a preset by a short job, of own code what it noted itself.",
    )
    verb.add_argument("id", help="id or name")
    verb.add_argument("--steps", type=int, default=10, help="so many steps (10)")
    _folder(verb)


def _folder(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--to", type=Path, help="folder for the pictures; aip-outputs/JOB when left out")


def preview(args: argparse.Namespace) -> int:
    if args.code or args.home_code or args.snapshot or args.command or args.script:
        raise ClientError("Own code has no preview: give --preset and --data.", USAGE)
    args.extra = f"{args.extra} -ShowBatch".strip()
    fields = submitting.requested(args) | submitting.data_fields(args, own=False)
    look = args.client.post("training/jobs/", fields, once=True)
    return _brought(args, look, "preview/preview.json", _say_preview)


def layers(args: argparse.Namespace) -> int:
    number = lookup.training(args.client, args.id)
    route, asked = f"training/jobs/{number}/layers/", {"checkpoint": args.checkpoint}
    if args.image and not args.image.is_file():
        raise ClientError(f"There is no image at {args.image}.", NOT_FOUND)
    if args.image:
        look = args.client.post_file(route, asked, "image", args.image)
    else:
        look = args.client.post(route, asked, once=True)
    return _brought(args, look, "layers/layers.json", _say_layers)


def profile(args: argparse.Namespace) -> int:
    number = lookup.training(args.client, args.id)
    if not args.client.get(f"training/jobs/{number}/")["preset"]:
        return _own_profile(args, number)
    look = args.client.post(f"training/jobs/{number}/profile/", {"steps": args.steps}, once=True)
    return _brought(args, look, "profile/profile.json", _say_profile)


def _own_profile(args: argparse.Namespace, number: int) -> int:
    """Print what a script of one's own noted; the exit code."""
    about = args.client.get(f"training/jobs/{number}/profile/")
    if args.json:
        output.as_json(about)
        return 0
    _say_profile(about)
    for name, share in about["named"].items():
        print(f"of the rest, {output.clean(name)} {100 * share:.0f} %")
    for one in about["advice"]:
        print(f"- {output.clean(one['text'])}")
    return 0


def _brought(args: argparse.Namespace, look: dict[str, Any], path: str, say: Any) -> int:
    """Wait for a look, fetch its pictures, say what it found; the exit code."""
    if not args.json:
        output.say(f"Queued as training {look['id']}.")
    row = waiting.until_over(args.client, f"training/jobs/{look['id']}/")
    if code := waiting.exit_code(row):
        output.say(output.clean(row.get("sentence") or f"It ended as {row.get('state')}."))
        return code
    folder = args.to or outputs.folder_of(row["job"])
    brought = outputs.bring_back(args.client, row["job"], folder, quiet=args.json)
    about = json.loads((folder / path).read_text(encoding="utf-8"))
    if args.json:
        output.as_json(about)
    else:
        say(about)
        output.say(f"{brought}.")
    return 0


def _say_preview(about: dict[str, Any]) -> None:
    images, size = about["images"], about.get("input") or ["?", "?"]
    print(f"{images['learn']} images to learn from, {images['score']} to score on, input {size[0]}×{size[1]} px")
    for one in about["classes"]:
        print(f"{one['count']:>9} {about['counted']} of {output.clean(str(one['name']))}")
    if about.get("lost"):
        print(f"{about['lost']} of {about['objects']} objects are smaller than 8 px: choose a larger width")
    if "epoch_s" in about:
        print(f"{about['step_ms']:.0f} ms a step over {about['steps_timed']} steps, {about['epoch_s']:.1f} s a pass")


def _say_layers(about: dict[str, Any]) -> None:
    for layer in about["layers"]:
        shape = " × ".join(str(side) for side in layer["shape"])
        print(f"{layer['number']:>3}  {output.clean(layer['name']):40} {layer['kind']:8} {shape}")
    for cam in about["cams"]:
        print(f"image {cam['image']}: {output.clean(str(cam['class']))} {cam['score']:.2f}, see cam-{cam['image']}.jpg")


def _say_profile(about: dict[str, Any]) -> None:
    shares = ", ".join(f"{name} {100 * share:.0f} %" for name, share in about["shares"].items())
    print(f"{about['step_ms']:.1f} ms a step on {output.clean(about['device'])}: {output.clean(shares)}")
    columns: list[output.Column] = [
        ("operation", "name"), ("calls", "calls"), ("own cpu ms", "self_cpu_ms"), ("card ms", "self_device_ms"),
    ]  # fmt: skip
    if about["operations"]:
        output.table(about["operations"][:15], columns)
