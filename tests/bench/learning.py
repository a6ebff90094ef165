"""What a training step and its images cost: `python -m tests.bench.learning [--against CHECKOUT]`.

Three figures, on one core and in CPU time, so that other work on the machine counts little: a step of the detector
(reading, augmentation, loss, gradients) at the size BCCD is learned at, the rate at which the image cache delivers
rows, and the rate at which Pillow decodes and shrinks the same JPEGs. With `--against` the same step is measured in
another checkout too, in turns, and the ratio printed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

SIZE = (640, 480)  # of the JPEGs
INPUT = (416, 320)
IMAGES, OBJECTS, BATCH = 64, 14, 2  # a batch of four is learned as two by each of two cores
ROUNDS, STEPS = 6, 8
ROOT = Path(__file__).parents[2]


def main() -> None:
    """Draw the pictures, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, help="another checkout of this project")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        _measure(asked.measure)
        return
    checkouts = [ROOT, *([asked.against.resolve()] if asked.against else [])]
    with tempfile.TemporaryDirectory(prefix="learning-bench-") as scratch:
        _draw(Path(scratch) / "version")
        found: list[list[dict[str, float]]] = [[] for _ in checkouts]
        for _ in range(ROUNDS):
            for place, checkout in enumerate(checkouts):
                found[place].append(_measured(checkout, Path(scratch)))
    own = {name: median(one[name] for one in found[0]) for name in found[0][0]}
    print(f"detector, {INPUT[0]}×{INPUT[1]}, batch {BATCH}, one core: step {1000 * own['step_s']:.0f} CPU-ms")
    if asked.against:
        theirs = median(one["step_s"] for one in found[1])
        print(f"  there {1000 * theirs:.0f} CPU-ms: {theirs / own['step_s']:.2f} times as fast here")
    print(f"images per CPU-second: image cache {own['cache']:.0f}, Pillow {own['pillow']:.0f}: "
          f"{own['cache'] / own['pillow']:.1f} times Pillow's rate")  # fmt: skip
    print(f"{os.cpu_count()} cores, {platform.machine()}, load {os.getloadavg()[0]:.1f}")


def _draw(folder: Path) -> None:
    """JPEGs of SIZE with OBJECTS boxes on each."""
    import numpy as np
    from PIL import Image

    from tests.presets import versions

    rng = np.random.default_rng(5)
    images, shapes = [], []
    (folder / "images").mkdir(parents=True)
    for number in range(IMAGES):
        coarse = Image.fromarray(rng.integers(0, 256, (60, 80, 3), dtype=np.uint8))
        coarse.resize(SIZE, Image.Resampling.BICUBIC).save(folder / "images" / f"{number}.jpg", quality=90)
        split = "train" if number else "val"
        images.append(
            {"path": f"{number}.jpg", "sha256": str(number), "width": SIZE[0], "height": SIZE[1], "split": split}
        )
        for _ in range(OBJECTS):
            side = float(rng.uniform(40, 120))
            x, y = (float(rng.uniform(0, length - side)) for length in SIZE)
            shapes.append({"image": number, "class": int(rng.integers(3)), "bbox": [x, y, side, side]})
    versions.write(folder, task="detection", classes=["a", "b", "c"], images=images, shapes=shapes)


def _measured(checkout: Path, scratch: Path) -> dict[str, float]:
    """What this file prints when the presets of `checkout` do the work."""
    command = [sys.executable, "-P", __file__, "--measure", str(scratch)]
    environment = {**os.environ, "PYTHONPATH": str(checkout / "training"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _measure(scratch: Path) -> None:
    """Print the median seconds of a step and the rates, as a line of JSON."""
    import torch
    from presets import detect, detect_card, image_cache
    from presets.ranks import Ranks
    from presets.run import Run

    torch.set_num_threads(1)
    places = {"AIP_DATASET_DIR": str(scratch / "version"), "AIP_CACHE_DIR": str(scratch / "cache")}
    run = Run.from_environment(places)
    params = detect_card.CARD.read({"width": INPUT[0], "height": INPUT[1], "strides": "8,16"})
    ranks = Ranks(0, 1, torch.device("cpu"))
    task = detect.Detection(run, params, ranks)
    model = task.model.to(memory_format=torch.channels_last)
    model.train()
    learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
    generator = torch.Generator().manual_seed(0)
    rows = list(range(BATCH))
    steps, batches = [], []
    for _ in range(STEPS + 2):
        began = time.thread_time()
        parts = task.loss(model, task.load(rows), task.draw(generator, BATCH), ranks)
        torch.autograd.grad(torch.stack(list(parts.values())).sum(), learning, allow_unused=True)
        steps.append(time.thread_time() - began)
    version, size = task.version, (*INPUT, 3, "stretch")
    for start in range(0, IMAGES - BATCH, BATCH):
        began = time.thread_time()
        task.image_cache.rows(list(range(start, start + BATCH)))
        batches.append(time.thread_time() - began)
    decoded = []
    for image in version.images:
        began = time.thread_time()
        image_cache.pixels(version.folder / "images" / image.path, *size)
        decoded.append(time.thread_time() - began)
    print(json.dumps({"step_s": median(steps[2:]), "cache": BATCH / median(batches), "pillow": 1 / median(decoded)}))


if __name__ == "__main__":
    main()
