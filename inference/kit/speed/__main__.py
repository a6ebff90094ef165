"""`python -m inference.kit.speed`: run the model of AIP_MODEL_DIR on made-up pictures, leave outputs/speed.json."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from inference.kit.speed.speed import Unmeasurable, measured


def main() -> int:
    outputs = Path(os.environ["AIP_OUTPUT_DIR"])
    threads = max(1, int(float(os.environ.get("OMP_NUM_THREADS") or 1)))
    try:
        figures = measured(Path(os.environ["AIP_MODEL_DIR"]), threads=threads)
    except Unmeasurable as refused:
        (outputs / "refused.json").write_text(json.dumps({"code": "no_shape", "facts": {"name": str(refused)}}))
        sys.stdout.write(f"Not measured: the size of the input {refused} is free\n")
        return 1
    (outputs / "speed.json").write_text(json.dumps(figures))
    sys.stdout.write(f"{figures}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
