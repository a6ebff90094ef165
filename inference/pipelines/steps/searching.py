"""A step that searches: a study, whose best trial gives the model."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib.errors import Invalid, Refusals
from inference.pipelines.kinds import Begun, Call, Done, Param, Port, StepFailed, StepKind
from inference.pipelines.models import StepRun, reference
from inference.pipelines.steps import bodies, rows
from inference.pipelines.steps.training import figures, model_of
from training.presets.catalog import PRESETS
from training.programs.request_schemas import body_of
from training.studies import actions, api, budget, creating
from training.studies.limits import MAX_PARALLEL_TRIALS, MAX_TRIALS
from training.studies.models import Study, Trial

#: What a step says itself, so that `request` may not.
OWN = ("name", "training", "space", "objectives", "sampler", "max_trials", "at_once")
LOOK_FIRST = timedelta(seconds=20)


class StudyStep(StepKind):
    """A study: many trainings, the best of which gives the model."""

    name = "study"
    label = gettext_lazy("Study")
    description = gettext_lazy("Searches for the best parameters of a preset, and returns the model of the best trial.")
    group = "train"
    icon = "search"
    computes = True
    needs = Action.TRAINING_SUBMIT
    inputs = (Port("data", gettext_lazy("Data"), "dataset"),)
    outputs = (Port("model", gettext_lazy("Model"), "model"), Port("figures", gettext_lazy("Metrics"), "figures"))
    params = (
        Param("preset", gettext_lazy("Preset"), required=True),
        Param("space", gettext_lazy("Search space"), form="json", required=True,
              help=gettext_lazy("JSON, such as [“lr = 1e-4 .. 0.1 log”, “layers = 1 .. 8”].")),
        Param("objectives", gettext_lazy("Objectives"), form="json", required=True,
              help=gettext_lazy('JSON, such as [{"key": "val/loss", "direction": "minimize"}].')),
        Param("params", gettext_lazy("Parameters"), form="json", default=None,
              help=gettext_lazy("JSON with fixed parameters, such as {\"epochs\": 3}.")),
        Param("max_trials", gettext_lazy("Trials"), form="whole", default=20, low=1, high=MAX_TRIALS),
        Param("at_once", gettext_lazy("Parallel trials"), form="whole", default=2, low=1, high=MAX_PARALLEL_TRIALS),
        Param("sampler", gettext_lazy("Sampler"), form="choice", default="tpe", choices=tuple(Study.Sampler.choices)),
        Param("gpus", gettext_lazy("GPUs"), form="whole", default=None, low=0, high=128,
              help=gettext_lazy("Per trial. Default: one GPU if available.")),
        Param("cpus", gettext_lazy("Cores"), form="number", default=None, low=0.1, high=1024),
        Param("request", gettext_lazy("Additional fields"), form="json", default=None,
              help=gettext_lazy("JSON with additional fields of the API for studies: pruner, seed, target …")),
    )  # fmt: skip

    def check(self, params: Mapping[str, Any], user: User) -> None:
        refusals = Refusals()
        with refusals:
            bodies.check(params, OWN)
        with refusals:
            preset = params.get("preset")
            if preset and preset not in PRESETS:
                names = ", ".join(sorted(PRESETS))
                message = _("Unknown preset “%(name)s”. Available presets: %(known)s.")
                raise Invalid(message % {"name": preset, "known": names}, field="preset")
        for name in ("space", "objectives"):
            with refusals:
                if params.get(name) is not None and not isinstance(params[name], list):
                    raise Invalid(_("Enter a list."), field=name)
        refusals.end()
        creating.check_parts(space=params.get("space") or (), objectives=params.get("objectives") or ())

    def start(self, call: Call) -> Begun:
        self.check(call.params, call.user)
        params = call.params
        version = rows.dataset_version(call.only("data"), call.user)
        training: dict[str, Any] = {"version": version.pk, "preset": params["preset"], "params": params["params"] or {}}
        training |= {"gpus_per_node": params["gpus"]} if params["gpus"] is not None else {}
        training |= {"cpus": params["cpus"]} if params["cpus"] is not None else {}
        body = dict(params["request"] or {}) | {
            "name": creating.free_name(call.user, call.name), "training": training, "space": params["space"],
            "objectives": params["objectives"], "sampler": params["sampler"], "max_trials": params["max_trials"],
            "at_once": params["at_once"],
        }  # fmt: skip
        study = submit(call.user, body)
        return Begun(stored={"study": study.pk}, look_again=LOOK_FIRST)

    def poll(self, row: StepRun) -> Done | None:
        study = Study.objects.filter(pk=row.kept["study"]).first()
        if study is None:
            raise StepFailed(_("The study was deleted."))
        trials = list(study.trials.with_jobs().order_by("number"))
        if not study.is_over or any(trial.state == Trial.State.RUNNING for trial in trials):
            return None
        if study.state != Study.State.DONE:
            raise StepFailed(study.message or _("The study ended as %(state)s.") % {"state": study.get_state_display()})
        best = budget.best_of(study, trials)
        if best is None:
            raise StepFailed(_("No trial of the study %(name)s completed.") % {"name": study})
        return Done(self._outputs(study, trials, best, row))

    def _outputs(self, study: Study, trials: list[Trial], best: Trial, row: StepRun) -> dict[str, Any]:
        keys = [str(item["key"]) for item in study.objectives]
        values: dict[str, Any] = dict(best.training.metrics) if best.training else {}
        values |= dict(zip(keys, best.values, strict=False))
        values |= {"trials": len(trials), "completed": sum(item.state == Trial.State.COMPLETE for item in trials)}
        outputs: dict[str, Any] = {"figures": figures(values, row, study=study.pk, trial=best.number)}
        if best.training and (made := model_of(best.training.job)):
            outputs["model"] = reference("model", made)
        return outputs

    def stop(self, row: StepRun) -> None:
        study = Study.objects.filter(pk=row.kept.get("study") or 0).first()
        if study is not None:
            with contextlib.suppress(actions.NotNow):  # it is over
                actions.stop(study, by=row.run.owner)


def submit(user: User, body: Mapping[str, Any]) -> Study:
    """Create the study described by a request body of the API.

    Raises:
        DomainError: all that it is refused for.
    """
    content = body_of(api.StudyIn, user, body, creating.check_parts)
    return creating.create(user=user, request=api.request_of(content))
