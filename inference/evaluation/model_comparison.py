"""Compare models: their versions in use, fact by fact, and their evaluations on the same data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.errors import Invalid, NotFound
from inference.evaluation.models import Evaluation
from inference.registry.metric_labels import key_metric
from inference.registry.models import ModelVersion, Stage
from inference.registry.version_tables import MAX_VERSIONS
from training.catalog.key_metrics import KeyMetric

MAX_READ = 500  # newest evaluations of the compared versions


@dataclass(frozen=True)
class Shared:
    """Evaluations of two or more of the versions on one split of one dataset version.

    Attributes:
        metrics: the key metric of each version in their order; None where it has no such evaluation.
    """

    label: str
    split: Any
    evaluations: Sequence[int]
    metrics: Sequence[KeyMetric | None]

    @property
    def cells(self) -> list[tuple[KeyMetric | None, bool]]:
        """Each metric, and whether it is the best of different values."""
        values = {metric.value for metric in self.metrics if metric}
        best = max(values) if len(values) > 1 else None
        return [(metric, metric is not None and metric.value == best) for metric in self.metrics]

    @property
    def is_complete(self) -> bool:
        return all(self.metrics)


def select_versions(user: User, models: Iterable[int]) -> list[ModelVersion]:
    """Return the newest version in use of each model, in the order of the models.

    Raises:
        Invalid: no model, or too many.
        NotFound: a model that the user cannot see, or one without a version in use.
    """
    numbers = list(dict.fromkeys(models))
    if not numbers:
        raise Invalid(_("Select the models to compare."), field="model")
    if len(numbers) > MAX_VERSIONS:
        raise Invalid(_("Compare at most %(limit)s models.") % {"limit": MAX_VERSIONS}, field="model")
    rows = ModelVersion.objects.visible_to(user).filter(model__in=numbers).exclude(stage=Stage.ARCHIVED)
    newest = {row.model_id: row for row in rows.select_related("model", "dataset_version__dataset").order_by("number")}
    if missing := [str(number) for number in numbers if number not in newest]:
        raise NotFound(
            _("Model %(numbers)s not found, or without an active version.") % {"numbers": ", ".join(missing)}
        )
    return [newest[number] for number in numbers]


def shared_evaluations(user: User, versions: Sequence[ModelVersion]) -> list[Shared]:
    """Return the newest evaluations of the versions on the same data; those of all versions come first."""
    rows = Evaluation.objects.visible_to(user).filter(
        model_version__in=versions, published_attempt__gt=0, is_scripted=False, version__isnull=False
    )
    by_data: dict[tuple[int | None, str, str], dict[int | None, Evaluation]] = {}
    for row in rows.order_by("-pk")[:MAX_READ]:
        by_data.setdefault((row.version_id, row.split, row.task), {}).setdefault(row.model_version_id, row)
    shared = [
        Shared(
            label=next(iter(own.values())).version_label,
            split=next(iter(own.values())).split_word,
            evaluations=[own[version.pk].pk for version in versions if version.pk in own],
            metrics=[_metric(own.get(version.pk)) for version in versions],
        )
        for own in by_data.values()
        if len(own) > 1
    ]
    return sorted(shared, key=lambda entry: -len(entry.evaluations))


def _metric(evaluation: Evaluation | None) -> KeyMetric | None:
    return key_metric(evaluation.task, evaluation.metrics) if evaluation else None
