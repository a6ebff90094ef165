"""The texts of messages about services and evaluations that rows keep as code and facts."""

from __future__ import annotations

from aiplatform.lib import wording
from inference.batch.messages import PREDICTION
from inference.conversion.messages import CONVERSION
from inference.evaluation.messages import EVALUATION, OWN_SCRIPT, PROMOTION
from inference.registry.messages import MODEL_TASK
from inference.serving.messages import SERVICE, TRIAL
from inference.video.messages import VIDEO


def register() -> None:
    """Make all texts known; called once when the app is ready."""
    wording.register("service", SERVICE)
    wording.register("evaluation", EVALUATION)
    wording.register("own_script", OWN_SCRIPT)
    wording.register("trial", TRIAL)
    wording.register("conversion", CONVERSION)
    wording.register("video", VIDEO)
    wording.register("prediction", PREDICTION)
    wording.register("promotion", PROMOTION)
    wording.register("model_task", MODEL_TASK)
