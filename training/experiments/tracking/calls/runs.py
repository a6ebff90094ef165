"""Calls about runs."""

from __future__ import annotations

from typing import Any

from django.utils.timezone import now
from django.utils.translation import gettext as _

from aiplatform.lib.errors import Invalid
from training.experiments.models import Run
from training.experiments.tracking import artifacts, experiments, figures, filters, runs, searching, shapes
from training.experiments.tracking.body import Body
from training.experiments.tracking.calls import Answer, CallContext, answers
from training.experiments.tracking.figures import Metric
from training.experiments.tracking.logged_models import note_metrics
from training.experiments.tracking.pages_of_rows import paged

MAX_METRICS, MAX_PARAMS, MAX_TAGS, MAX_VALUES = 1000, 100, 100, 1000
MAX_HISTORY = 25_000


def _run(context: CallContext) -> Run:
    """Return the active run that a call reports to."""
    return runs.require_active(_any_run(context))


def _any_run(context: CallContext) -> Run:
    return context.caller.run_to_change(_uid(context.body))


def _uid(body: Body) -> str:
    return body.text("run_id") or body.text("run_uuid", needed=True)


@answers("POST", "runs/create")
def create(context: CallContext) -> Answer:
    body = context.body
    experiment = experiments.own(context.caller, body.text("experiment_id") or experiments.DEFAULT_ID)
    if experiment.archived:
        raise Invalid(_("This experiment was deleted. Restore it, or choose another one."), field="experiment_id")
    run = runs.create(
        context.caller,
        experiment,
        name=body.text("run_name"),
        tags=body.pairs("tags", max_length=runs.MAX_TAG_LENGTH),
        begun=body.moment("start_time"),
    )
    return {"run": shapes.run(run)}


@answers("GET", "runs/get")
def get(context: CallContext) -> Answer:
    run = context.caller.run(_uid(context.body))
    if context.caller.token and run.job_id == context.caller.token.attempt.job_id:
        runs.opened(context.caller.token)
    return {"run": shapes.run(run)}


@answers("POST", "runs/update")
def update(context: CallContext) -> Answer:
    run, status = _any_run(context), context.body.fields.get("status")
    word = runs.OLD_NUMBERS.get(status, "?") if isinstance(status, int) else context.body.text("status")
    runs.update(run, status=word, ended=context.body.moment("end_time"), name=context.body.text("run_name"))
    return {"run_info": shapes.run(run)["info"]}


@answers("POST", "runs/delete")
def delete(context: CallContext) -> Answer:
    runs.archive(_any_run(context), archived=True)
    return {}


@answers("POST", "runs/restore")
def restore(context: CallContext) -> Answer:
    runs.archive(_any_run(context), archived=False)
    return {}


@answers("POST", "runs/log-metric")
def log_metric(context: CallContext) -> Answer:
    run = _run(context)
    figures.log(run, [_metric(context.body)])
    note_metrics(context.caller, run, [context.body])
    return {}


@answers("POST", "runs/log-parameter")
def log_parameter(context: CallContext) -> Answer:
    runs.set_params(_run(context), {context.body.text("key"): context.body.text("value", max_length=100_000)})
    return {}


@answers("POST", "runs/set-tag")
def set_tag(context: CallContext) -> Answer:
    runs.set_tags(_run(context), {context.body.text("key"): context.body.text("value", max_length=100_000)})
    return {}


@answers("POST", "runs/delete-tag")
def delete_tag(context: CallContext) -> Answer:
    runs.delete_tag(_run(context), context.body.text("key", needed=True))
    return {}


@answers("POST", "runs/log-batch")
def log_batch(context: CallContext) -> Answer:
    """Log parameters, metrics and tags, in this order; entries before a refusal are kept, as in MLflow."""
    run, body = _run(context), context.body
    metrics = body.rows("metrics", max_rows=MAX_METRICS)
    params, tags = body.rows("params", max_rows=MAX_PARAMS), body.rows("tags", max_rows=MAX_TAGS)
    if len(metrics) + len(params) + len(tags) > MAX_VALUES:
        raise Invalid(_("A batch can have at most %(most)s entries.") % {"most": MAX_VALUES}, field="metrics")
    values = [_metric(row) for row in metrics]
    runs.set_params(run, _params(params))
    figures.log(run, values)
    runs.set_tags(run, {row.text("key"): row.text("value", max_length=100_000) for row in tags})
    note_metrics(context.caller, run, metrics)
    return {}


