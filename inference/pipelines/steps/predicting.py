"""The step that lets a model answer all pictures of a dataset version."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib import wording
from aiplatform.lib.errors import NotAllowed
from datasets.models import Dataset, DatasetVersion, Import
from datasets.services.imports import NotNow
from inference.batch import drafts, predictions
from inference.batch.models import PredictedData, Prediction
from inference.evaluation import thresholds
from inference.pipelines.kinds import Begun, Call, Done, Param, Port, StepFailed, StepKind, completed
from inference.pipelines.models import StepRun, reference
from inference.pipelines.steps import long_running, rows, versions
from inference.pipelines.steps.training import figures
from inference.registry import prediction_shapes
from inference.registry.models import ModelVersion
from workers.core.clock import now
from workers.jobs.resource_request import Resources

COUNTS = ("total", "done", "broken", "predictions", "images_per_s")
TIMEOUT = timedelta(hours=1)  # for another import of the dataset to be over


class PredictStep(StepKind):
    """Answers of a model to the pictures of a dataset version, as a version of their own where that is wanted."""

    name = "predict"
    label = gettext_lazy("Predict")
    description = gettext_lazy(
        "Runs a model on all images of a dataset version. The predictions can become annotations of its next "
        "version, for correction."
    )
    group = "ship"
    icon = "predict"
    computes = True
    needs = Action.EVALUATIONS_SUBMIT
    inputs = (Port("model", gettext_lazy("Model"), "model"), Port("data", gettext_lazy("Data"), "dataset"))
    outputs = (Port("figures", gettext_lazy("Metrics"), "figures"), Port("data", gettext_lazy("Data"), "dataset"))
    params = (
        Param("split", gettext_lazy("Split"), default="all", help=gettext_lazy(
            "test, val, train; unseen: images it was not trained on; all.")),
        Param("min_score", gettext_lazy("Minimum confidence"), form="number", default=None, low=0, high=1,
              help=gettext_lazy("Leave empty to use the best of its newest evaluation.")),
        Param("version", gettext_lazy("Create a dataset version from the predictions"), form="yesno", default=False),
        Param("gpus", gettext_lazy("GPUs"), form="whole", default=0, low=0, high=1),
        Param("cpus", gettext_lazy("Cores"), form="number", default=None, low=0.1, high=1024),
    )  # fmt: skip

    def check(self, params: Mapping[str, Any], user: User) -> None:
        if params.get("version") and not user.can(Action.DATASETS_EDIT):
            raise NotAllowed(wording.message("pipeline.owner_not_allowed"), field="version")

    def content(self, call: Call) -> Mapping[str, Any] | None:
        """The score, where it is left to the newest evaluation; and the dataset, where that gets a version."""
        data = rows.dataset_version(call.only("data"), call.user)
        return {"score": score_of(call), "into": data.dataset_id if call.params["version"] else None}

    def start(self, call: Call) -> Begun:
        self.check(call.params, call.user)
        model = rows.model_version(call.only("model"), call.user)
        data = rows.dataset_version(call.only("data"), call.user)
        if call.params["version"]:
            _check_draft(model, data, call.user)
        resources: Resources = {"gpus_per_node": call.params["gpus"]}
        if call.params["cpus"] is not None:
            resources["cpus"] = call.params["cpus"]
        prediction = predictions.submit(
            user=call.user,
            model_version=model,
            version=data,
            split="" if call.params["split"] == "all" else call.params["split"],
            score_threshold=call.params["min_score"],
            name=call.name,
            **resources,
        )
        stored = {"prediction": prediction.pk, "version": call.params["version"]}
        return Begun(job=prediction.job, stored=stored)

    def poll(self, row: StepRun) -> Done | None:
        job = completed(row)
        prediction = Prediction.objects.filter(job=job).select_related("job", "data__dataset").first()
        if prediction is None or not prediction.summary:
            raise StepFailed(wording.message("pipeline.predicted_nothing"))
        numbers = {name: prediction.summary[name] for name in COUNTS if name in prediction.summary}
        outputs: dict[str, Any] = {"figures": figures(numbers, row, prediction=prediction.pk)}
        if not row.kept["version"]:
            return Done(outputs)
        if "made" not in row.kept:
            _make(row, prediction)
            return None
        made = PredictedData.objects.select_related("intake__version__dataset").filter(pk=row.kept["made"]).first()
        intake = made.intake if made else None
        if intake is None or intake.state in (Import.State.FAILED, Import.State.CANCELLED):
            raise StepFailed(wording.message("pipeline.version_failed", text=intake.error if intake else ""))
        if intake.state != Import.State.DONE or intake.version is None:
            return None
        return Done(outputs | {"data": reference("dataset", intake.version)})

    def stop(self, row: StepRun) -> None:
        super().stop(row)
        made = PredictedData.objects.filter(pk=row.kept.get("made") or 0).first()
        versions.stop_import(made.intake_id if made else None)


def score_of(call: Call) -> float | None:
    """Return the lowest score of a prediction, as it is now."""
    min_score: float | None = call.params["min_score"]
    if min_score is not None:
        return min_score
    return thresholds.default_score(rows.model_version(call.only("model"), call.user), by=call.user)


def _check_draft(model: ModelVersion, data: DatasetVersion, user: User) -> None:
    """Refuse before it runs what `drafts.make` would refuse after it.

    Raises:
        CannotDraft, StepFailed.
    """
    if not prediction_shapes.draft_of(model.task):
        raise drafts.CannotDraft(_("Predictions of this task cannot become annotations. Download them instead."))
    if not Dataset.objects.editable_by(user).filter(pk=data.dataset_id).exists():
        raise StepFailed(wording.message("pipeline.data_not_yours", name=data.dataset.name))


def _make(row: StepRun, prediction: Prediction) -> None:
    """Begin to make the version; while the dataset takes another import in, at a later look."""
    owner = row.run.owner
    if not owner.is_active:
        raise NotAllowed(wording.message("pipeline.owner_not_allowed"))
    try:
        made = drafts.make(prediction, by=owner)
    except NotNow:
        ended = prediction.job.ended_at
        if ended is not None and now() - ended > TIMEOUT:
            raise
        return
    long_running.store(row, made=made.pk)
