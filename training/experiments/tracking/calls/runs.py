"""Calls about runs."""

from __future__ import annotations

from typing import Any

from django.utils.timezone import now
from django.utils.translation import gettext as _

from aiplatform.lib.errors import Invalid
from training.experiments.models import Run
from training.experiments.tracking import artifacts, experiments, figures, filters, runs, searching, shapes
from training.experiments.tracking.body import Body
from training.experiments.tracking.calls import Answer, Asked, answers
from training.experiments.tracking.figures import Metric
from training.experiments.tracking.logged_models import note_metrics
from training.experiments.tracking.pages_of_rows import paged

MOST_METRICS, MOST_PARAMS, MOST_TAGS, MOST_TOGETHER = 1000, 100, 100, 1000
MOST_HISTORY = 25_000


def _run(asked: Asked) -> Run:
    """The active run that a call reports to."""
    return runs.require_active(_any_run(asked))


def _any_run(asked: Asked) -> Run:
    return asked.caller.run_to_change(_uid(asked.body))


def _uid(body: Body) -> str:
    return body.text("run_id") or body.text("run_uuid", needed=True)


@answers("POST", "runs/create")
def create(asked: Asked) -> Answer:
    body = asked.body
    experiment = experiments.own(asked.caller, body.text("experiment_id") or experiments.DEFAULT_ID)
    if experiment.archived:
        raise Invalid(_("This experiment was deleted. Restore it, or choose another one."), field="experiment_id")
    run = runs.create(
        asked.caller,
        experiment,
        name=body.text("run_name"),
        tags=body.pairs("tags", longest=runs.LONGEST_TAG),
        begun=body.moment("start_time"),
    )
    return {"run": shapes.run(run)}


@answers("GET", "runs/get")
def get(asked: Asked) -> Answer:
    run = asked.caller.run(_uid(asked.body))
    if asked.caller.token and run.job_id == asked.caller.token.attempt.job_id:
        runs.opened(asked.caller.token)
    return {"run": shapes.run(run)}


@answers("POST", "runs/update")
def update(asked: Asked) -> Answer:
    run, status = _any_run(asked), asked.body.fields.get("status")
    word = runs.OLD_NUMBERS.get(status, "?") if isinstance(status, int) else asked.body.text("status")
    runs.update(run, status=word, ended=asked.body.moment("end_time"), name=asked.body.text("run_name"))
    return {"run_info": shapes.run(run)["info"]}


@answers("POST", "runs/delete")
def delete(asked: Asked) -> Answer:
    runs.archive(_any_run(asked), archived=True)
    return {}


@answers("POST", "runs/restore")
def restore(asked: Asked) -> Answer:
    runs.archive(_any_run(asked), archived=False)
    return {}


@answers("POST", "runs/log-metric")
def log_metric(asked: Asked) -> Answer:
    run = _run(asked)
    figures.log(run, [_metric(asked.body)])
    note_metrics(asked.caller, run, [asked.body])
    return {}


@answers("POST", "runs/log-parameter")
def log_parameter(asked: Asked) -> Answer:
    runs.set_params(_run(asked), {asked.body.text("key"): asked.body.text("value", most=100_000)})
    return {}


@answers("POST", "runs/set-tag")
def set_tag(asked: Asked) -> Answer:
    runs.set_tags(_run(asked), {asked.body.text("key"): asked.body.text("value", most=100_000)})
    return {}


@answers("POST", "runs/delete-tag")
def delete_tag(asked: Asked) -> Answer:
    runs.delete_tag(_run(asked), asked.body.text("key", needed=True))
    return {}


@answers("POST", "runs/log-batch")
def log_batch(asked: Asked) -> Answer:
    """Parameters, metrics, tags, in this order; what comes before a refusal is kept, as MLflow does."""
    run, body = _run(asked), asked.body
    metrics = body.rows("metrics", most=MOST_METRICS)
    params, tags = body.rows("params", most=MOST_PARAMS), body.rows("tags", most=MOST_TAGS)
    if len(metrics) + len(params) + len(tags) > MOST_TOGETHER:
        raise Invalid(_("A batch has at most %(most)s entries.") % {"most": MOST_TOGETHER}, field="metrics")
    values = [_metric(row) for row in metrics]
    runs.set_params(run, _params(params))
    figures.log(run, values)
    runs.set_tags(run, {row.text("key"): row.text("value", most=100_000) for row in tags})
    note_metrics(asked.caller, run, metrics)
    return {}