def _metric(body: Body) -> Metric:
    at = body.moment("timestamp") or now()
    return Metric(body.text("key", needed=True), body.integer("step"), body.number("value"), at)


def _params(rows: list[Body]) -> dict[str, str]:
    params: dict[str, str] = {}
    for row in rows:
        key, value = row.text("key"), row.text("value", max_length=100_000)
        if params.get(key, value) != value:
            message = _("Changing param values is not allowed: %(key)s comes twice, with different values.")
            raise Invalid(message % {"key": key[:250]}, field="params")
        params[key] = value
    return params


@answers("POST", "runs/log-model")
def log_model(context: CallContext) -> Answer:
    """Log a model as clients before 3.0 do after uploading its files."""
    run, model_json = _run(context), context.body.text("model_json", max_length=100_000, needed=True)
    before = shapes.tags_of(run).get("mlflow.log-model.history", "[]")[1:-1]
    history = f"[{before}, {model_json}]" if before else f"[{model_json}]"
    runs.set_tags(
        run, {"mlflow.log-model.history": history if len(history) <= runs.MAX_TAG_LENGTH else f"[{model_json}]"}
    )
    return {}


@answers("POST", "runs/log-inputs")
def log_inputs(context: CallContext) -> Answer:
    run = _run(context)
    rows: list[dict[str, Any]] = []
    for row in context.body.rows("datasets", max_rows=100):
        dataset = Body(row.fields.get("dataset") or {})
        names = ("name", "digest", "source_type", "source", "schema", "profile")
        fields = {name: dataset.text(name, max_length=65_536, needed=name in {"name", "digest"}) for name in names}
        tags = [{"key": key, "value": value} for key, value in row.pairs("tags").items()]
        rows.append({"dataset": fields, "tags": tags})
    runs.add_inputs(run, rows)
    return {}


@answers("POST", "runs/outputs")
def outputs(context: CallContext) -> Answer:
    run = _run(context)
    rows = [
        {"model_id": row.text("model_id", max_length=34, needed=True), "step": row.integer("step")}
        for row in context.body.rows("models", max_rows=100)
    ]
    runs.add_outputs(run, rows)
    return {}


@answers("GET", "metrics/get-history")
def history(context: CallContext) -> Answer:
    body = context.body
    run, name = context.caller.run(_uid(body)), body.text("metric_key", needed=True)
    points, token = paged(
        figures.history(run, name), body.integer("max_results"), body.text("page_token"), max_rows=MAX_HISTORY
    )
    return {"metrics": [shapes.metric(name, point) for point in points]} | token


@answers("POST", "runs/search", reads=True)
def search(context: CallContext) -> Answer:
    body, caller = context.body, context.caller
    comparisons = filters.parse(body.text("filter", max_length=filters.LONGEST))
    rows = caller.runs().none()
    for number in dict.fromkeys(body.texts("experiment_ids")):
        experiment = experiments.by_id(caller, number)
        rows |= caller.runs().filter(owner=experiment.owner, experiment=experiment.name)
    view = body.text("run_view_type") or "ACTIVE_ONLY"
    if view != "ALL":
        rows = rows.filter(archived=view == "DELETED_ONLY")
    rows = searching.ordered(searching.narrowed(rows, comparisons), filters.parse_orders(body.texts("order_by")))
    rows = rows.select_related("job__owner", "owner", "parent").prefetch_related("params", "tags")
    shown, token = paged(rows, body.integer("max_results"), body.text("page_token"))
    return {"runs": shapes.all_runs(shown)} | token


@answers("GET", "artifacts/list")
def list_artifacts(context: CallContext) -> Answer:
    run, path = context.caller.run(_uid(context.body)), context.body.text("path").strip("/")
    rows = artifacts.listed(artifacts.of_run(run), artifacts.parse(path))
    files = [_file(row) | {"path": f"{path}/{row.name}" if path else row.name} for row in rows]
    return {"root_uri": shapes.place_of_run(run.uid), "files": files}


def _file(row: artifacts.Entry) -> dict[str, Any]:
    return {"path": row.name, "is_dir": row.is_folder} | ({} if row.is_folder else {"file_size": row.size_bytes})
