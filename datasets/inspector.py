"""Inspect the images named on standard input: `python -m datasets.inspector ROOT`, started by `services.inspecting`.

A line in is a JSON list of paths below ROOT, a line out the list of what was found in them. It ends with its input.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from aiplatform.lib.errors import DomainError
from aiplatform.lib.files import open_beneath
from datasets import pictures

READY = b"ready\n"  # the first line out: whoever waits knows that it started


def inspect(root: Path, source: str) -> dict[str, Any]:
    """Facts of the image `source` below `root` as `pictures.Inspected` has them, or {"error": a sentence}."""
    try:
        with os.fdopen(open_beneath(root, source), "rb") as file:
            return pictures.inspect(file)._asdict()
    except pictures.BadImage as exc:
        return {"error": str(exc)}
    except (OSError, DomainError) as exc:
        return {"error": f"The file cannot be read ({exc})."}


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C means the worker, whose end closes our input
    root, out = Path(sys.argv[1]), sys.stdout.buffer
    try:
        out.write(READY)
        out.flush()
        for line in sys.stdin.buffer:
            out.write(json.dumps([inspect(root, source) for source in json.loads(line)]).encode() + b"\n")
            out.flush()
    except BrokenPipeError:
        os._exit(1)  # nobody listens any more


if __name__ == "__main__":
    main()
