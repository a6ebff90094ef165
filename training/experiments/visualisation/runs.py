"""Which runs a person looks at, and what they have to show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Exists, OuterRef, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import User
from aiplatform.lib.errors import Invalid, NotFound
from aiplatform.lib.secret_names import mask_params
from training.experiments import comparison
from workers.core.models import Curve, Job, MediaSeries
from workers.jobs.output import media

MAX_RUNS = 12
Kind = MediaSeries.Kind


@dataclass(frozen=True)
class View:
    """One way to look at runs: its word in the address, what people read, and the kind of media it shows."""

    name: str
    label: Any
    kind: str = ""


SCALARS = "scalars"
VIEWS = (
    View(SCALARS, gettext_lazy("Scalars")),
    View("images", gettext_lazy("Images"), Kind.IMAGE),
    View("figures", gettext_lazy("Plots"), Kind.FIGURE),
    View("audio", gettext_lazy("Audio"), Kind.AUDIO),
    View("videos", gettext_lazy("Videos"), Kind.VIDEO),
    View("histograms", gettext_lazy("Histograms"), Kind.HISTOGRAM),
    View("distributions", gettext_lazy("Distributions"), Kind.HISTOGRAM),
    View("texts", gettext_lazy("Texts"), Kind.TEXT),
    View("tables", gettext_lazy("Tables"), Kind.TABLE),
    View("graph", gettext_lazy("Graph"), Kind.GRAPH),
    View("embeddings", gettext_lazy("Embeddings"), Kind.VECTORS),
    View("parameters", gettext_lazy("Parameters"), Kind.PARAMS),
)


def view_of(name: str) -> View:
    """The view of this name; the first one where there is none."""
    return next((view for view in VIEWS if view.name == name), VIEWS[0])


def chosen(user: User, numbers: Iterable[int]) -> list[Job]:
    """Return the jobs of these numbers in their order, each once.

    Raises:
        Invalid: none, or more than twelve.
        NotFound: this person sees none of such a number.
    """
    wanted = list(dict.fromkeys(numbers))
    if not wanted:
        raise Invalid(_("Select the runs to view."), field="run")
    if len(wanted) > MAX_RUNS:
        raise Invalid(_("View at most %(limit)s runs at once.") % {"limit": MAX_RUNS}, field="run")
    by_number = Job.objects.visible_to(user).select_related("owner", "cluster").in_bulk(wanted)
    if missing := [number for number in wanted if number not in by_number]:
        raise NotFound(_("Run %(numbers)s not found.") % {"numbers": ", ".join(map(str, missing))})
    return [by_number[number] for number in wanted]


def offered(user: User, query: str = "") -> QuerySet[Job]:
    """Return jobs with anything to show."""
    curves = Curve.objects.filter(attempt__job=OuterRef("pk")).exclude(key__startswith="system/")
    rows = Job.objects.visible_to(user).select_related("owner")
    rows = rows.filter(name__icontains=query) if query else rows
    shows = Exists(curves) | Exists(MediaSeries.objects.filter(attempt__job=OuterRef("pk")))
    return rows.filter(shows)


def add_contents(jobs: Sequence[Job]) -> None:
    """Set `contents` of each job: the label of each kind of data that its attempts reported, and how many series."""
    of_jobs: dict[str, Any] = {"attempt__job__in": [job.pk for job in jobs]}
    keys = Curve.objects.filter(**of_jobs)
    scalars = dict(keys.values_list("attempt__job").annotate(many=Count("key", distinct=True)).order_by())
    media_rows = MediaSeries.objects.filter(**of_jobs).values_list("attempt__job", "kind")
    counts = {(job, kind): many for job, kind, many in media_rows.annotate(many=Count("pk")).order_by()}
    labels = {view.kind: view.label for view in reversed(VIEWS) if view.kind}
    row: Any  # contents are no column
    for row in jobs:
        media_counts = [(labels[kind], counts[row.pk, kind]) for kind in reversed(labels) if (row.pk, kind) in counts]
        row.contents = [(VIEWS[0].label, scalars[row.pk]), *media_counts] if row.pk in scalars else media_counts


def counts(runs: Sequence[Job], keys: Sequence[str]) -> dict[str, int]:
    """How many series each view has of these runs, by the view's name."""
    kinds = media.kinds_of(runs)
    return {view.name: kinds.get(view.kind, 0) if view.kind else len(keys) for view in VIEWS}


def curve_keys(runs: Sequence[Job]) -> list[str]:
    """All keys of the runs, those of what they use last."""
    return comparison.keys(comparison.figures_of_jobs([run.pk for run in runs]))


def series(runs: Sequence[Job], kind: str) -> list[dict[str, Any]]:
    """Return what a page draws: each series of a kind with its run, equal names next to each other."""
    result: list[dict[str, Any]] = []
    for run in runs:
        rows = media.series_of(run, kind=kind).values("name", "steps", "seen", "stride", "refused")
        result += [{"run": run.pk, "of": run.name, **row} for row in rows]
    return sorted(result, key=lambda row: str(row["name"]))


def parameters(runs: Sequence[Job]) -> list[tuple[str, list[Any]]]:
    """Return hyperparameters reported by programs, with the value of each run; secrets are masked."""
    params_by_run = [dict(mask_params(media.reported_params(run))) for run in runs]
    names = list(dict.fromkeys(name for each in params_by_run for name in each))
    return [(name, [each.get(name) for each in params_by_run]) for name in names]
