"""Calls about models that scripts log."""

from __future__ import annotations

from training.experiments.tracking import artifacts, experiments, filters, logged_models, shapes
from training.experiments.tracking.calls import Answer, CallContext, answers
from training.experiments.tracking.models import LoggedModel
from training.experiments.tracking.pages_of_rows import paged


def _shown(_context: CallContext, rows: list[LoggedModel]) -> list[dict[str, object]]:
    newest = {}
    for row in rows:
        newest[row.owner_id, row.experiment] = row
    numbers: dict[tuple[int, str], str] = {}
    for (owner, name), row in newest.items():
        made = experiments.ensured(row.owner, [name])
        numbers[owner, name] = str(made[name].pk) if name else experiments.DEFAULT_ID
    return [shapes.logged_model(row, numbers[row.owner_id, row.experiment]) for row in rows]


def _answer(context: CallContext, row: LoggedModel) -> Answer:
    return {"model": _shown(context, [row])[0]}


@answers("POST", "logged-models")
def create(context: CallContext) -> Answer:
    body = context.body
    experiment = experiments.own(context.caller, body.text("experiment_id") or experiments.DEFAULT_ID)
    uid = body.text("source_run_id")
    row = logged_models.create(
        context.caller,
        experiment,
        name=body.text("name", max_length=250),
        run=context.caller.run_to_change(uid) if uid else None,
        model_type=body.text("model_type", max_length=250),
        params=body.pairs("params", max_length=6000),
        tags=body.pairs("tags", max_length=8000),
    )
    return _answer(context, row)


@answers("POST", "logged-models/search", reads=True)
def search(context: CallContext) -> Answer:
    body = context.body
    chosen = [experiments.by_id(context.caller, number) for number in dict.fromkeys(body.texts("experiment_ids"))]
    comparisons = filters.parse(body.text("filter", max_length=filters.LONGEST))
    rows = logged_models.of_experiments(context.caller, chosen)
    rows = [row for row in rows if filters.matches(comparisons, _value_of(row))]
    shown, token = paged(rows, body.integer("max_results"), body.text("page_token"))
    return {"models": _shown(context, shown)} | token


def _value_of(row: LoggedModel) -> filters.ValueOf:
    attributes = shapes.logged_model(row, "")["info"]
    metrics = {metric["key"]: metric["value"] for metric in row.metrics}
    by_kind = {filters.PARAM: row.params, filters.TAG: row.tags, filters.METRIC: metrics, filters.ATTRIBUTE: attributes}
    return lambda kind, key: by_kind[kind].get(key)


@answers("GET", "logged-models/<uid>")
def get(context: CallContext) -> Answer:
    return _answer(context, logged_models.find(context.caller, context.at["uid"]))


@answers("PATCH", "logged-models/<uid>")
def finish(context: CallContext) -> Answer:
    row, status = (
        logged_models.find(context.caller, context.at["uid"], to_change=True),
        context.body.fields.get("status"),
    )
    word = logged_models.OLD_NUMBERS.get(status, "?") if isinstance(status, int) else context.body.text("status")
    logged_models.finish(row, word)
    return _answer(context, row)


@answers("DELETE", "logged-models/<uid>")
def delete(context: CallContext) -> Answer:
    logged_models.delete(context.caller, logged_models.find(context.caller, context.at["uid"], to_change=True))
    return {}


@answers("POST", "logged-models/<uid>/params")
def add_params(context: CallContext) -> Answer:
    row = logged_models.find(context.caller, context.at["uid"], to_change=True)
    logged_models.add_params(row, context.body.pairs("params", max_length=6000))
    return {}


@answers("PATCH", "logged-models/<uid>/tags")
def set_tags(context: CallContext) -> Answer:
    row = logged_models.find(context.caller, context.at["uid"], to_change=True)
    logged_models.set_tags(row, context.body.pairs("tags", max_length=8000))
    return _answer(context, row)


@answers("DELETE", "logged-models/<uid>/tags/<key>")
def delete_tag(context: CallContext) -> Answer:
    logged_models.delete_tag(logged_models.find(context.caller, context.at["uid"], to_change=True), context.at["key"])
    return {}


@answers("GET", "logged-models/<uid>/artifacts/directories")
def list_artifacts(context: CallContext) -> Answer:
    path = context.body.text("artifact_directory_path").strip("/")
    rows = artifacts.listed(artifacts.of_model(context.caller, context.at["uid"]), artifacts.parse(path))
    named = [(f"{path}/{row.name}" if path else row.name, row) for row in rows]
    files = [{"path": name, "is_dir": row.is_folder, "file_size": row.size_bytes} for name, row in named]
    return {"root_uri": shapes.place_of_model(context.at["uid"]), "files": files}
