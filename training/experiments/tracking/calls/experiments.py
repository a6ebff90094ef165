"""Calls about experiments."""

from __future__ import annotations

from training.experiments.tracking import experiments, filters, shapes
from training.experiments.tracking.calls import Answer, CallContext, answers
from training.experiments.tracking.models import Experiment
from training.experiments.tracking.pages_of_rows import paged


@answers("GET", "experiments/get-by-name")
def get_by_name(context: CallContext) -> Answer:
    name = context.body.text("experiment_name", needed=True)
    return {"experiment": shapes.experiment(experiments.by_name(context.caller, name))}


@answers("GET", "experiments/get")
def get(context: CallContext) -> Answer:
    number = context.body.text("experiment_id", needed=True)
    return {"experiment": shapes.experiment(experiments.by_id(context.caller, number))}


@answers("POST", "experiments/create")
def create(context: CallContext) -> Answer:
    experiment = experiments.create(context.caller, context.body.text("name"), context.body.pairs("tags"))
    return {"experiment_id": str(experiment.pk)}


@answers("POST", "experiments/update")
def update(context: CallContext) -> Answer:
    experiment = experiments.own(context.caller, context.body.text("experiment_id", needed=True))
    if name := context.body.text("new_name"):
        experiments.rename(experiment, name)
    return {}


@answers("POST", "experiments/delete")
def delete(context: CallContext) -> Answer:
    experiments.archive(experiments.own(context.caller, context.body.text("experiment_id", needed=True)), archived=True)
    return {}


@answers("POST", "experiments/restore")
def restore(context: CallContext) -> Answer:
    experiments.archive(
        experiments.own(context.caller, context.body.text("experiment_id", needed=True)), archived=False
    )
    return {}


@answers("POST", "experiments/set-experiment-tag")
def set_tag(context: CallContext) -> Answer:
    experiment = experiments.own(context.caller, context.body.text("experiment_id", needed=True))
    experiments.set_tag(experiment, context.body.text("key", max_length=250, needed=True), context.body.text("value"))
    return {}


@answers("POST", "experiments/search", reads=True)
@answers("GET", "experiments/search")
def search(context: CallContext) -> Answer:
    body = context.body
    comparisons = filters.parse(body.text("filter", max_length=filters.LONGEST))
    view = body.text("view_type") or "ACTIVE_ONLY"
    rows = [
        row
        for row in experiments.all_of(context.caller.user)
        if (view == "ALL" or row.archived == (view == "DELETED_ONLY")) and filters.matches(comparisons, _value_of(row))
    ]
    shown, token = paged(rows, body.integer("max_results", 1000), body.text("page_token"))
    return {"experiments": [shapes.experiment(row) for row in shown]} | token


def _value_of(row: Experiment) -> filters.ValueOf:
    attributes = shapes.experiment(row)

    def value(kind: str, key: str) -> object:
        return row.tags.get(key) if kind == filters.TAG else attributes.get(key)

    return value
