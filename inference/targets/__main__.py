"""`python -m inference.targets`: convert the model of AIP_MODEL_DIR, leave outputs/conversion.json and its variants."""

from __future__ import annotations

import shutil
import sys

from inference.evaluator import groups, truth
from inference.evaluator.predict import Suspended
from inference.evaluator.run import Run
from inference.server import model_json
from inference.server.memory import keep_freed
from inference.targets.convert import Conversion

SUSPENDED = 75


def main() -> int:
    """Return the exit code: 0 converted, 75 suspended, 1 refused (the message is printed)."""
    keep_freed()
    run = Run.from_env()
    try:
        Conversion(run).all()
    except Suspended:
        print("Suspended; the variants that are done are kept.", flush=True)
        return SUSPENDED
    except (truth.Unfit, model_json.BadModel, groups.NoGroups) as exc:
        print(exc, flush=True)
        return 1
    finally:
        shutil.rmtree(run.outputs / "work", ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
