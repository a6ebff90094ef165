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

#: What is said where there is no champion: every candidate is better than none.
FAR = 1.0
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
    about = gettext_lazy("Compares a candidate with the champion on the same images: which differences are real?")
    group = "judge"
    icon = "compare"
    needs = Action.EVALUATIONS_SUBMIT
    inputs = (
        Port("figures", gettext_lazy("Evaluation of the candidate"), "figures"),
        Port("champion", gettext_lazy("Champion"), "any", optional=True),
    )
    outputs = (Port("figures", gettext_lazy("Figures"), "figures"),)
    params = (
        Param("champion", gettext_lazy("Champion by name"), default="", help=gettext_lazy(
            "Such as cells@champion, where no link says it.")),
        Param("first", gettext_lazy("A first candidate passes"), form="yesno", default=False, help=gettext_lazy(
            "Where the model has no version of this name yet, the candidate counts as better. Else the step fails.")),
        Param("gpus", gettext_lazy("GPUs"), form="whole", default=0, low=0, high=1,
              help=gettext_lazy("For an evaluation of the champion, where there is none yet.")),
        Param("cpus", gettext_lazy("Cores"), form="number", default=None, low=0.1, high=1024),
    )  # fmt: skip

    def check(self, params: Mapping[str, Any], user: User) -> None:
        if params.get("champion"):
            _named(params["champion"], user, first=params.get("first") is not False, made_yet=False)

    def begin(self, call: Call) -> Begun:
        candidate = _evaluation(call.only("figures"), call.user)
        given = call.only("champion")
        if given is None and not call.params["champion"]:
            raise Invalid(_("Name a champion, such as cells@champion, or connect a model."), field="champion")
        if given is not None and given.get("type") == "figures":
            return _asked(candidate, _evaluation(given, call.user))
        if given is not None and given.get("type") != "model":
            raise StepFailed(_("A champion is a model, or the figures of an evaluation."))
        name, first = call.params["champion"], call.params["first"]
        champion = rows.model_version(given, call.user) if given else _named(name, call.user, first=first)
        if champion is None:
            said = wording.message("pipeline.no_champion_yet", name=name)
            return Begun(done=Done({"figures": figures(_alone(candidate), call.row)}, message=said))
        if not candidate.is_scripted and (known := _known(champion, candidate, call.user)):
            return _asked(candidate, known)
        if candidate.version is None:
            raise StepFailed(_("The dataset that the candidate was evaluated on was deleted."))
        resources: Resources = {"gpus_per_node": call.params["gpus"]}
        if call.params["cpus"] is not None:
            resources["cpus"] = call.params["cpus"]
        row = evaluations.submit(
            user=call.user, model_version=champion, version=candidate.version, split=candidate.split, name=call.name,
            **_judge_of(candidate, call.user), **resources,
        )  # fmt: skip
        return Begun(job=row.job, kept={"candidate": candidate.pk, "champion": row.pk, "with_job": True})

    def go_on(self, row: StepRun) -> Done | None:
        if row.kept.get("with_job"):
            completed(row)
        if "figures" in row.kept:
            return Done({"figures": figures(row.kept["figures"], row)})
        long_running.ask_aside(row)
        return None

    def aside(self, row: StepRun) -> Mapping[str, Any] | None:
        """Compare them, which may draw all images anew."""
        return {"figures": compared(*_both(row), row.run.owner)}

    def stop(self, row: StepRun) -> None:
        stop_job(row.job)


def _asked(candidate: Evaluation, champion: Evaluation) -> Begun:
    """Have a background worker compare them."""
    return Begun(kept={"candidate": candidate.pk, "champion": champion.pk}, look_again=long_running.FIRST_LOOK)


def _both(row: StepRun) -> tuple[Evaluation, Evaluation]:
    """The evaluations of candidate and champion."""
    wanted = (row.kept["candidate"], row.kept["champion"])
    found = Evaluation.objects.select_related("job").in_bulk(wanted)
    if any(number not in found for number in wanted):
        raise StepFailed(_("An evaluation that was to be compared was deleted."))
    for one in found.values():
        if one.is_scripted and (problems := scripts.problems(one.script)):
            raise StepFailed(" ".join(map(str, problems)))
    return found[wanted[0]], found[wanted[1]]


