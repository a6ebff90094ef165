"""What an approval shows: the objects it is about, and the metrics of the candidate beside those in production."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from accounts.models import User
from inference.evaluation.models import Evaluation
from inference.pipelines import metric_names, run_presentation
from inference.pipelines.graph import Spec
from inference.pipelines.kinds import TYPES
from inference.serving.models import Service
from workers.core.states import COMPLETED

CHAMPION = "champion."  # prefix of the metrics of a comparison


def build(spec: Spec, key: str, steps: Mapping[str, Mapping[str, Any]], user: User) -> dict[str, Any]:
    """Return the context of the card of an approval step.

    `objects` are the results of earlier steps other than metrics, each once; `metrics` the rows of the table, with
    `reference`, the name of what the candidate is compared with, or "".
    """
    objects: dict[str, dict[str, str]] = {}
    for name, output in _outputs_before(spec, key, steps):
        if output.get("type") != "figures":
            kind = str(TYPES.get(str(output.get("type")), name))
            for result in run_presentation.results_of({"": output}, user):
                objects.setdefault(result["text"], {"kind": kind, **result})
    evaluation = _evaluation(spec, key, steps, user)
    compared, reference = _reference(spec, key, steps, evaluation, user)
    candidate = _numbers(evaluation.metrics) if evaluation else {}
    return {
        "objects": list(objects.values())[: run_presentation.MAX_OBJECTS],
        "evaluation": evaluation,
        "reference": reference,
        "metrics": [_row(name, label, candidate, compared) for name, label in _important(evaluation, candidate)],
    }


def _outputs_before(
    spec: Spec, key: str, steps: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the references of all steps before a step, in their order."""
    for name in run_presentation.steps_before(spec, key):
        for _port, value in sorted(steps.get(name, {}).get("outputs", {}).items()):
            if isinstance(value, Mapping):
                yield name, value


def _evaluation(spec: Spec, key: str, steps: Mapping[str, Mapping[str, Any]], user: User) -> Evaluation | None:
    """Return the last evaluation before the step, if the user may see it."""
    numbers = [value["evaluation"] for _name, value in _outputs_before(spec, key, steps) if value.get("evaluation")]
    rows = Evaluation.objects.visible_to(user).select_related("model_version__model")
    row: Evaluation | None = rows.filter(pk=numbers[-1]).first() if numbers else None
    return row


def _reference(
    spec: Spec, key: str, steps: Mapping[str, Mapping[str, Any]], evaluation: Evaluation | None, user: User
) -> tuple[dict[str, float], str]:
    """Return the metrics to compare with and their owner: of a comparison step, else of a deployed version."""
    for name, output in _outputs_before(spec, key, steps):
        values = _numbers(output.get("values", {})) if output.get("type") == "figures" else {}
        if values.get("champion.exists"):
            champion = {
                metric.removeprefix(CHAMPION): number
                for metric, number in values.items()
                if metric.startswith(CHAMPION)
            }
            return champion, str(spec.steps[name].params.get("champion") or "champion")
    if evaluation is None:
        return {}, ""
    deployed = Service.objects.visible_to(user).exclude(model_version=evaluation.model_version_id)
    rows = Evaluation.objects.visible_to(user).filter(
        model_version__in=deployed.values("model_version"), task=evaluation.task, version=evaluation.version_id,
        split=evaluation.split, job__state__in=COMPLETED,
    )  # fmt: skip
    row = rows.select_related("model_version__model").order_by("-pk").first()
    return (_numbers(row.metrics), str(row.model_version)) if row else ({}, "")


def _numbers(values: Mapping[str, Any]) -> dict[str, float]:
    return {
        name.lower(): value
        for name, value in values.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def _important(evaluation: Evaluation | None, candidate: Mapping[str, float]) -> list[tuple[str, str]]:
    """Return keys and labels of the metrics that the page of the evaluation shows, in its order."""
    if evaluation is None:
        return []
    return [(key, label) for key, label in metric_names.of_task(evaluation.task) if key.lower() in candidate]


def _row(key: str, label: str, candidate: Mapping[str, float], compared: Mapping[str, float]) -> dict[str, Any]:
    own, other = candidate[key.lower()], compared.get(key.lower())
    difference = None if other is None else own - other
    return {
        "label": label,
        "value": metric_names.text(own),
        "reference": metric_names.text(other),
        "difference": "" if difference is None else f"{difference:+.3f}",
        "is_better": difference is not None and difference > 0,
        "is_worse": difference is not None and difference < 0,
    }
