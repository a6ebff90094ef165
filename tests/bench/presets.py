"""How well the presets do in a given time: `python -m tests.bench.presets bccd --minutes 10`.

Runs the preset exactly as a job does, in its own folder and process, and prints the figure of merit, the wall
seconds from start to exported model as a ratio to the budget, how true the promised time left was, and the conditions,
beside the references. `--busy 2` lets two endless loops work beside it. `bccd`, `cells` (its boxes as ellipses), `nuts`
and `fashion` need the public data (tests/public_data.py), or --data; `demo` is what `up --demo` trains on, `symbols`
small things on pictures, `symbols-large` and `symbols-tiled` the same on larger ones, whole and in tiles, `outlines`
filled shapes to segment, `outlines-large` and `outlines-tiled` small ones on large pictures, whole and in tiles (with a
mask for each object: `instances-large` and `instances-tiled`), `keypoints` figures with joints, `instances-nuts` the
photographs of `nuts` with a mask for each object. `--judge` evaluates the exported model as the platform does: in the
images' own pixels, where a training without tiles scores a segmenter at the size of its input.

`--overhead` measures instead what running as a job costs detect, classify and segment, see overhead.py.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from inference.evaluation.evaluator.__main__ import evaluate
from inference.kit.samples.run import Run
from tests import public_data
from tests.bench import overhead
from tests.presets import versions
from tests.presets.jobs import Job

REFERENCES = {
    "bccd": ("val/ap50", "0.885 prototype in 9.5 min; YOLO11n from scratch 0.552; floor 0.85, aim 0.90"),
    "demo": ("val/ap50", "0.11 and 0.14 before; floor 0.60 on busy cores, 0.85 on free ones in 2 min"),
    "symbols": ("val/ap50", "nothing earlier on this set; photographs like it reached 0.28 in 12 min at 320 pixels"),
    "symbols-large": ("val/ap50", "nothing earlier on this set"),
    "symbols-tiled": ("val/ap50", "symbols-large at as many CPU-seconds"),
    "outlines": ("val/miou", "0.443 in 816 steps before; floor 0.85, aim 0.92"),
    "outlines-large": ("val/miou", "nothing earlier on this set"),
    "outlines-tiled": ("val/miou", "outlines-large at as many steps"),
    "instances-large": ("val/mask_ap50", "nothing earlier on this set"),
    "instances-tiled": ("val/mask_ap50", "instances-large at as many steps"),
    "nuts": ("val/miou", "nothing earlier on this split; 12 photographs to learn from, 6 to score on"),
    "instances-nuts": ("val/mask_ap50", "GrabCut in the true boxes: python -m tests.bench.grabcut"),
    "cells": ("val/miou", "nothing earlier: the ellipses in the boxes of bccd stand for the cells"),
    "keypoints": ("val/nme", "nothing earlier on this set; floor 0.03, aim 0.015, by the root of the box's area"),
    "fashion": ("val/accuracy", "0.937 prototype; HOG+SVM 0.926; floor 0.925, aim 0.94"),
    "embed-fashion": ("val/recall_1", "0.912 without whitening and with blurred images; floor 0.88, aim 0.92"),
    "anomaly": ("val/auroc", "nothing earlier on this set; floor 0.95"),
    "crops": ("val/balanced_accuracy", "nothing earlier: the boxes of bccd cut out, one class each"),
    "tagging": ("val/map", "nothing earlier: the shapes of outlines as tags of their pictures"),
    "demo-hog": ("val/ap50", "0.898 in 109 CPU-seconds before; the detector by a network: demo"),
    "fashion-hog": ("val/accuracy", "HOG+SVM of the data's own table 0.926"),
}
RECIPES: dict[str, dict[str, Any]] = {
    "bccd": {"train_splits": "train,val", "eval_split": "test", "vertical_flip": 0.5},
    "demo": {"eval_split": "test", "flip": 0.0},
    "symbols": {},
    "symbols-large": {},
    "symbols-tiled": {"tile": 320},
    "outlines": {"vertical_flip": 0.5},
    "outlines-large": {"vertical_flip": 0.5},
    "outlines-tiled": {"vertical_flip": 0.5, "tile": 320},
    "instances-large": {"vertical_flip": 0.5},
    "instances-tiled": {"vertical_flip": 0.5, "tile": 320},
    "nuts": {"vertical_flip": 0.5},
    "keypoints": {},
    "instances-nuts": {"vertical_flip": 0.5},
    "cells": {"train_splits": "train,val", "eval_split": "test", "vertical_flip": 0.5},
    "fashion": {"train_splits": "train", "eval_split": "test"},
    "embed-fashion": {"train_splits": "train", "eval_split": "test"},
    "anomaly": {"eval_split": "test"},
    "crops": {
        **{"train_splits": "train,val", "eval_split": "test", "architecture": "lite0", "class_weights": "balanced"},
        **{"width": 96, "height": 96, "vertical_flip": 0.5},
    },
    "fashion-hog": {"train_splits": "train", "eval_split": "test"},
    "tagging": {"vertical_flip": 0.5, "width": 160},
    "demo-hog": {"eval_split": "test"},
}
MODULES = {
    "anomaly": "anomaly",
    "crops": "classify",
    "fashion": "classify",
    "embed-fashion": "embed",
    "fashion-hog": "hog_svm",
    **dict.fromkeys(("outlines", "outlines-large", "outlines-tiled"), "segment"),
    **dict.fromkeys(("instances-large", "instances-tiled"), "instances"),
    "nuts": "segment",
    "cells": "segment",
    "keypoints": "keypoints",
    "tagging": "tag",
    "demo-hog": "hog_detect",
    "instances-nuts": "instances",
}
MAKERS: dict[str, Callable[[Path], Path]] = {
    **dict.fromkeys(("outlines", "tagging"), versions.outlines),
    **dict.fromkeys(
        ("outlines-large", "outlines-tiled", "instances-large", "instances-tiled"), versions.large_outlines
    ),
    "keypoints": versions.figures,
    **dict.fromkeys(("demo", "demo-hog"), versions.digits_demo),
    "anomaly": versions.defects,
    "symbols": versions.symbols,
    **dict.fromkeys(("symbols-large", "symbols-tiled"), versions.large_symbols),
}
#: recipe → (maker, its place in the folder of public data)
PUBLIC: dict[str, tuple[Callable[[Path, Path], Path], str]] = {
    **dict.fromkeys(("bccd", "cells"), (versions.bccd, "bccd/BCCD")),
    "crops": (versions.crops, "bccd/BCCD"),
    **dict.fromkeys(("nuts", "instances-nuts"), (versions.nuts, "nuts/coco")),
    **dict.fromkeys(("fashion", "embed-fashion", "fashion-hog"), (versions.fashion, "fashion-mnist.zip")),
}
UNTIMED = ("hog_svm", "hog_detect", "anomaly")  # presets without a budget: they end by themselves


def main() -> None:
    """Make the dataset version, run the preset, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", choices=sorted(RECIPES), nargs="?")
    parser.add_argument("--overhead", nargs="*", choices=sorted(overhead.CASES), metavar="PRESET", help="see above")
    parser.add_argument("--rounds", type=int, default=3, help="of --overhead")
    parser.add_argument("--seconds", type=float, default=5, help="of learning in each run of --overhead")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--busy", type=int, default=0, help="so many endless loops beside it")
    parser.add_argument("--data", type=Path, default=public_data.find(), help="folder with the public data")
    parser.add_argument("--judge", action="store_true", help="evaluate the exported model in the images' own pixels")
    parser.add_argument("--params", default="{}", help="more parameters of the preset, as JSON")
    asked = parser.parse_args()
    if asked.overhead is not None:
        overhead.main(asked.rounds, asked.seconds, asked.overhead or list(overhead.CASES))
        return
    if asked.which is None:
        parser.error(f"name what to train: {', '.join(sorted(RECIPES))}; or --overhead")
    with tempfile.TemporaryDirectory(prefix="presets-bench-") as scratch:
        root = Path(scratch)
        version = _version(asked.which, root / asked.which, asked.data)
        module = MODULES.get(asked.which, "detect")
        timed = {} if module in UNTIMED else {"budget_minutes": asked.minutes}
        params = {**timed, **RECIPES[asked.which], **json.loads(asked.params)}
        job = Job(root / "run", version, module, params, threads=asked.threads)
        with _busy(asked.busy):
            began = time.time()
            job.env["AIP_STARTED_AT"] = str(began)
            code = subprocess.run(job.argv, cwd=job.code, env=job.env, check=False).returncode
            seconds = time.time() - began
        if code:
            sys.exit(f"the preset ended with exit code {code}")
        figures = json.loads((job.root / "outputs" / "metrics.json").read_text())
        split = str(params.get("eval_split", "val"))
        judged = _judged(root / "judged", job.outputs / "model", version, split) if asked.judge else ""
        promises = _promises([json.loads(line) for line in job.metrics.read_text().splitlines()], began, seconds)
    key, reference = REFERENCES[asked.which]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = used.ru_utime + used.ru_stime
    print(f"{asked.which}: {key} {figures[key]:.4f}   (references: {reference})")
    if timed:
        print(
            f"wall {seconds:.0f} s of {60 * asked.minutes:.0f} s, ratio {seconds / max(60 * asked.minutes, 1e-9):.2f}; "
            f"{figures['steps']} steps, {figures['epochs']} epochs, slowed down {figures['slowdown']:.1f} times"
        )
        checkpoints = f"checkpoints {100 * figures['checkpoint_share']:.2f} % of the time"
        print(f"{checkpoints}; scoring {figures['eval_seconds']:.0f} s")
    else:
        print(f"wall {seconds:.0f} s; {figures['steps']} steps")
    print(promises)
    if judged:
        print(judged)
    print(
        f"conditions: {asked.threads} threads of {os.cpu_count()} cores, {platform.machine()}; "
        f"{cpu_s:.0f} CPU-seconds used, {100 * cpu_s / (seconds * asked.threads):.0f} % of what {asked.threads} "
        f"free cores give; load {os.getloadavg()[2]:.1f} over the last quarter of an hour"
    )
    print(json.dumps({"bench": asked.which, "value": figures[key], "seconds": round(seconds), "cpu_s": round(cpu_s)}))


