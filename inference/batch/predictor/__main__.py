"""`python -m inference.batch.predictor`: answer what is missing, leave outputs/chunks/ and outputs/summary.json."""

from __future__ import annotations

import sys

from inference.batch.predictor.shard import Part
from inference.kit.model_io.memory import keep_freed
from inference.kit.models import model_json
from inference.kit.prediction.predictor import Suspended
from inference.kit.prediction.samples import NoPictures
from inference.kit.samples.run import Run
from training.presets import groups

SUSPENDED = 75


def main() -> int:
    """Return the exit code: 0 predicted (also after "finish"), 75 suspended, 1 refused (the message is printed)."""
    keep_freed()
    run = Run.from_env()
    run.report(0, phase="loading")
    try:
        Part(run).run_all()
    except Suspended:
        print("Suspended; the chunks that are whole are kept.", flush=True)
        return SUSPENDED
    except (NoPictures, model_json.BadModel, groups.NoGroups) as exc:
        print(exc, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
