"""Models that scripts log, as MLflow 3 keeps them: each with an id, parameters, figures and files."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

from django.db import transaction
from django.utils.translation import gettext as _

from aiplatform.lib.errors import Invalid, NotAllowed
from training.experiments.models import Run
from training.experiments.tracking import artifacts, refusals
from training.experiments.tracking.body import Body
from training.experiments.tracking.callers import Caller
from training.experiments.tracking.models import Experiment, LoggedModel

STATES = ("LOGGED_MODEL_PENDING", "LOGGED_MODEL_READY", "LOGGED_MODEL_UPLOAD_FAILED")
OLD_NUMBERS = {1: STATES[0], 2: STATES[1], 3: STATES[2]}  # as protobuf counts them
MAX_FACTS, MAX_METRICS = 1000, 1000


def create(
    caller: Caller,
    experiment: Experiment,
    *,
    name: str,
    run: Run | None,
    model_type: str,
    params: Mapping[str, str],
    tags: Mapping[str, str],
) -> LoggedModel:
    """Make a model whose files are sent next."""
    return LoggedModel.objects.create(
        owner=caller.user,
        run=run or caller.own_run,
        experiment=experiment.name,
        name=name or f"model-{uuid.uuid4().hex[:8]}",
        model_type=model_type,
        params=dict(params),
        tags=dict(tags),
    )


def find(caller: Caller, uid: str, *, to_change: bool = False) -> LoggedModel:
    """A model to read, or to change.

    Raises:
        Missing, NotAllowed.
    """
    owner = artifacts.of_model(caller, uid, to_change=to_change)
    assert isinstance(owner.row, LoggedModel)
    return owner.row


def finish(model: LoggedModel, status: str) -> None:
    """Note that all files of a model were sent, or that they were not.

    Raises:
        Invalid: a state that is none.
    """
    if status not in STATES:
        raise Invalid(
            _("%(name)s must be one of %(words)s.") % {"name": "status", "words": ", ".join(STATES)}, field="status"
        )
    model.status = status
    model.save(update_fields=["status", "updated_at"])


def add_params(model: LoggedModel, params: Mapping[str, str]) -> None:
    """Add parameters."""
    model.params = _bounded({**model.params, **params})
    model.save(update_fields=["params", "updated_at"])


def set_tags(model: LoggedModel, tags: Mapping[str, str]) -> None:
    """Add tags, or change those that are there."""
    model.tags = _bounded({**model.tags, **tags})
    model.save(update_fields=["tags", "updated_at"])


def delete_tag(model: LoggedModel, key: str) -> None:
    """Remove a tag.

    Raises:
        Missing: there is none of this name.
    """
    if key not in model.tags:
        raise refusals.Missing(_("The model has no tag %(name)s.") % {"name": key[:100]})
    model.tags = {name: value for name, value in model.tags.items() if name != key}
    model.save(update_fields=["tags", "updated_at"])


def delete(caller: Caller, model: LoggedModel) -> None:
    """Delete a model; files below the outputs of a job stay there.

    Raises:
        NotAllowed: the program of a job asks.
    """
    if caller.token:
        raise NotAllowed(_("The token of a job cannot delete models."))
    model.delete()


def of_experiments(caller: Caller, chosen: Sequence[Experiment]) -> list[LoggedModel]:
    """Models of some experiments, the newest first."""
    rows = LoggedModel.objects.none()
    for experiment in chosen:
        rows |= LoggedModel.objects.filter(owner=experiment.owner, experiment=experiment.name)
    mine = rows if caller.token else rows & LoggedModel.objects.visible_to(caller.user)
    return list(mine.select_related("owner", "run").order_by("-pk")[:MAX_FACTS])


def note_metrics(caller: Caller, run: Run, reported: Sequence[Body]) -> None:
    """Store metrics that a script reports for a model; the newest of a name and a dataset counts."""
    by_model: dict[str, list[Body]] = {}
    for row in reported:
        if uid := row.text("model_id", max_length=34):
            by_model.setdefault(uid, []).append(row)
    for uid, rows in by_model.items():
        model = find(caller, uid, to_change=True)
        with transaction.atomic():
            model = LoggedModel.objects.select_for_update().get(pk=model.pk)
            by_name = {_name(metric): metric for metric in model.metrics}
            by_name |= {_name(metric): metric for metric in (_metric(run, uid, row) for row in rows)}
            model.metrics = list(by_name.values())[:MAX_METRICS]
            model.save(update_fields=["metrics", "updated_at"])


def _metric(run: Run, uid: str, row: Body) -> dict[str, object]:
    dataset = {
        name: row.text(name, max_length=250)
        for name in ("dataset_name", "dataset_digest")
        if row.text(name, max_length=250)
    }
    numbers = {"value": row.fields.get("value"), "step": row.integer("step"), "timestamp": row.integer("timestamp")}
    return {"key": row.text("key", max_length=250), "model_id": uid, "run_id": run.uid} | numbers | dataset


def _name(metric: Mapping[str, object]) -> tuple[object, ...]:
    return metric["key"], metric.get("dataset_name"), metric.get("dataset_digest")


def _bounded(facts: dict[str, str]) -> dict[str, str]:
    if len(facts) > MAX_FACTS:
        raise Invalid(_("A model can have at most %(most)s of these.") % {"most": MAX_FACTS})
    return facts
