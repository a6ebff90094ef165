"""The job kind `prediction`: what the queue calls to prepare, check and end one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from django.utils.translation import gettext_lazy

from aiplatform import env
from inference.batch import predictions, sources
from inference.batch.models import Prediction
from inference.batch.predictor.chunks import FOLDER
from inference.evaluation.jobs.kind import ModelJobKind
from workers.core.kinds import Launch
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir
from workers.core.states import JobPhase


class PredictionKind(ModelJobKind):
    """`python -m inference.batch.predictor` with a version, of many pictures."""

    name = predictions.KIND
    rows = Prediction
    packages = ("batch/predictor",)
    source = (gettext_lazy("Images"), "source_label")
    label = gettext_lazy("Batch prediction")
    plural = gettext_lazy("Batch predictions")
    hint = gettext_lazy("Predictions for many images at once")
    icon = "predict"
    order = 72
    phases = (JobPhase.LOADING, JobPhase.PREDICTING)
    section = "endpoints"
    about_restore = gettext_lazy("Continues after the finished chunks.")
    holder_text = gettext_lazy("batch prediction %(name)s of %(owner)s")

    def prepare(self, job: Job, attempt: Attempt, run: RunDir) -> Launch:
        prediction = self.row(job)
        if prediction.data is None and not prediction.folder:
            self.refuse_launch()
        earlier = [folder for folder in self._earlier(job, attempt) if folder.is_dir()]
        root = prediction.data.images_path if prediction.data else sources.folder(prediction.folder, by=job.owner)
        environ = {"AIP_IMAGES_DIR": str(root), "AIP_EARLIER": json.dumps([str(folder) for folder in earlier])}
        if prediction.is_listed:
            run.inputs.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(prediction.listing, run.inputs / prediction.listing.name)
            environ |= {"AIP_SAMPLES": str(run.inputs / prediction.listing.name)}
        readable = earlier if prediction.data else [*earlier, root]
        params = {**prediction.params, "max_pixels": env.MAX_IMAGE_PIXELS}
        return self.launch(prediction, run, params, env=environ, read_only=readable)

    def _earlier(self, job: Job, attempt: Attempt) -> list[Path]:
        """Where earlier attempts put their chunks, the newest first: a killed one left no checkpoint of its last."""
        return [RunDir.for_attempt(job.pk, number).outputs / FOLDER for number in range(attempt.number - 1, 0, -1)]

    def ended(self, job: Job, attempt: Attempt) -> None:
        predictions.publish(job, attempt)

    def has_source(self, row: Any) -> bool:
        if not row.folder:
            return super().has_source(row)
        return bool(sources.folder(row.folder, by=row.job.owner))
