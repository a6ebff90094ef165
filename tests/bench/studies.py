"""What pruning saves: `python -m tests.bench.studies [--images 2000] [--epochs 8] [--trials 20] [--minutes 30]`.

On a part of Fashion-MNIST the classifier is trained with its hand-set defaults; then one study runs all of its trials
to their end, and another, with the same sampler and seed and so with the same parameters, prunes them by successive
halving. Printed are the accuracies, what each study computed (core-hours of its trials, and optimizer steps), and the
ratio of the two. A real platform on a throw-away folder; `--minutes` is the longest all of it may take.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

from aiplatform.client import tus
from aiplatform.client.config import Config
from aiplatform.client.http import Client
from tests.journeys.up import first_admin, running
from tests.public_data import find

KEY = "val/accuracy"
SPACE = ["lr = 0.02 .. 1 log", "weight_decay = 1e-5 .. 0.01 log", "label_smoothing = 0 .. 0.2", "net_width = 16 .. 32"]


def main() -> None:
    """Train by hand, search in full and with pruning, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=2000, help="to learn from; a quarter as many to score on")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--factor", type=int, default=2, help="of successive halving")
    parser.add_argument("--warmup", type=int, default=2, help="points that every trial may have")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=60.0, help="longest time of all of it")
    asked = parser.parse_args()
    source = find("fashion-mnist.zip")
    if source is None:
        sys.exit("fashion-mnist.zip lies in no shared/data above this checkout.")
    with tempfile.TemporaryDirectory(prefix="studies-bench-") as scratch, running(Path(scratch) / "data") as up:
        end = time.monotonic() + asked.minutes * 60
        client = Client(Config(url=up.url, token=first_admin(up)))
        archive = _part(source, Path(scratch) / "fashion.zip", asked.images)
        params = {"budget_minutes": 0, "epochs": asked.epochs, "eval_share": 1.0, "checkpoint_minutes": 60}
        upload = tus.upload(client, archive, quiet=True)
        body = {"name": "by-hand", "preset": "classify", "params": params, "cpus": 1, "upload": upload}
        plan = client.post("training/planned/", body, once=True)["id"]
        row = _until(lambda: client.get(f"training/planned/{plan}/"), lambda one: one["training"], end)
        number = row["training"]
        over = ("succeeded", "failed", "stopped", "lost")
        by_hand = _until(lambda: client.get(f"training/jobs/{number}/"), lambda one: one["state"] in over, end)
        accuracy = by_hand["metrics"][KEY]
        print(f"by hand      accuracy {accuracy:.4f} in {by_hand['metrics']['seconds']:.0f} s", flush=True)
        training = {
            "preset": "classify",
            "version": by_hand["version"],
            "params": params,
            "cpus": 1,
            "gpus_per_node": 0,
        }
        pruners = {"in full": None, "pruned": {"name": "asha", "warmup": asked.warmup, "factor": asked.factor}}
        found = {name: _search(client, asked, name, training, pruner, end) for name, pruner in pruners.items()}
        _say(found, accuracy)
    load = os.getloadavg()[0]
    print(f"{asked.images} images, {asked.epochs} epochs, {asked.trials} trials, {asked.at_once} at once")
    print(f"{os.cpu_count()} cores, {platform.machine()}, load {load:.1f}")


def _part(source: Path, target: Path, images: int) -> Path:
    """An archive of some of the images of each class; those to score on are of the other split."""
    with zipfile.ZipFile(source) as whole, zipfile.ZipFile(target, "w") as part:
        names = [name for name in whole.namelist() if name.endswith(".png")]
        random.Random(0).shuffle(names)
        for split, most in (("train", images), ("test", images // 4)):
            for kind in range(10):
                own = [name for name in names if f"{split}/{kind}/" in f"/{name}"][: most // 10]
                for place, name in enumerate(own):
                    part.writestr(f"{'val' if split == 'test' else 'train'}/{kind}/{place}.png", whole.read(name))
    return target


def _search(
    client: Client, asked: argparse.Namespace, name: str, training: dict[str, Any], pruner: Any, end: float
) -> dict[str, Any]:
    """One study to its end, and what it took."""
    body = {
        "name": name, "training": training, "space": SPACE, "objectives": [KEY], "sampler": "random", "pruner": pruner,
        "seed": asked.seed, "max_trials": asked.trials, "at_once": asked.at_once,
    }  # fmt: skip
    began = time.monotonic()
    study = client.post("studies/", body, once=True)["id"]
    row = _until(lambda: client.get(f"studies/{study}/"), lambda one: one["state"] in ("done", "failed"), end)
    trials = client.get(f"studies/{study}/trials/")
    steps = 0
    for trial in trials:
        curves = client.get(f"training/jobs/{trial['training']}/metrics/", key=[KEY])
        steps += int(max((step for points in curves["series"].values() for step, _value in points), default=0))
    row |= {"wall_s": time.monotonic() - began, "steps": steps, "rows": trials}
    best = row["best"]["values"][0] if row["best"] else float("nan")
    print(
        f"{name:<12} accuracy {best:.4f}, {row['hours']:.3f} core-h, {steps} steps, {row['wall_s']:.0f} s, "
        f"{row['counts']['complete']} completed, {row['counts']['pruned']} pruned, {row['counts']['failed']} failed",
        flush=True,
    )
    return row


def _say(found: dict[str, dict[str, Any]], by_hand: float) -> None:
    full, pruned = found["in full"], found["pruned"]
    same = [a["params"] for a in full["rows"]] == [b["params"] for b in pruned["rows"]]
    best = pruned["best"]["values"][0] if pruned["best"] else float("nan")
    print(f"the same parameters in both: {'yes' if same else 'no'}")
    print(f"compute of the pruned one: {100 * pruned['hours'] / full['hours']:.0f} % of the core-hours, "
          f"{100 * pruned['steps'] / max(1, full['steps']):.0f} % of the steps (at most 60 % wanted)")  # fmt: skip
    print(f"pruned study reaches what was set by hand: {'yes' if best >= by_hand else 'no'} ({best - by_hand:+.4f})")


def _until(look: Any, good: Any, end: float) -> Any:
    """Look until it is good; ends the program when the time is over."""
    while True:
        row = look()
        if good(row):
            return row
        if time.monotonic() > end:
            sys.exit(f"The time is over: {row.get('state')}, {row.get('counts') or row.get('sentence')}")
        time.sleep(1.0)


if __name__ == "__main__":
    main()
