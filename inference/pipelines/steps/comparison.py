"""A step that compares a candidate with the champion, image by image.

Drawing the images anew takes its time, so a background worker does it while nothing holds the run, see `lasting`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib import wording
from aiplatform.lib.errors import Invalid, NotFound
from inference.evaluation import differences, evaluations
from inference.evaluation.custom_scripts import scripts
from inference.evaluation.models import Evaluation
from inference.kit.task_kinds import TASKS
from inference.pipelines.kinds import Begun, Call, Done, Param, Port, StepFailed, completed, stop_job
from inference.pipelines.models import StepRun
from inference.pipelines.steps import long_running, rows
from inference.pipelines.steps.training import figures
from inference.registry import references
from inference.registry.models import ModelVersion
from workers.core.states import COMPLETED
from workers.jobs.resource_request import Resources

#: Values without a champion: every candidate is better than none.
MAX_DISTANCE = 1.0
WORST = 1e9  # of a figure of which less is better


class CompareStep(long_running.LastingStep):
    """A paired comparison with another model on the same images.

    Figures, of each figure NAME: `NAME` of the candidate, `champion.NAME`, `difference.NAME` (candidate − champion),
    `difference.NAME.low` and `difference.NAME.high` (its 95 % interval, where images tell one), `better.NAME` and
    `worse.NAME` (1 where the difference is real and in that direction); `images`, `p` (McNemar's exact test, of tasks
    where an image is right or wrong), and `champion.exists`. Where `first` allows that there is none yet,
    `champion.exists` is 0, `champion.NAME` the worst there is, and all differences are for the candidate, so that a
    first model passes.
    """

    name = "compare"
    label = gettext_lazy("Compare")
    description = gettext_lazy(
        "Compares a candidate with the champion on the same images and tests the differences for significance."
    )
    group = "judge"
    icon = "compare"
    needs = Action.EVALUATIONS_SUBMIT
    inputs = (
        Port("figures", gettext_lazy("Evaluation of the candidate"), "figures"),
        Port("champion", gettext_lazy("Champion"), "any", optional=True),
    )
    outputs = (Port("figures", gettext_lazy("Metrics"), "figures"),)
    params = (
        Param("champion", gettext_lazy("Champion by name"), default="", help=gettext_lazy(
            "Such as cells@champion, if not connected.")),
        Param("first", gettext_lazy("Accept a first candidate"), form="yesno", default=False, help=gettext_lazy(
            "If the model has no version with this alias yet, the candidate counts as better. Otherwise the "
            "step fails.")),
        Param("gpus", gettext_lazy("GPUs"), form="whole", default=0, low=0, high=1,
              help=gettext_lazy("For an evaluation of the champion, if none exists.")),
        Param("cpus", gettext_lazy("Cores"), form="number", default=None, low=0.1, high=1024),
    )  # fmt: skip

    def check(self, params: Mapping[str, Any], user: User) -> None:
        if params.get("champion"):
            _named(params["champion"], user, first=params.get("first") is not False, made_yet=False)

    def start(self, call: Call) -> Begun:
        candidate = _evaluation(call.only("figures"), call.user)
        champion_ref = call.only("champion")
        if champion_ref is None and not call.params["champion"]:
            raise Invalid(_("Specify a champion, such as cells@champion, or connect a model."), field="champion")
        if champion_ref is not None and champion_ref.get("type") == "figures":
            return _queue_comparison(candidate, _evaluation(champion_ref, call.user))
        if champion_ref is not None and champion_ref.get("type") != "model":
            raise StepFailed(_("A champion is a model, or the metrics of an evaluation."))
        name, first = call.params["champion"], call.params["first"]
        champion = rows.model_version(champion_ref, call.user) if champion_ref else _named(name, call.user, first=first)
        if champion is None:
            message = wording.message("pipeline.no_champion_yet", name=name)
            return Begun(done=Done({"figures": figures(_alone(candidate), call.row)}, message=message))
        if not candidate.is_scripted and (earlier := _find_evaluation(champion, candidate, call.user)):
            return _queue_comparison(candidate, earlier)
        if candidate.version is None:
            raise StepFailed(_("The dataset that the candidate was evaluated on was deleted."))
        resources: Resources = {"gpus_per_node": call.params["gpus"]}
        if call.params["cpus"] is not None:
            resources["cpus"] = call.params["cpus"]
        row = evaluations.submit(
            user=call.user, model_version=champion, version=candidate.version, split=candidate.split, name=call.name,
            **_judge_of(candidate, call.user), **resources,
        )  # fmt: skip
        return Begun(job=row.job, stored={"candidate": candidate.pk, "champion": row.pk, "with_job": True})

    def go_on(self, row: StepRun) -> Done | None:
        if row.kept.get("with_job"):
            completed(row)
        if "figures" in row.kept:
            return Done({"figures": figures(row.kept["figures"], row)})
        long_running.queue_aside(row)
        return None

    def aside(self, row: StepRun) -> Mapping[str, Any] | None:
        """Compare them, which may resample all images."""
        return {"figures": compared(*_both(row), row.run.owner)}

    def stop(self, row: StepRun) -> None:
        stop_job(row.job)


def _queue_comparison(candidate: Evaluation, champion: Evaluation) -> Begun:
    """Compare both in a background worker."""
    return Begun(stored={"candidate": candidate.pk, "champion": champion.pk}, look_again=long_running.FIRST_LOOK)


def _both(row: StepRun) -> tuple[Evaluation, Evaluation]:
    """Return the evaluations of candidate and champion."""
    wanted = (row.kept["candidate"], row.kept["champion"])
    evaluations_by_id = Evaluation.objects.select_related("job").in_bulk(wanted)
    if any(number not in evaluations_by_id for number in wanted):
        raise StepFailed(_("An evaluation to be compared was deleted."))
    for evaluation in evaluations_by_id.values():
        if evaluation.is_scripted and (problems := scripts.problems(evaluation.script)):
            raise StepFailed(" ".join(map(str, problems)))
    return evaluations_by_id[wanted[0]], evaluations_by_id[wanted[1]]


def _evaluation(figures_ref: Mapping[str, Any] | None, user: User) -> Evaluation:
    """Return the evaluation that metrics belong to.

    Raises:
        StepFailed: they belong to none, or it was deleted.
    """
    number = (figures_ref or {}).get("evaluation")
    if number is None:
        raise StepFailed(_("These metrics do not come from an evaluation. Connect the metrics of an evaluation step."))
    row = Evaluation.objects.visible_to(user).select_related("version__dataset").filter(pk=number).first()
    if row is None:
        raise StepFailed(_("An evaluation to be compared was deleted."))
    evaluation: Evaluation = row
    return evaluation


def _named(text: str, user: User, *, first: bool, made_yet: bool = True) -> ModelVersion | None:
    """Return the champion; None while there is none.

    Args:
        first: there need not be one yet, but a model whose version it would be.
        made_yet: that model must be there; before a run begins it may be one that the run makes.

    Raises:
        NotFound: there is none of this name, though there should be.
    """
    try:
        return references.find(user, text, to_use=True, field="champion")
    except NotFound:
        model = text.strip().partition("@")[0]
        if not first or (made_yet and not _is_model(model, user)):
            raise
        return None


def _is_model(name: str, user: User) -> bool:
    """Whether there is a model of this name with a version that this user may use."""
    try:
        references.find(user, name, to_use=True)
    except NotFound:
        return False
    except Invalid:  # several people have one
        return True
    return True


def _judge_of(candidate: Evaluation, user: User) -> dict[str, Any]:
    """Return the request that evaluates the champion like the candidate: parameters, and a custom script with them.

    Secrets of the script go to their owner alone; for others they are empty.
    """
    if not candidate.is_scripted:
        return {"params": candidate.params}
    private = {"arguments": candidate.script.arguments, "params": candidate.params}
    script = scripts.from_evaluation(candidate) | {"params": scripts.open_params(candidate)}
    return script | (private if candidate.job.owner_id == user.pk else {})


def _find_evaluation(champion: ModelVersion, candidate: Evaluation, user: User) -> Evaluation | None:
    """Return an evaluation of the champion that can be compared with the candidate's."""
    alike = Evaluation.objects.visible_to(user).filter(
        model_version=champion, version=candidate.version_id, split=candidate.split, published_attempt__gt=0,
        job__state__in=COMPLETED, is_scripted=False,
    )  # fmt: skip
    return next((row for row in alike.order_by("-pk")[:50] if row.params == candidate.params), None)


