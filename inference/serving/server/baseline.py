"""`python -m inference.serving.server.baseline`: statistics of the images of a dataset and of the predictions.

Shown to the model as a service shows what its callers send. Leaves outputs/baseline.json, a tally of
inference/kit/models/statistics.py.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from inference.kit.model_io.refusals import Refusal
from inference.kit.model_io.requested import Requested
from inference.kit.models import composed, descriptor, model_json, statistics
from inference.kit.task_kinds import TASKS
from inference.serving.server.service import Call, Service
from inference.serving.server.settings import Settings

MAX_IMAGES = 500  # images, spread evenly over the manifest
MIN_HELD_OUT = 100  # held back images
MAX_DURATION_S = 600.0


def select_images(dataset: Path) -> list[str]:
    """Return paths of images below images/ that represent the data of a version.

    Those held back from its training, where there are enough: a network is surer of what it has learned by heart.
    """
    with (dataset / "manifest.jsonl").open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file if line.strip()]
    held_back = [row for row in rows if row.get("split") in ("val", "test")]
    learned = [row for row in rows if row.get("split") == "train"]
    usable = held_back if len(held_back) >= MIN_HELD_OUT else learned or rows
    step = max(1.0, len(usable) / MAX_IMAGES)
    return [usable[int(index * step)]["path"] for index in range(min(MAX_IMAGES, len(usable)))]


async def count(model: Path, dataset: Path, *, threads: int) -> statistics.Tally:
    """Run the model on the images and count."""
    spec, tally, began = model_json.load(model), statistics.empty(), time.monotonic()
    engine = composed.load(model, spec, threads=threads)
    service = Service(Settings(model_dir=model, statistics=False), spec, engine)
    service.start()
    best_only = TASKS[spec.task].answer.best_only
    looks: list[Sequence[float]] = []
    try:
        for path in select_images(dataset):
            data = (dataset / "images" / path).read_bytes()
            try:
                response = await service.predict(data, Requested(), Call(time.monotonic() + 60), lambda: None)
                features = statistics.read(data, max_pixels=service.settings.max_pixels)
            except (Refusal, ValueError, OSError) as exc:
                sys.stdout.write(f"{path} is left out: {exc}\n")
                continue
            looks.append(features.looks)
            statistics.add(tally, features, statistics.counted(response["predictions"], best_only=best_only))
            if time.monotonic() - began > MAX_DURATION_S:
                break
    finally:
        await service.stop()
    rare = descriptor.chance(looks)
    return tally | ({"chance": {"halves": len(looks) // 2, "rare": rare}} if rare else {})


def main() -> int:
    outputs = Path(os.environ["AIP_OUTPUT_DIR"])
    threads = max(1, int(float(os.environ.get("OMP_NUM_THREADS") or 1)))
    model, dataset = Path(os.environ["AIP_MODEL_DIR"]), Path(os.environ["AIP_DATASET_DIR"])
    tally = asyncio.run(count(model, dataset, threads=threads))
    if not tally["images"]:
        (outputs / "refused.json").write_text(json.dumps({"code": "no_images", "facts": {}}))
        return 1
    (outputs / "baseline.json").write_text(json.dumps(tally))
    sys.stdout.write(f"Counted {tally['images']} images.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
