"""The job kind `evaluation`."""

from __future__ import annotations

import json
import sys

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib import wording
from aiplatform.lib.files import write_json
from datasets.models import DatasetVersion
from inference.evaluation import evaluations, promotion
from inference.evaluation.custom_scripts import launch as scripted
from inference.evaluation.models import Evaluation
from inference.registry import retention, training_data
from inference.registry.models import ModelVersion
from inference.registry.run_code import DEVICE_KINDS, Vanished, copy_code
from inference.registry.selftest import self_tests
from workers.core.kinds import Capabilities, JobKind, Launch, Way
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir
from workers.images.services import uses
from workers.jobs.resource_request import cluster_for


class EvaluationKind(JobKind):
    """`python -m inference.evaluation.evaluator` on a dataset version."""

    name = evaluations.KIND
    device_kinds = DEVICE_KINDS
    label = gettext_lazy("Evaluation")
    plural = gettext_lazy("Evaluations")
    hint = gettext_lazy("Evaluate on other data")
    icon = "evaluation"
    order = 60
    list_page = "inference:evaluation-list"
    view_action = Action.EVALUATIONS_VIEW
    submit_action = Action.EVALUATIONS_SUBMIT
    can = Capabilities(pause=True, suspend=True, finish=True, restore=True)
    related = ("evaluation",)

    def prepare(self, job: Job, attempt: Attempt, run: RunDir) -> Launch:
        rows = Evaluation.objects.select_related("model_version__model", "version__dataset", "script__code")
        evaluation = rows.get(job=job)
        if evaluation.is_scripted:
            return scripted.launch(evaluation, job, attempt, run)
        model, version = evaluation.model_version, evaluation.version
        if model is None or version is None:
            raise Vanished(wording.message("evaluation.gone"))
        copy_code(run, "kit", "evaluation/evaluator")
        training = training_data.for_model(model, owner=job.owner)
        write_json(
            run.params, {**evaluation.params, "split": evaluation.split, "learned": training and training.for_run()}
        )
        datasets = [{"name": version.dataset.name, "role": "eval", "dir": str(version.path)}]
        return Launch(
            argv=[sys.executable, "-m", "inference.evaluation.evaluator"],
            env={
                "AIP_MODEL_DIR": str(model.path),
                "AIP_DATASET_DIR": str(version.path),
                "AIP_DATASETS": json.dumps(datasets),
            },
            read_only=[model.path, *version.folders, *([training.version.path] if training else [])],
        )

    def ended(self, job: Job, attempt: Attempt) -> None:
        evaluations.publish(job, attempt)
        rows = Evaluation.objects.filter(job=job).select_related(
            "job__owner", "model_version__model", "version__dataset"
        )
        evaluation = rows.first()
        if evaluation is not None:
            if not evaluation.is_scripted:  # such a script writes no samples
                self_tests.keep_evaluated(evaluation)
            promotion.judge(evaluation)

    def capabilities(self, job: Job) -> Capabilities:
        """A script is paused by signals and runs again from its beginning; half of it has no figures."""
        scripted = Evaluation.objects.filter(job=job, is_scripted=True).exists()
        return Capabilities(pause=True, finish=False, restore=True) if scripted else self.can

    def again(self, job: Job, user: User) -> list[Way]:
        row = Evaluation.objects.visible_to(user).filter(job=job).first()
        if row is None or not user.can(Action.EVALUATIONS_SUBMIT):
            return []
        description = _("Fills in the form with the same model, data, parameters and code.")
        url = f"{reverse('inference:evaluation-new')}?evaluation={row.pk}"
        return [Way("clone", _("Clone"), "clone", description, url=url)]

    def check_restore(self, job: Job) -> None:
        evaluation = Evaluation.objects.get(job=job)
        model = ModelVersion.objects.usable_by(job.owner).filter(pk=evaluation.model_version_id or 0)
        version = DatasetVersion.objects.usable_by(job.owner).filter(pk=evaluation.version_id or 0)
        if not model.exists() or not version.exists():
            raise Vanished(_("You can no longer access the model or the dataset of this evaluation."))
        cluster_for(job.owner, job.cluster)
        uses.check_restore(job)

    def url(self, job: Job) -> str:
        return reverse("inference:evaluation-detail", args=[job.evaluation.pk])


HOLDER = retention.Holder(
    "evaluation",
    gettext_lazy("evaluation %(name)s of %(owner)s"),
    lambda version: retention.unfinished(Evaluation.objects.filter(model_version=version)),
)
