"""Steps that judge models."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.permissions import Action
from inference.models import Evaluation
from inference.pipelines.kinds import Begun, Call, Done, Param, Port, StepFailed, StepKind, completed
from inference.pipelines.models import StepRun
from inference.pipelines.steps import rows
from inference.pipelines.steps.training import figures
from inference.services import evaluations
from inference.services.learning import AUTO
from workers.jobs.resource_request import Resources


class EvaluateStep(StepKind):
    """An evaluation of a model on a dataset version."""

    name = "evaluate"
    label = gettext_lazy("Evaluate")
    about = gettext_lazy("Measures how well a model answers on a split of a dataset version.")
    group = "judge"
    icon = "evaluation"
    computes = True
    needs = Action.EVALUATIONS_SUBMIT
    inputs = (Port("model", gettext_lazy("Model"), "model"), Port("data", gettext_lazy("Data"), "dataset"))
    outputs = (Port("figures", gettext_lazy("Figures"), "figures"),)
    params = (
        Param("split", gettext_lazy("Split"), default=AUTO, help=gettext_lazy(
            "auto: what says most about the model. test, val, train; unseen: images it did not learn from; all.")),
        Param("params", gettext_lazy("Parameters"), form="json", default=None,
              help=gettext_lazy('JSON, such as {"score_threshold": 0.01}.')),
        Param("gpus", gettext_lazy("GPUs"), form="whole", default=0, low=0, high=1),
        Param("cpus", gettext_lazy("Cores"), form="number", default=None, low=0.1, high=1024),
    )  # fmt: skip

    def begin(self, call: Call) -> Begun:
        resources: Resources = {"gpus_per_node": call.params["gpus"]}
        if call.params["cpus"] is not None:
            resources["cpus"] = call.params["cpus"]
        split = call.params["split"]
        given: dict[str, Any] = {"name": call.name, "params": call.params["params"] or {}}
        evaluation = evaluations.submit(
            user=call.user,
            model_version=rows.model_version(call.only("model"), call.user),
            version=rows.dataset_version(call.only("data"), call.user),
            split="" if split == "all" else split,
            **given,
            **resources,
        )
        return Begun(job=evaluation.job, kept={"evaluation": evaluation.pk})

    def look(self, row: StepRun) -> Done | None:
        job = completed(row)
        evaluation = Evaluation.objects.filter(job=job).first()
        if evaluation is None or not evaluation.metrics:
            raise StepFailed(_("The evaluation left no figures. Look into its log."))
        return Done({"figures": figures(evaluation.metrics, row, evaluation=evaluation.pk)})