def _version(which: str, folder: Path, public: Path | None) -> Path:
    if which in MAKERS:
        return MAKERS[which](folder)
    if public is None:
        sys.exit(f"{which} is public data that is not here; give its folder with --data.")
    make, place = PUBLIC[which]
    return make(public / place, folder)


def _judged(folder: Path, model: Path, version: Path, split: str) -> str:
    """The figures of an evaluation of the model."""
    (folder / "outputs").mkdir(parents=True)
    (folder / "params.json").write_text(json.dumps({"split": split}))
    places = {"PARAMS": "params.json", "METRICS_FILE": "metrics.jsonl", "CONTROL_FILE": "control"}
    places |= {"OUTPUT_DIR": "outputs", "CHECKPOINT_DIR": "checkpoints", "MODEL_DIR": model, "DATASET_DIR": version}
    run = Run.from_env({f"AIP_{name}": str(folder / place) for name, place in places.items()})
    summary = evaluate(run)["summary"]
    return "judged: " + ", ".join(f"{name} {value:.4f}" for name, value in summary.items() if value is not None)


@contextlib.contextmanager
def _busy(loops: int) -> Iterator[None]:
    """Keep `loops` cores busy for as long as the block lasts."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _loop in range(loops)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def _promises(lines: list[dict[str, Any]], began: float, seconds: float) -> str:
    """How far the promised ends were from the real one after a tenth of the time, as shares of the time left.

    Where that is less than a tenth of the whole, the tenth counts: the last seconds are no promise.
    """
    wrong, still = [], 0.0
    for line in lines:
        at = line["time"] - began
        if line.get("eta_s") and 0.1 * seconds <= at < seconds:
            wrong.append((line["eta_s"] - (seconds - at)) / max(seconds - at, seconds / 10))
    named = [line for line in lines if "phase" in line]
    took: dict[str, float] = {}
    ends = [*(line["time"] for line in named[1:]), began + seconds]
    for line, end in zip(named, ends, strict=True):
        took[line["phase"]] = took.get(line["phase"], 0.0) + end - line["time"]
    told = [(line["time"], line["eta_s"]) for line in lines if line.get("eta_s") is not None]
    for (before, left), (after, then) in itertools.pairwise(told):
        still = max(still, after - before if then >= left else 0.0)
    worst = f"{100 * min(wrong):+.0f} to {100 * max(wrong):+.0f} %" if wrong else "never told"
    parts = ", ".join(f"{phase} {length:.1f} s" for phase, length in took.items())
    return f"time left was wrong by {worst} and stood still for {still:.0f} s at most; {parts}"


if __name__ == "__main__":
    main()