def _evaluation(given: Mapping[str, Any] | None, user: User) -> Evaluation:
    """The evaluation that figures are of.

    Raises:
        StepFailed: they are of none, or it is gone.
    """
    number = (given or {}).get("evaluation")
    if number is None:
        raise StepFailed(_("These figures are of no evaluation. Connect the figures of a step that evaluates."))
    found = Evaluation.objects.visible_to(user).select_related("version__dataset").filter(pk=number).first()
    if found is None:
        raise StepFailed(_("An evaluation that was to be compared was deleted."))
    evaluation: Evaluation = found
    return evaluation


def _named(text: str, user: User, *, first: bool, made_yet: bool = True) -> ModelVersion | None:
    """The champion; None while nobody is.

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
    """Whether somebody has a model of this name with a version that this person may work with."""
    try:
        references.find(user, name, to_use=True)
    except NotFound:
        return False
    except Invalid:  # several people have one
        return True
    return True


def _judge_of(candidate: Evaluation, user: User) -> dict[str, Any]:
    """What judges the champion as the candidate was judged: parameters, and an own script with them.

    Secrets of the script go to their owner alone; for others they are empty.
    """
    if not candidate.is_scripted:
        return {"params": candidate.params}
    whole = {"arguments": candidate.script.arguments, "params": candidate.params}
    given = scripts.from_evaluation(candidate) | {"params": scripts.open_params(candidate)}
    return given | (whole if candidate.job.owner_id == user.pk else {})


def _known(champion: ModelVersion, candidate: Evaluation, user: User) -> Evaluation | None:
    """An evaluation of the champion that can be compared with the candidate's."""
    alike = Evaluation.objects.visible_to(user).filter(
        model_version=champion, version=candidate.version_id, split=candidate.split, published_attempt__gt=0,
        job__state__in=COMPLETED, is_scripted=False,
    )  # fmt: skip
    return next((row for row in alike.order_by("-pk")[:50] if row.params == candidate.params), None)


def compared(candidate: Evaluation, champion: Evaluation, user: User) -> dict[str, float]:
    """All figures of a comparison, see `CompareStep`.

    Raises:
        Invalid: they did not judge the same images.
    """
    values: dict[str, float] = {**_numbers(candidate), "champion.exists": 1.0}
    theirs = _numbers(champion)
    values |= {f"champion.{name}": value for name, value in theirs.items()}
    values |= {f"difference.{name}": values[name] - theirs[name] for name in theirs if name in values}
    if champion.pk == candidate.pk:
        return values | _even(theirs)
    both, base = differences.select_evaluations(user, [champion.pk, candidate.pk], champion.pk)
    found = differences.compare(both, base)
    for row in found.rows:
        own = next(value for value in row.values if value.evaluation == candidate.pk)
        if own.value is None or own.difference is None:
            continue
        apart = own.difference
        values |= {
            row.key: own.value, f"difference.{row.key}": apart.value, f"difference.{row.key}.low": apart.low,
            f"difference.{row.key}.high": apart.high, f"better.{row.key}": float(apart.verdict == differences.BETTER),
            f"worse.{row.key}": float(apart.verdict == differences.WORSE),
        }  # fmt: skip
    values["images"] = float(found.images)
    return values | ({"p": found.mcnemar[0].p} if found.mcnemar else {})


def _numbers(evaluation: Evaluation) -> dict[str, float]:
    return {name: float(value) for name, value in evaluation.metrics.items() if isinstance(value, int | float)}


def _even(names: Mapping[str, float]) -> dict[str, float]:
    """A comparison of an evaluation with itself."""
    ends = {f"difference.{name}.{end}": 0.0 for name in names for end in ("low", "high")}
    return ends | {f"{word}.{name}": 0.0 for name in names for word in ("better", "worse")} | {"p": 1.0}


def _alone(candidate: Evaluation) -> dict[str, float]:
    """A comparison with nobody."""
    own = _numbers(candidate)
    task = TASKS[candidate.task]
    lower = {one.key for one in task.measures if one.lower_is_better}
    lower |= {one.key for one in task.means if one.lower_is_better}
    values: dict[str, float] = {**own, "champion.exists": 0.0, "p": 0.0}
    for name in own:
        off = -FAR if name in lower else FAR
        values |= {f"champion.{name}": WORST if name in lower else 0.0, f"difference.{name}": off}
        values |= {f"difference.{name}.low": off, f"difference.{name}.high": off}
        values |= {f"better.{name}": 1.0, f"worse.{name}": 0.0}
    return values