def compared(candidate: Evaluation, champion: Evaluation, user: User) -> dict[str, float]:
    """Return all metrics of a comparison, see `CompareStep`.

    Raises:
        Invalid: they did not judge the same images.
    """
    values: dict[str, float] = {**_numbers(candidate), "champion.exists": 1.0}
    champion_values = _numbers(champion)
    values |= {f"champion.{name}": value for name, value in champion_values.items()}
    values |= {f"difference.{name}": values[name] - champion_values[name] for name in champion_values if name in values}
    if champion.pk == candidate.pk:
        return values | _even(champion_values)
    both, base = differences.select_evaluations(user, [champion.pk, candidate.pk], champion.pk)
    comparison = differences.compare(both, base)
    for row in comparison.rows:
        own = next(value for value in row.values if value.evaluation == candidate.pk)
        if own.value is None or own.difference is None:
            continue
        apart = own.difference
        values |= {
            row.key: own.value, f"difference.{row.key}": apart.value, f"difference.{row.key}.low": apart.low,
            f"difference.{row.key}.high": apart.high, f"better.{row.key}": float(apart.verdict == differences.BETTER),
            f"worse.{row.key}": float(apart.verdict == differences.WORSE),
        }  # fmt: skip
    values["images"] = float(comparison.images)
    return values | ({"p": comparison.mcnemar[0].p} if comparison.mcnemar else {})


def _numbers(evaluation: Evaluation) -> dict[str, float]:
    return {name: float(value) for name, value in evaluation.metrics.items() if isinstance(value, int | float)}


def _even(names: Mapping[str, float]) -> dict[str, float]:
    """A comparison of an evaluation with itself."""
    ends = {f"difference.{name}.{end}": 0.0 for name in names for end in ("low", "high")}
    return ends | {f"{word}.{name}": 0.0 for name in names for word in ("better", "worse")} | {"p": 1.0}


def _alone(candidate: Evaluation) -> dict[str, float]:
    """Return the metrics of a comparison without a champion."""
    own = _numbers(candidate)
    task = TASKS[candidate.task]
    lower = {measure.key for measure in task.measures if measure.lower_is_better}
    lower |= {measure.key for measure in task.means if measure.lower_is_better}
    values: dict[str, float] = {**own, "champion.exists": 0.0, "p": 0.0}
    for name in own:
        difference = -MAX_DISTANCE if name in lower else MAX_DISTANCE
        values |= {f"champion.{name}": WORST if name in lower else 0.0, f"difference.{name}": difference}
        values |= {f"difference.{name}.low": difference, f"difference.{name}.high": difference}
        values |= {f"better.{name}": 1.0, f"worse.{name}": 0.0}
    return values
