"""Steps that judge models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib.errors import Refusals
from inference.evaluation import requests
from inference.evaluation.custom_scripts import scripts
from inference.evaluation.models import Evaluation
from inference.pipelines.kinds import Begun, Call, Done, Param, Port, StepFailed, StepKind, completed
from inference.pipelines.models import StepRun
from inference.pipelines.steps import bodies, rows
from inference.pipelines.steps.training import figures
from inference.registry.training_data import AUTO

SCRIPT_FIELDS = ("home_path", "start_file", "arguments")
SCRIPT = (*SCRIPT_FIELDS, "request")  # parameters that bring own code, or may
#: What a step says itself, so that `request` may not.
OWN = ("name", "model_version", "version", "split", "params", "gpus_per_node", "cpus", *SCRIPT_FIELDS)


class EvaluateStep(StepKind):
    """An evaluation of a model on a dataset version."""

    name = "evaluate"
    label = gettext_lazy("Evaluate")
    description = gettext_lazy("Evaluates a model on a split of a dataset version, with built-in or custom code.")
    number = 2
    group = "judge"
    icon = "evaluation"
    computes = True
    needs = Action.EVALUATIONS_SUBMIT
    inputs = (Port("model", gettext_lazy("Model"), "model"), Port("data", gettext_lazy("Data"), "dataset"))
    outputs = (Port("figures", gettext_lazy("Metrics"), "figures"),)
    params = (
        Param("split", gettext_lazy("Split"), default=AUTO, help=gettext_lazy(
            "auto: the most informative split. test, val, train; unseen: images it was not trained on; all.")),
        Param("params", gettext_lazy("Parameters"), form="json", default=None,
              help=gettext_lazy("JSON, such as {\"score_threshold\": 0.01}; all parameters of a custom script.")),
        Param("gpus", gettext_lazy("GPUs"), form="whole", default=0, low=0, high=128),
        Param("cpus", gettext_lazy("Cores"), form="number", default=None, low=0.1, high=1024),
        Param("home_path", gettext_lazy("Custom script: folder in your home"), default="", help=gettext_lazy(
            "The script is copied when the step starts.")),
        Param("start_file", gettext_lazy("Custom script: entry point"), default="", help=gettext_lazy(
            "Replaces the built-in evaluation and writes its metrics to $AIP_OUTPUT_DIR/metrics.json.")),
        Param("arguments", gettext_lazy("Custom script: arguments"), default="", help=gettext_lazy(
            "Arguments after the entry point. {model}, {data}, {output} and {params} are replaced by paths.")),
        Param("request", gettext_lazy("Additional fields"), form="json", default=None,
              help=gettext_lazy("JSON with additional fields of the API for evaluations: code, image, output_path …")),
    )  # fmt: skip

    def check(self, params: Mapping[str, Any], user: User) -> None:
        refusals = Refusals()
        with refusals:
            bodies.check(params, OWN)
        with refusals:
            scripts.check_parts(arguments=params.get("arguments") or "")
        refusals.end()

    def content(self, call: Call) -> Mapping[str, Any] | None:
        """Own code may do anything, and its folder may have changed, so only ours is taken from earlier runs."""
        return {} if not any(call.params[name] for name in SCRIPT) else None

    def start(self, call: Call) -> Begun:
        self.check(call.params, call.user)
        split = call.params["split"]
        body = dict(call.params["request"] or {}) | {
            "name": call.name,
            "model_version": rows.model_version(call.only("model"), call.user).pk,
            "version": rows.dataset_version(call.only("data"), call.user).pk,
            "split": "" if split == "all" else split,
            "params": call.params["params"] or {},
            "gpus_per_node": call.params["gpus"],
        }
        body |= {name: call.params[name] for name in ("cpus", *SCRIPT_FIELDS) if call.params[name] not in (None, "")}
        evaluation = requests.submit(call.user, body)
        return Begun(job=evaluation.job, stored={"evaluation": evaluation.pk})

    def poll(self, row: StepRun) -> Done | None:
        job = completed(row)
        evaluation = Evaluation.objects.filter(job=job).first()
        problems = scripts.problems(evaluation.script) if evaluation and evaluation.is_scripted else []
        if evaluation is None or problems or not evaluation.metrics:
            raise StepFailed(" ".join(map(str, problems)) or _("The evaluation has no metrics. See its log."))
        return Done({"figures": figures(evaluation.metrics, row, evaluation=evaluation.pk)})
