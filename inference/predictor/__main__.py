"""`python -m inference.predictor`: answer what is missing, leave outputs/chunks/ and outputs/summary.json."""

from __future__ import annotations

import sys

from inference.evaluator import groups
from inference.evaluator.predict import Suspended
from inference.evaluator.run import Run
from inference.predictor.part import Part
from inference.predictor.samples import NoPictures
from inference.server import model_json
from inference.server.memory import keep_freed

SUSPENDED = 75


def main() -> int:
    """Return the exit code: 0 predicted (also after "finish"), 75 suspended, 1 refused (the message is printed)."""
    keep_freed()
    try:
        Part(Run.from_env()).all()
    except Suspended:
        print("Suspended; the chunks that are whole are kept.", flush=True)
        return SUSPENDED
    except (NoPictures, model_json.BadModel, groups.NoGroups) as exc:
        print(exc, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
