"""`python -m inference.conversion.converter`: convert the model of AIP_MODEL_DIR.

Writes outputs/conversion.json and the variants.
"""

from __future__ import annotations

import shutil
import sys

from inference.conversion.converter.convert import Conversion
from inference.kit.model_io.memory import keep_freed
from inference.kit.models import model_json
from inference.kit.prediction.predictor import Suspended
from inference.kit.samples import ground_truth
from inference.kit.samples.run import Run
from training.presets import groups

SUSPENDED = 75


def main() -> int:
    """Return the exit code: 0 converted, 75 suspended, 1 refused (the message is printed)."""
    keep_freed()
    run = Run.from_env()
    run.report(0, phase="loading")
    try:
        Conversion(run).run_all()
    except Suspended:
        print("Suspended; the variants that are done are kept.", flush=True)
        return SUSPENDED
    except (ground_truth.Unfit, model_json.BadModel, groups.NoGroups) as exc:
        print(exc, flush=True)
        return 1
    finally:
        shutil.rmtree(run.outputs / "work", ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
