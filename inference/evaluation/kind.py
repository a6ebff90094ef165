"""The job kind `evaluation`."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.access.permissions import Action
from accounts.models import User
from inference.evaluation import evaluations, promotion
from inference.evaluation.custom_scripts import launch as scripted
from inference.evaluation.jobs.kind import ModelJobKind
from inference.evaluation.models import Evaluation
from inference.registry.metric_labels import key_metric
from inference.registry.models import Model
from inference.registry.selftest import self_tests
from workers.core.kinds import Capabilities, Launch, Way
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir
from workers.core.states import JobPhase
from workers.images.services import uses


class EvaluationKind(ModelJobKind):
    """`python -m inference.evaluation.evaluator` on a dataset version."""

    name = evaluations.KIND
    rows = Evaluation
    packages = ("evaluation/evaluator",)
    version_field, data_field = "model_version", "version"
    source = (gettext_lazy("Dataset"), "version_label")
    label = gettext_lazy("Evaluation")
    plural = gettext_lazy("Evaluations")
    step_label = gettext_lazy("Evaluation")
    hint = gettext_lazy("Measure the model on a test split")
    start_page = "inference:evaluation-new"
    start_word = gettext_lazy("Evaluate a model")
    icon = "evaluation"
    order = 60
    section = "models"
    step = True
    holder_text = gettext_lazy("evaluation %(name)s of %(owner)s")
    own_network = False
    phases = (JobPhase.LOADING, JobPhase.PREDICTING, JobPhase.COMPUTING)

    def startable(self, user: User) -> bool:
        """Whether there is a model to evaluate."""
        return Model.objects.visible_to(user).exists()

    def key_metrics(self, jobs: Collection[int]) -> Mapping[int, str]:
        rows = Evaluation.objects.filter(job__in=jobs).values_list("job", "task", "metrics", "split")
        return {job: str(metric) for job, *measured in rows if (metric := key_metric(*measured))}

    def prepare(self, job: Job, attempt: Attempt, run: RunDir) -> Launch:
        evaluation = self.row(job)
        if evaluation.is_scripted:
            return scripted.launch(evaluation, job, attempt, run)
        if evaluation.version is None:
            self.refuse_launch()
        return self.launch(evaluation, run, evaluation.params)

    def ended(self, job: Job, attempt: Attempt) -> None:
        evaluations.publish(job, attempt)
        evaluation = Evaluation.objects.for_list().filter(job=job).first()
        if evaluation is not None:
            if not evaluation.is_scripted:  # such a script writes no samples
                self_tests.keep_evaluated(evaluation)
            promotion.judge(evaluation)

    def capabilities(self, job: Job) -> Capabilities:
        """A script is paused by signals and restarts from the beginning; an incomplete run has no metrics."""
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
        super().check_restore(job)
        uses.check_restore(job)
