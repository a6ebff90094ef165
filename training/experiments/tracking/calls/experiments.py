"""Calls about experiments."""

from __future__ import annotations

from training.experiments.tracking import experiments, filters, shapes
from training.experiments.tracking.calls import Answer, Asked, answers
from training.experiments.tracking.models import Experiment
from training.experiments.tracking.pages_of_rows import paged


@answers("GET", "experiments/get-by-name")
def get_by_name(asked: Asked) -> Answer:
    name = asked.body.text("experiment_name", needed=True)
    return {"experiment": shapes.experiment(experiments.by_name(asked.caller, name))}


@answers("GET", "experiments/get")
def get(asked: Asked) -> Answer:
    number = asked.body.text("experiment_id", needed=True)
    return {"experiment": shapes.experiment(experiments.by_id(asked.caller, number))}


@answers("POST", "experiments/create")
def create(asked: Asked) -> Answer:
    found = experiments.create(asked.caller, asked.body.text("name"), asked.body.pairs("tags"))
    return {"experiment_id": str(found.pk)}


@answers("POST", "experiments/update")
def update(asked: Asked) -> Answer:
    found = experiments.own(asked.caller, asked.body.text("experiment_id", needed=True))
    if name := asked.body.text("new_name"):
        experiments.rename(found, name)
    return {}


@answers("POST", "experiments/delete")
def delete(asked: Asked) -> Answer:
    experiments.archive(experiments.own(asked.caller, asked.body.text("experiment_id", needed=True)), archived=True)
    return {}


@answers("POST", "experiments/restore")
def restore(asked: Asked) -> Answer:
    experiments.archive(experiments.own(asked.caller, asked.body.text("experiment_id", needed=True)), archived=False)
    return {}


@answers("POST", "experiments/set-experiment-tag")
def set_tag(asked: Asked) -> Answer:
    found = experiments.own(asked.caller, asked.body.text("experiment_id", needed=True))
    experiments.set_tag(found, asked.body.text("key", most=250, needed=True), asked.body.text("value"))
    return {}


@answers("POST", "experiments/search", reads=True)
@answers("GET", "experiments/search")
def search(asked: Asked) -> Answer:
    body = asked.body
    comparisons = filters.parse(body.text("filter", most=filters.LONGEST))
    view = body.text("view_type") or "ACTIVE_ONLY"
    rows = [
        row
        for row in experiments.all_of(asked.caller.user)
        if (view == "ALL" or row.archived == (view == "DELETED_ONLY")) and filters.matches(comparisons, _value_of(row))
    ]
    shown, token = paged(rows, body.whole("max_results", 1000), body.text("page_token"))
    return {"experiments": [shapes.experiment(row) for row in shown]} | token


def _value_of(row: Experiment) -> filters.ValueOf:
    about = shapes.experiment(row)

    def value(kind: str, key: str) -> object:
        return row.tags.get(key) if kind == filters.TAG else about.get(key)

    return value
