"""How well the presets do in a given time: `python -m tests.bench.presets bccd|fashion --minutes 10 --threads 2`.

Runs the preset exactly as a job does, in its own folder and process, and prints the figure of merit, the wall
seconds from start to exported model and the conditions, beside the references. Needs the public data
(tests/public_data.py), or --data.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests import public_data
from tests.presets import versions
from tests.presets.jobs import Job

REFERENCES = {
    "bccd": ("val/ap50", "0.885 prototype in 9.5 min; YOLO11n from scratch 0.552; floor 0.85, aim 0.90"),
    "fashion": ("val/accuracy", "0.937 prototype; HOG+SVM 0.926; floor 0.925, aim 0.94"),
}
RECIPES: dict[str, dict[str, Any]] = {
    "bccd": {"train_splits": "train,val", "eval_split": "test", "vertical_flip": 0.5},
    "fashion": {"train_splits": "train", "eval_split": "test"},
}


def main() -> None:
    """Make the dataset version, run the preset, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", choices=sorted(RECIPES))
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--data", type=Path, default=public_data.find(), required=not public_data.find())
    parser.add_argument("--params", default="{}", help="more parameters of the preset, as JSON")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="presets-bench-") as scratch:
        root = Path(scratch)
        if asked.which == "bccd":
            version, module = versions.bccd(asked.data / "bccd" / "BCCD", root / "bccd"), "detect"
        else:
            version, module = versions.fashion(asked.data / "fashion-mnist.zip", root / "fashion"), "classify"
        params = {"budget_minutes": asked.minutes, **RECIPES[asked.which], **json.loads(asked.params)}
        job = Job(root / "run", version, module, params, threads=asked.threads)
        began = time.monotonic()
        code = subprocess.run(job.argv, cwd=job.code, env=job.env, check=False).returncode
        seconds = time.monotonic() - began
        if code:
            sys.exit(f"the preset ended with exit code {code}")
        figures = json.loads((job.root / "outputs" / "metrics.json").read_text())
    key, reference = REFERENCES[asked.which]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = used.ru_utime + used.ru_stime
    print(f"{asked.which}: {key} {figures[key]:.4f}   (references: {reference})")
    print(f"wall {seconds:.0f} s of {60 * asked.minutes:.0f} s; {figures['steps']} steps, {figures['epochs']} epochs")
    print(f"checkpoints {100 * figures['checkpoint_share']:.2f} % of the time; scoring {figures['eval_seconds']:.0f} s")
    print(
        f"conditions: {asked.threads} threads of {os.cpu_count()} cores, {platform.machine()}; "
        f"{cpu_s:.0f} CPU-seconds used, {100 * cpu_s / (seconds * asked.threads):.0f} % of what {asked.threads} "
        f"free cores give; load {os.getloadavg()[2]:.1f} over the last quarter of an hour"
    )
    print(json.dumps({"bench": asked.which, "value": figures[key], "seconds": round(seconds), "cpu_s": round(cpu_s)}))


if __name__ == "__main__":
    main()
