"""`python -m inference.registry.import_check`: run the variants of AIP_PARAMS with the model of AIP_TRY_DIR.

Writes outputs/tried.json.

A model may run for ever inside of a single call, which nothing in this program can end: an alarm does, and what it
would have said of that stands in outputs/refused.json from the beginning.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

from inference.registry.import_check import samples
from inference.registry.import_check.trial_runs import run_trials

MAX_MEMORY_BYTES = 12 << 30  # bytes of address space, beside some times the size of the model
TIMES_LONGER = 2  # than the time after which nothing new is begun


def main() -> int:
    outputs, home = Path(os.environ["AIP_OUTPUT_DIR"]), Path(os.environ["AIP_TRY_DIR"])
    params = json.loads(Path(os.environ["AIP_PARAMS"]).read_text())
    model = home / params["weights"]
    refuse(outputs, "too_long", seconds=TIMES_LONGER * params["seconds"])
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process, whatever library it is in
    signal.alarm(TIMES_LONGER * params["seconds"])
    limit = MAX_MEMORY_BYTES + 4 * model.stat().st_size
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    threads = max(1, int(float(os.environ.get("OMP_NUM_THREADS") or 1)))
    try:
        data, images = (os.environ.get(name, "") for name in ("AIP_DATASET_DIR", "AIP_IMAGES_DIR"))
        pictures = samples.load(home / "pictures", data, images, params, outputs / "pictures")
        result = run_trials(model, pictures, params, threads=threads, report=report)
    except samples.NoPictures:
        return refuse(outputs, "no_pictures")
    except Exception as error:  # noqa: BLE001  whatever ONNX Runtime finds in somebody's file
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        return refuse(outputs, "not_opened", error=reason)
    signal.alarm(0)
    (outputs / "tried.json").write_text(json.dumps(result, allow_nan=False))
    (outputs / "refused.json").unlink()
    sys.stdout.write(f"Tried {result['tried']} ways on {len(pictures)} pictures in {result['seconds']} s\n")
    return 0


def report(phase: str, done: int, total: int) -> None:
    """Append how far the trial is to the metrics of the run, where it has them."""
    if file := os.environ.get("AIP_METRICS_FILE"):
        counted = {"phase_done": done, "phase_total": total} if total else {}
        line = json.dumps({"step": done, "time": time.time(), "phase": phase, **counted})
        with Path(file).open("a", encoding="utf-8") as metrics:
            metrics.write(f"{line}\n")


def refuse(outputs: Path, code: str, **facts: Any) -> int:
    """Say why nothing came of it; gives the exit code."""
    (outputs / "refused.json").write_text(json.dumps({"code": code, "facts": facts}))
    if code != "too_long":
        sys.stdout.write(f"Nothing was tried: {code} {facts}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
