"""Answer pictures without a server: what a service says of a picture, by the same lines. Starts from a package.

Needs ONNX Runtime, NumPy and Pillow, and no platform.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from inference.kit.model_io import decode
from inference.kit.model_io.engine import Loaded
from inference.kit.model_io.refusals import BadRequest
from inference.kit.model_io.requested import Requested
from inference.kit.model_io.spec import ModelSpec
from inference.kit.models import composed, model_json, selftest
from inference.kit.task_kinds import TASKS

TILES_AT_ONCE = 8
DIFFERS = 3  # exit code
OPTIONS = ("score_threshold", "iou_threshold", "max_detections", "top_k", "neighbours", "region")


class Model:
    """A loaded model of a folder with model.onnx and model.json."""

    def __init__(self, folder: Path, *, threads: int = 1) -> None:
        self.spec: ModelSpec = model_json.load(folder)
        self.engine: Loaded = composed.load(folder, self.spec, threads=threads)

    @classmethod
    def loaded(cls, spec: ModelSpec, engine: Loaded) -> Model:
        """A model that was loaded before."""
        made = cls.__new__(cls)
        made.spec, made.engine = spec, engine
        return made

    def predict(self, data: bytes, requested: Requested | None = None) -> dict[str, Any]:
        """What it says of one picture.

        Raises:
            BadImage: the bytes are no picture.
            BadRequest: it takes tensors, or whole pictures where a region is given.
        """
        requested = requested or Requested()
        if self.spec.input is None or self.spec.task not in TASKS:
            raise BadRequest("This model came without model.json; it takes tensors, not pictures.")
        answer = TASKS[self.spec.task].answer
        tiled = self.spec.input.overlap is not None
        if requested.region and (tiled or not answer.regions):
            raise BadRequest("This model looks at whole pictures. Leave out region.")
        image = decode.open_image(data)
        if tiled:
            spec, outputs, placement = self._tiles(image)
        else:
            sample, placement = decode.preprocess(image, self.spec.input, requested.region)
            spec, outputs = self.spec, self.engine.run({self.spec.input.name: sample[None]})
        (predictions,) = answer.read(spec, outputs, [placement], requested)
        size = {"width": placement.width, "height": placement.height}
        return {"task": self.spec.task, "image": size, "predictions": predictions}

    def _tiles(self, image: Any) -> tuple[ModelSpec, Mapping[str, Any], decode.Placement]:
        spec, joining = self.spec.input, TASKS[self.spec.task].answer.joining
        assert spec is not None
        if joining is None:
            raise BadRequest("Models of this task know no tiles.")
        remaining, joined = decode.looks(image, spec), joining(self.spec, image.size)
        at_once = TILES_AT_ONCE if self.engine.batches else 1
        while tiles := list(islice(remaining, at_once)):
            outputs = self.engine.run({spec.name: np.stack([sample for sample, _placement in tiles])})
            joined.add(outputs, [placement for _sample, placement in tiles])
        return joined.result()


def main(folder: Path, argv: Sequence[str]) -> int:
    """Print the predictions of the model in `folder` for each image, one line of JSON each; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="run.py", description="Print the predictions of the model for images, as JSON lines."
    )
    parser.add_argument("pictures", nargs="*", type=Path, metavar="picture")
    parser.add_argument("--check", action="store_true", help="compare with the answers that came along")
    parser.add_argument("--threads", type=int, default=1, help="processor threads (1)")
    for name in OPTIONS:
        parser.add_argument(f"--{name.replace('_', '-')}", metavar="X", help="as the service takes it")
    args = parser.parse_args(argv)
    if not (args.pictures or args.check):
        parser.error("name a picture, or --check")
    options = {name: getattr(args, name) for name in OPTIONS if getattr(args, name)}
    try:
        requested, model = Requested.from_query(options), Model(folder, threads=args.threads)
    except (BadRequest, model_json.BadModel, ValueError) as exc:
        sys.stderr.write(f"{exc}\n")
        return 2
    if args.check and (code := _checked(model, folder.parent / selftest.FOLDER)):
        return code
    failed = False
    for path in args.pictures:
        try:
            line = {"picture": str(path)} | model.predict(path.read_bytes(), requested)
        except (OSError, decode.BadImage, decode.BadBox, BadRequest) as exc:
            sys.stderr.write(f"{path}: {exc}\n")
            failed = True
            continue
        sys.stdout.write(f"{json.dumps(line, ensure_ascii=False)}\n")
    return 1 if failed else 0


def _checked(model: Model, folder: Path) -> int:
    """Print how the predictions on this host compare with those of a folder, as JSON; returns the exit code."""
    if not (folder / selftest.FILE).is_file():
        sys.stderr.write("This package came without answers to compare with. Give it a picture instead.\n")
        return 2
    result = selftest.check(model.predict, folder)
    sys.stdout.write(f"{json.dumps(result)}\n")
    return 0 if result["same"] else DIFFERS