def _metric(body: Body) -> Metric:
    at = body.moment("timestamp") or now()
    return Metric(body.text("key", needed=True), body.whole("step"), body.number("value"), at)


def _params(rows: list[Body]) -> dict[str, str]:
    found: dict[str, str] = {}
    for row in rows:
        key, value = row.text("key"), row.text("value", most=100_000)
        if found.get(key, value) != value:
            said = _("Changing param values is not allowed: %(key)s comes twice, with different values.")
            raise Invalid(said % {"key": key[:250]}, field="params")
        found[key] = value
    return found


@answers("POST", "runs/log-model")
def log_model(asked: Asked) -> Answer:
    """What clients before 3.0 say of a model whose files they sent."""
    run, said = _run(asked), asked.body.text("model_json", most=100_000, needed=True)
    before = shapes.tags_of(run).get("mlflow.log-model.history", "[]")[1:-1]
    history = f"[{before}, {said}]" if before else f"[{said}]"
    runs.set_tags(run, {"mlflow.log-model.history": history if len(history) <= runs.LONGEST_TAG else f"[{said}]"})
    return {}


@answers("POST", "runs/log-inputs")
def log_inputs(asked: Asked) -> Answer:
    run = _run(asked)
    rows: list[dict[str, Any]] = []
    for row in asked.body.rows("datasets", most=100):
        dataset = Body(row.fields.get("dataset") or {})
        names = ("name", "digest", "source_type", "source", "schema", "profile")
        about = {name: dataset.text(name, most=65_536, needed=name in {"name", "digest"}) for name in names}
        tags = [{"key": key, "value": value} for key, value in row.pairs("tags").items()]
        rows.append({"dataset": about, "tags": tags})
    runs.add_inputs(run, rows)
    return {}


@answers("POST", "runs/outputs")
def outputs(asked: Asked) -> Answer:
    run = _run(asked)
    rows = [
        {"model_id": row.text("model_id", most=34, needed=True), "step": row.whole("step")}
        for row in asked.body.rows("models", most=100)
    ]
    runs.add_outputs(run, rows)
    return {}


@answers("GET", "metrics/get-history")
def history(asked: Asked) -> Answer:
    body = asked.body
    run, name = asked.caller.run(_uid(body)), body.text("metric_key", needed=True)
    found, token = paged(
        figures.history(run, name), body.whole("max_results"), body.text("page_token"), most=MOST_HISTORY
    )
    return {"metrics": [shapes.metric(name, one) for one in found]} | token


@answers("POST", "runs/search", reads=True)
def search(asked: Asked) -> Answer:
    body, caller = asked.body, asked.caller
    comparisons = filters.parse(body.text("filter", most=filters.LONGEST))
    rows = caller.runs().none()
    for number in dict.fromkeys(body.texts("experiment_ids")):
        experiment = experiments.by_id(caller, number)
        rows |= caller.runs().filter(owner=experiment.owner, experiment=experiment.name)
    view = body.text("run_view_type") or "ACTIVE_ONLY"
    if view != "ALL":
        rows = rows.filter(archived=view == "DELETED_ONLY")
    rows = searching.ordered(searching.narrowed(rows, comparisons), filters.parse_orders(body.texts("order_by")))
    rows = rows.select_related("job__owner", "owner", "parent").prefetch_related("params", "tags")
    found, token = paged(rows, body.whole("max_results"), body.text("page_token"))
    return {"runs": shapes.all_runs(found)} | token


@answers("GET", "artifacts/list")
def list_artifacts(asked: Asked) -> Answer:
    run, path = asked.caller.run(_uid(asked.body)), asked.body.text("path").strip("/")
    rows = artifacts.listed(artifacts.of_run(run), artifacts.parse(path))
    files = [_file(row) | {"path": f"{path}/{row.name}" if path else row.name} for row in rows]
    return {"root_uri": shapes.place_of_run(run.uid), "files": files}


def _file(row: artifacts.Entry) -> dict[str, Any]:
    return {"path": row.name, "is_dir": row.is_folder} | ({} if row.is_folder else {"file_size": row.size_bytes})
