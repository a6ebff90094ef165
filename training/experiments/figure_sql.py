"""Figures of runs as SQL expressions, to filter and to sort by; over all attempts of a restored job."""

from __future__ import annotations

from typing import Any

from django.db.models import F, FloatField, Max, Min, OuterRef, Subquery
from django.db.models.functions import Coalesce

from training.experiments.models import RunCurve
from workers.core.models import HAS_VALUE, Curve

LAST, LOWEST, HIGHEST, BEST = "last", "min", "max", "best"
KINDS = (LAST, LOWEST, HIGHEST, BEST)
#: Keys under which runs say which epoch a step belongs to: an axis rather than a figure.
EPOCHS = ("epoch", "train/epoch", "trainer/epoch", "epochs")
#: In whose names less is better.
COSTS = ("loss", "error", "err", "nme", "mae", "mse", "rmse", "perplexity", "wer", "cer", "fid", "seconds", "latency")


def less_is_better(key: str) -> bool:
    """Return whether lower values of a metric are better, judged by its name: `val/loss`, `test/nme`."""
    tokens = key.lower().replace("-", "_").replace("/", "_").split("_")
    return any(word in COSTS for word in tokens)


def figure(kind: str, key: str) -> Any:
    """Expression over `Run`: the newest, lowest, highest or best value of a key; null where a run has none."""
    if kind == BEST:
        kind = LOWEST if less_is_better(key) else HIGHEST
    of_job = Curve.objects.filter(HAS_VALUE, attempt__job=OuterRef("job"), key=key)
    alone = RunCurve.objects.filter(HAS_VALUE, run=OuterRef("pk"), key=key)
    job: Any
    if kind == LAST:
        job, run = of_job.order_by("-attempt__number").values("value")[:1], alone.values("value")
    else:
        column, extreme = ("lowest", Min) if kind == LOWEST else ("highest", Max)
        job = of_job.order_by().values("attempt__job").annotate(found=extreme(column)).values("found")
        run = alone.values(column)
    return Coalesce(Subquery(job, FloatField()), Subquery(run, FloatField()))


def named() -> dict[str, Any]:
    """Columns of `Run` that say the same of one with a job and of one without."""
    return {
        "shown_name": Coalesce(F("job__name"), F("name")),
        "state_word": Coalesce(F("job__state"), F("state")),
        "begun": Coalesce(F("job__started_at"), F("job__created_at"), F("created_at")),
        "ended": Coalesce(F("job__ended_at"), F("ended_at")),
    }
