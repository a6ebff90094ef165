"""The run table: at most 1,000 runs, as columns. Filtered and sorted by the database, grouped where it is shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Count, F, FloatField, OuterRef, Subquery
from django.utils.timezone import now
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import User
from aiplatform.lib.errors import Invalid, Refusals
from training.catalog import metric_labels, param_labels
from training.catalog.task_kinds import TASKS
from training.experiments import conditions, figure_sql, finding
from training.experiments.models import Param, Run, RunCurve, Star, Tag
from training.experiments.querysets import RunQuerySet
from training.presets.catalog import PRESETS
from workers.core.models import HAS_VALUE, Curve
from workers.core.states import FINAL

MAX_RUNS, MAX_COLUMNS = 1000, 40
USUAL_PARAMS, USUAL_FIGURES = 6, 3
#: Facts every run has: name, what it is called, kind of its values.
FACTS: dict[str, tuple[Any, str]] = {
    "state": (gettext_lazy("State"), "state"),
    "created": (gettext_lazy("Created"), "time"),
    "duration": (gettext_lazy("Duration"), "duration"),
    "owner": (gettext_lazy("Owner"), "text"),
    "experiment": (gettext_lazy("Experiment"), "text"),
    "kind": (gettext_lazy("Kind"), "text"),
    "preset": (gettext_lazy("Preset"), "text"),
    "dataset": (gettext_lazy("Dataset"), "text"),
    "cards": (gettext_lazy("GPUs"), "number"),
    "cluster": (gettext_lazy("Cluster"), "text"),
    "tags": (gettext_lazy("Tags"), "tags"),
    "notes": (gettext_lazy("Notes"), "text"),
}
_FIGURE = re.compile(r"(last|min|max|best)\((.+)\)\Z")


@dataclass(frozen=True)
class Column:
    """One column: its name in addresses, its words, the kind of its values, and one for each run."""

    name: str
    label: str
    kind: str  # text, number, state, time, duration, tags
    values: Sequence[Any]


@dataclass(frozen=True)
class Known:
    """What could be a column: a name, and how many of the runs have it."""

    name: str
    label: str
    runs: int
    differs: bool = True
    values: int = 1  # how many different ones, of a parameter


@dataclass(frozen=True)
class Table:
    """The matching rows, newest first or in the requested order.

    Attributes:
        total: how many there are; `runs` holds no more than a thousand of them.
        runs: id, name, whether it may be changed, is starred and archived, and numbers of job and training, of each.
        known: parameters, figures and tags that any of them has.
    """

    total: int
    runs: list[dict[str, Any]]
    columns: list[Column]
    known: list[Known] = field(default_factory=list)


def rows(user: User, *, text: str = "", archived: bool = False) -> RunQuerySet:
    """Return the visible runs that match a filter. Archived ones are included only on request.

    Raises:
        Invalid: see `finding.narrowed`.
    """
    runs = Run.objects.visible_to(user).without_looks()
    if not archived and "archived" not in text:
        runs = runs.filter(archived=False)
    return finding.narrowed(runs, text, user=user)


def ordered(runs: RunQuerySet, sort: str) -> RunQuerySet:
    """By the name of a column, downwards with "-" before it; runs without a value come last.

    Raises:
        Invalid: there is no such column.
    """
    name = sort.removeprefix("-") or "created"
    down = sort.startswith("-") or not sort
    keys = {f"place_{at}": expression for at, expression in enumerate(_expressions(name))}
    order = [F(at).desc(nulls_last=True) if down else F(at).asc(nulls_last=True) for at in keys]
    return runs.alias(**keys).order_by(*order, "-pk")


def figure_of(name: str) -> tuple[str, str] | None:
    """Which value of which key a column shows: `best(val/ap)` is ("best", "val/ap"); None of what is no figure."""
    match = _FIGURE.fullmatch(name)
    return (match[1], match[2]) if match else None


def _expressions(name: str) -> list[Any]:
    if match := _FIGURE.fullmatch(name):
        return [figure_sql.figure(match[1], match[2])]
    before, _dot, key = name.partition(".")
    if before == "params" and key:
        own = Param.objects.filter(run=OuterRef("pk"), key=key)
        return [Subquery(own.values("number")[:1], FloatField()), Subquery(own.values("text")[:1])]
    if before == "tags" and key:
        return [Subquery(Tag.objects.filter(run=OuterRef("pk"), key=key).values("value")[:1])]
    columns = {
        "name": figure_sql.named()["shown_name"],
        "state": figure_sql.named()["state_word"],
        "created": F("created_at"),
        "duration": conditions.span(),
        "owner": F("owner__username"),
        "kind": F("job__kind"),
        "preset": F("job__training__preset"),
        "dataset": F("job__training__version_label"),
        "cards": F("job__nodes") * F("job__gpus_per_node"),
        "cluster": F("job__cluster__name"),
        "experiment": F("experiment"),
        "notes": F("notes"),
    }
    if name not in columns:
        raise Invalid(_("Cannot sort by %(name)s: unknown column.") % {"name": name[:60]}, field="sort")
    return [columns[name]]


def table(
    user: User,
    *,
    text: str = "",
    archived: bool = False,
    columns: Sequence[str] = (),
    sort: str = "-created",
    limit: int = MAX_RUNS,
) -> Table:
    """Return the table as one user sees it.

    Args:
        columns: names: facts, `params.lr`, `best(val/accuracy)`, `tags.author`; empty is those that tell most.
        limit: number of rows, at most a thousand; `total` counts all of them.

    Raises:
        Invalid: a filter, a column or an order that is none.
    """
    if len(columns) > MAX_COLUMNS:
        message = _("The table shows at most %(limit)s columns.") % {"limit": MAX_COLUMNS}
        raise Invalid(message, field="column")
    matching = rows(user, text=text, archived=archived)
    ordered_runs = ordered(matching, sort).for_table(notes="notes" in columns)
    shown = list(ordered_runs[: limit + 1])
    total = len(shown) if len(shown) <= limit else matching.count()
    shown = shown[:limit]
    of = _Values(shown)
    available = of.list_columns()
    wanted = list(dict.fromkeys(columns)) or _usual(of, available)
    starred = set(Star.objects.filter(user=user, run__in=of.numbers).values_list("run", flat=True))
    mine = user.sees_everything
    head = [
        {
            "id": run.pk, "name": str(run), "job": run.job_id, "training": run.training and run.training.pk,
            "starred": run.pk in starred, "archived": run.archived, "editable": mine or run.owner_id == user.pk,
            "visibility": run.visibility,
        }
        for run in shown
    ]  # fmt: skip
    return Table(total, head, [of.column(name) for name in wanted], available)


def check(user: User, *, text: str, columns: Sequence[str], sort: str) -> None:
    """Refuse what `table` refuses.

    Raises:
        Invalid: a filter, a column or an order that is none.
    """
    refusals = Refusals()
    with refusals:
        finding.narrowed(Run.objects.none(), text, user=user)
    with refusals:
        ordered(Run.objects.none(), sort)
    with refusals:
        if len(columns) > MAX_COLUMNS:
            message = _("The table shows at most %(limit)s columns.") % {"limit": MAX_COLUMNS}
            raise Invalid(message, field="column")
    for name in columns:
        with refusals:
            _Values([]).column(name)
    refusals.end()


def _figure_label(kind: str, key: str) -> str:
    """The label of a metric; the best value of a run need not be that of its saved weights, and says so."""
    label = metric_labels.word(key)
    return _("%(metric)s · best") % {"metric": label} if kind == figure_sql.BEST else label


def _usual(of: _Values, available: Iterable[Known]) -> list[str]:
    """Return the default columns: state, dataset, the best key metrics, parameters that differ, the rest."""
    columns = list(available)
    metrics = _usual_metrics(of, [column.name for column in columns if column.name.startswith("best(")])
    runtime = {param.name for preset in PRESETS.values() for param in preset.parameters if param.group == "runtime"}
    differing = [column.name for column in columns if column.name.startswith("params.") and column.values > 1]
    params = [name for name in differing if name.removeprefix("params.") not in runtime][:USUAL_PARAMS]
    datasets = ["dataset"] if any(of.fact(run, "dataset") for run in of.runs) else []
    presets = ["preset"] if len({of.fact(run, "preset") for run in of.runs} - {None}) > 1 else []
    owners = ["owner"] if len({run.owner_id for run in of.runs}) > 1 else []
    tags = ["tags"] if any(column.name.startswith("tags.") for column in columns) else []
    return ["state", *datasets, *metrics, *params, *presets, *tags, *owners, "duration", "created"]


def _usual_metrics(of: _Values, names: Sequence[str]) -> list[str]:
    """Columns of metrics of models, those that rate the presets first; values of single classes are left out."""
    tasks = [TASKS.find(PRESETS[preset].task) for preset in of.presets() if preset in PRESETS]
    first = {f"best({task.figure[0]})" for task in tasks if task}
    axes = {f"best({key})" for key in figure_sql.EPOCHS}
    of_models = [
        name for name in names
        if name not in axes and not name.startswith("best(system/") and not metric_labels.is_part(name[5:-1])
    ]  # fmt: skip
    return sorted(of_models, key=lambda name: name not in first)[:USUAL_FIGURES]


class _Values:
    """Values of many runs, fetched column by column with at most one query each."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = runs
        self.numbers = [run.pk for run in runs]
        self.of_job = {run.job_id: run.pk for run in runs if run.job_id is not None}
        self.moment = now()
        self._figures: dict[str, dict[int, dict[str, float]]] = {}

    def list_columns(self) -> list[Known]:
        """Return parameters by the number of differing values, metrics with validation first, and tags."""
        params = Param.objects.filter(run__in=self.numbers).values("key").order_by("key")
        counted = params.annotate(runs=Count("pk"), values=Count("text", distinct=True))
        param_columns = [
            Known(
                f"params.{row['key']}", str(param_labels.label(row["key"])), row["runs"],
                row["values"] > 1 or row["runs"] < len(self.runs),
                row["values"],
            )
            for row in counted
        ]  # fmt: skip
        keys = Curve.objects.filter(attempt__job__in=self.of_job).values("key").order_by("key")
        counts = {row["key"]: row["runs"] for row in keys.annotate(runs=Count("attempt__job", distinct=True))}
        for row in RunCurve.objects.filter(run__in=self.numbers).values("key").annotate(runs=Count("pk")):
            counts[row["key"]] = counts.get(row["key"], 0) + row["runs"]
        reached = [
            Known(f"best({key})", _figure_label(figure_sql.BEST, key), count)
            for key, count in sorted(counts.items(), key=lambda item: (_place(item[0]), -item[1], item[0]))
        ]
        tag_counts = Tag.objects.filter(run__in=self.numbers).values("key").order_by("key").annotate(runs=Count("pk"))
        tags = [Known(f"tags.{row['key']}", row["key"], row["runs"]) for row in tag_counts]
        return [*reached, *sorted(param_columns, key=lambda item: not item.differs), *tags]

    def column(self, name: str) -> Column:
        """Return a column by its name.

        Raises:
            Invalid: there is none.
        """
        if match := _FIGURE.fullmatch(name):
            values = self._figure(match[1], match[2])
            return Column(name, _figure_label(match[1], match[2]), "number", self._each(values))
        before, _dot, key = name.partition(".")
        if before == "params" and key:
            rows = Param.objects.filter(run__in=self.numbers, key=key).values_list("run", "text", "number")
            params = {run: text if number is None else _short(number, text) for run, text, number in rows}
            numeric = bool(params) and all(not isinstance(value, str) for value in params.values())
            return Column(name, str(param_labels.label(key)), "number" if numeric else "text", self._each(params))
        if before == "tags" and key:
            tags = dict(Tag.objects.filter(run__in=self.numbers, key=key).values_list("run", "value"))
            return Column(name, key, "text", self._each({run: value or key for run, value in tags.items()}))
        if name not in FACTS:
            raise Invalid(_("Unknown column %(name)s.") % {"name": name[:60]}, field="column")
        label, kind = FACTS[name]
        if name == "tags":
            return Column(name, str(label), kind, self._tags())
        return Column(name, str(label), kind, [self.fact(run, name) for run in self.runs])

    def presets(self) -> set[str]:
        """Names of the presets of the runs."""
        return {run.training.preset for run in self.runs if run.training and run.training.preset}

    def _each(self, values: dict[int, Any]) -> list[Any]:
        return [values.get(number) for number in self.numbers]

    def _tags(self) -> list[list[str]]:
        by_run: dict[int, list[str]] = {number: [] for number in self.numbers}
        rows = Tag.objects.filter(run__in=self.numbers).exclude(key__startswith="mlflow.").order_by("key")
        for run, key, value in rows.values_list("run", "key", "value"):
            by_run[run].append(f"{key}={value[:60]}" if value else key)
        return list(by_run.values())

    def _figure(self, kind: str, key: str) -> dict[int, float]:
        if key not in self._figures:
            self._figures[key] = self._read(key)
        if kind == figure_sql.BEST:
            kind = figure_sql.LOWEST if figure_sql.less_is_better(key) else figure_sql.HIGHEST
        return {run: own[kind] for run, own in self._figures[key].items()}

    def _read(self, key: str) -> dict[int, dict[str, float]]:
        by_run: dict[Any, dict[str, float]] = {}
        of_jobs = Curve.objects.filter(HAS_VALUE, attempt__job__in=self.of_job, key=key).order_by("attempt__number")
        rows = of_jobs.values_list("attempt__job", "value", "lowest", "highest")
        alone = RunCurve.objects.filter(HAS_VALUE, run__in=self.numbers, key=key)
        others = alone.values_list("run", "value", "lowest", "highest")
        for run, last, low, high in [*((self.of_job[job], *rest) for job, *rest in rows), *others]:
            before = by_run.get(run)
            by_run[run] = {
                "last": last,
                "min": min(low, before["min"]) if before else low,
                "max": max(high, before["max"]) if before else high,
            }
        return by_run

    def fact(self, run: Run, name: str) -> Any:
        job, training = run.job, run.training
        if name == "state":
            return run.shown_state
        if name == "created":
            return run.created_at.isoformat(timespec="seconds")
        if name == "duration":
            return self._span(run)
        if name == "owner":
            return run.owner.username
        if name == "kind":
            return job.kind if job is not None else ("part" if run.parent_id else "elsewhere")
        if name == "preset":
            return (training and training.preset) or None
        if name == "dataset":
            return (training and training.version_label) or None
        if name == "cards":
            return job.total_gpus if job is not None else None
        if name == "cluster":
            return job.cluster.name if job is not None else None
        return getattr(run, name) or None

    def _span(self, run: Run) -> float | None:
        begun: datetime | None = run.job.started_at if run.job is not None else run.created_at
        ended = run.job.ended_at if run.job is not None else run.ended_at
        over = run.shown_state in FINAL
        if begun is None or (over and ended is None):
            return None
        return round(((ended or self.moment) - begun).total_seconds(), 1)


def _place(key: str) -> int:
    return 0 if key.startswith(("val/", "test/", "val_", "eval")) else 2 if key.startswith("system/") else 1


def _short(number: float, text: str) -> Any:
    """A number as it was given: 3, not 3.0; true, not 1."""
    if text in ("true", "false"):
        return text
    return int(number) if number.is_integer() and abs(number) < 2**53 else number
