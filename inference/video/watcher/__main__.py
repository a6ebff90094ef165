"""`python -m inference.video.watcher`: analyze AIP_VIDEO with the model of AIP_MODEL_DIR.

Writes summary, events and the annotated video.
"""

from __future__ import annotations

import sys

from inference.kit.model_io.memory import keep_freed
from inference.kit.samples.run import Run
from inference.video.watcher import pyav

SUSPENDED = 75


def main() -> int:
    """Return the exit code: 0 watched (also after "finish"), 75 suspended, 1 refused (the message is printed)."""
    keep_freed()
    if pyav.is_missing():
        print(pyav.MISSING_PYAV_TEXT, flush=True)
        return 1
    # what needs PyAV comes after the look for it
    from inference.video.watcher.inputs import Suspended, Unwatched, create_watch  # noqa: PLC0415  imports PyAV

    run = Run.from_env()
    run.outputs.mkdir(parents=True, exist_ok=True)
    run.report(0, phase="loading")
    try:
        create_watch(run).all()
    except Suspended:
        print("Suspended; the segments that are done are kept.", flush=True)
        return SUSPENDED
    except Unwatched as exc:
        print(exc, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
