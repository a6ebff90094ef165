"""The job kind `prediction`: what the queue calls to prepare, check and end one."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform import env
from aiplatform.lib import wording
from aiplatform.lib.files import write_json
from datasets.models import DatasetVersion
from inference.batch import predictions, sources
from inference.batch.models import Prediction
from inference.batch.predictor.chunks import FOLDER
from inference.registry import retention, training_data
from inference.registry.models import ModelVersion
from inference.registry.run_code import DEVICE_KINDS, Vanished, copy_code
from workers.core.kinds import Capabilities, Fact, JobKind, Launch
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir
from workers.jobs.resource_request import cluster_for


class PredictionKind(JobKind):
    """`python -m inference.batch.predictor` with a version, of many pictures."""

    name = predictions.KIND
    device_kinds = DEVICE_KINDS
    label = gettext_lazy("Batch prediction")
    plural = gettext_lazy("Batch predictions")
    hint = gettext_lazy("Predictions for many images at once")
    icon = "predict"
    order = 67
    list_page = "inference:prediction-list"
    step = False
    view_action = Action.EVALUATIONS_VIEW
    submit_action = Action.EVALUATIONS_SUBMIT
    can = Capabilities(pause=True, suspend=True, finish=True, restore=True)
    about_restore = gettext_lazy("Continues after the finished chunks.")
    related = ("prediction",)

    def prepare(self, job: Job, attempt: Attempt, run: RunDir) -> Launch:
        prediction = Prediction.objects.select_related("version__model", "data__dataset", "job__owner").get(job=job)
        model, data = prediction.version, prediction.data
        if model is None or (data is None and not prediction.folder):
            raise Vanished(wording.message("prediction.gone"))
        copy_code(run, "kit", "batch/predictor")
        training = training_data.for_model(model, owner=job.owner)
        params = {**prediction.params, "split": prediction.split, "learned": training and training.for_run()}
        write_json(run.params, params | {"max_pixels": env.MAX_IMAGE_PIXELS})
        earlier = [folder for folder in self._earlier(job, attempt) if folder.is_dir()]
        environ = {"AIP_MODEL_DIR": str(model.path), "AIP_EARLIER": json.dumps([str(folder) for folder in earlier])}
        readable = [model.path, *earlier, *([training.version.path] if training else [])]
        if data is not None:
            datasets = [{"name": data.dataset.name, "role": "eval", "dir": str(data.path)}]
            environ |= {"AIP_DATASET_DIR": str(data.path), "AIP_DATASETS": json.dumps(datasets)}
            environ |= {"AIP_IMAGES_DIR": str(data.images_path)}
            readable += data.folders
        else:
            root = sources.folder(prediction.folder, by=job.owner)
            environ |= {"AIP_IMAGES_DIR": str(root)}
            readable.append(root)
        if prediction.is_listed:
            run.inputs.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(prediction.listing, run.inputs / prediction.listing.name)
            environ |= {"AIP_SAMPLES": str(run.inputs / prediction.listing.name)}
        argv = [sys.executable, "-m", "inference.batch.predictor"]
        return Launch(argv=argv, env=environ, read_only=readable, own_network=True)

    def _earlier(self, job: Job, attempt: Attempt) -> list[Path]:
        """Where earlier attempts put their chunks, the newest first: a killed one left no checkpoint of its last."""
        return [RunDir.for_attempt(job.pk, number).outputs / FOLDER for number in range(attempt.number - 1, 0, -1)]

    def ended(self, job: Job, attempt: Attempt) -> None:
        predictions.publish(job, attempt)

    def check_restore(self, job: Job) -> None:
        prediction = Prediction.objects.get(job=job)
        model = ModelVersion.objects.usable_by(job.owner).filter(pk=prediction.version_id or 0)
        data = DatasetVersion.objects.usable_by(job.owner).filter(pk=prediction.data_id or 0)
        if not model.exists() or not (prediction.folder or data.exists()):
            raise Vanished(_("You can no longer access the model or the dataset of this prediction."))
        if prediction.folder:
            sources.folder(prediction.folder, by=job.owner)
        cluster_for(job.owner, job.cluster)

    def url(self, job: Job) -> str:
        return reverse("inference:prediction-detail", args=[job.prediction.pk])

    def facts(self, job: Job) -> list[Fact]:
        prediction = Prediction.objects.filter(job=job).first()
        if prediction is None:
            return []
        return [
            Fact(gettext_lazy("Model"), prediction.model_label),
            Fact(gettext_lazy("Images"), prediction.source_label),
        ]

    def count(self, user: User) -> int:
        return Prediction.objects.visible_to(user).count()


HOLDER = retention.Holder(
    "prediction",
    gettext_lazy("batch prediction %(name)s of %(owner)s"),
    lambda version: retention.unfinished(Prediction.objects.filter(version=version)),
)
