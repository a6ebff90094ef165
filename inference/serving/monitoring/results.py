"""What monitoring shows of a service: pictures and answers of a span against a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import QuerySet
from django.utils.timezone import now

from inference.kit.models.statistics import Tally, empty
from inference.registry import drift
from inference.registry.baseline_models import ModelBaseline
from inference.registry.drift import Drift, Looks
from inference.serving.models import Service
from inference.serving.monitoring.models import ServiceStatistics
from inference.serving.traffic.statistics import SPANS

FIRST = 500  # images that serve as baseline if there is none
TRAINING, EARLIER, NOTHING = "training", "earlier", ""


@dataclass(frozen=True)
class Comparison:
    """Comparisons of a service's version within a span.

    Attributes:
        images: that were counted in the span.
        against: TRAINING the images it learned from, EARLIER the first that it was shown, or NOTHING.
        distance: of the mean colour layouts, in standard deviations of single pictures.
        looks: how far the pictures as a whole are apart.
    """

    images: int
    against: str
    before: int
    data_name: str
    distance: float | None
    drifts: Sequence[Drift]
    looks: Looks

    @property
    def worst(self) -> Drift | None:
        """Return the largest drift, None if nothing could be compared."""
        compared = [row for row in self.drifts if row.value is not None]
        return max(compared, key=lambda row: row.value or 0.0, default=None)


def compare(service: Service, span: str) -> Comparison:
    """Compare the inputs and predictions of the current version in a span of `SPANS` with the baseline."""
    rows = ServiceStatistics.objects.filter(service=service, version=service.model_version_id)
    since = now() - SPANS[span][0]
    recent = drift.add_up(row.tally for row in rows.filter(begins_at__gte=since))
    baseline = ModelBaseline.objects.filter(version=service.model_version_id).first()
    if baseline is not None:
        before, against, name = baseline.tally, TRAINING, baseline.data_name
    else:
        before, name = _first(rows.filter(begins_at__lt=since)), ""
        against = EARLIER if before["images"] else NOTHING
    return Comparison(
        images=recent["images"],
        against=against,
        before=before["images"],
        data_name=name,
        distance=drift.distance(before, recent),
        drifts=drift.compare(before, recent),
        looks=drift.looks(before, recent),
    )


def _first(rows: QuerySet[ServiceStatistics]) -> Tally:
    """The first pictures that it was shown, whole hours of them."""
    made = empty()
    for row in rows.iterator(chunk_size=50):
        made = drift.add_up([made, row.tally])
        if made["images"] >= FIRST:
            break
    return made
