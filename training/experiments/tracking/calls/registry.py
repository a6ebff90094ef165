"""Calls about registered models and their versions."""

from __future__ import annotations

from typing import Any

from training.experiments.tracking import filters, registry, shapes
from training.experiments.tracking.calls import Answer, CallContext, answers
from training.experiments.tracking.models import TrackedModel, TrackedVersion
from training.experiments.tracking.pages_of_rows import paged


def _model(context: CallContext) -> TrackedModel:
    return registry.find(context.caller, context.body.text("name", needed=True))


def _version(context: CallContext) -> TrackedVersion:
    body = context.body
    return registry.version(context.caller, body.text("name", needed=True), body.text("version", needed=True))


def _model_answer(row: TrackedModel) -> Answer:
    return {"registered_model": shapes.registered_model(row)}


def _version_answer(row: TrackedVersion) -> Answer:
    return {"model_version": shapes.version(row, row.model)}


@answers("POST", "registered-models/create")
def create(context: CallContext) -> Answer:
    body = context.body
    name, description = body.text("name", needed=True), body.text("description")
    return _model_answer(registry.create(context.caller, name, description=description, tags=body.pairs("tags")))


@answers("GET", "registered-models/get")
def get(context: CallContext) -> Answer:
    return _model_answer(_model(context))


@answers("PATCH", "registered-models/update")
def update(context: CallContext) -> Answer:
    row = _model(context)
    registry.describe(row, context.body.text("description"))
    return _model_answer(row)


@answers("POST", "registered-models/rename")
def rename(context: CallContext) -> Answer:
    row = _model(context)
    registry.rename(row, context.body.text("new_name"))
    return _model_answer(row)


@answers("DELETE", "registered-models/delete")
def delete(context: CallContext) -> Answer:
    registry.delete(context.caller, _model(context))
    return {}


@answers("GET", "registered-models/search")
def search(context: CallContext) -> Answer:
    body = context.body
    comparisons = filters.parse(body.text("filter", max_length=filters.LONGEST))
    own = TrackedModel.objects.filter(owner=context.caller.user).select_related("owner")
    all_own = own.prefetch_related("versions__run", "versions__logged")
    rows = [row for row in all_own if filters.matches(comparisons, _value_of({"name": row.name}, row.tags))]
    shown, token = paged(rows, body.integer("max_results", 100), body.text("page_token"))
    return {"registered_models": [shapes.registered_model(row) for row in shown]} | token


def _value_of(attributes: dict[str, Any], tags: dict[str, str]) -> filters.ValueOf:
    tags = {"mlflow.prompt.is_prompt": "false"} | tags  # clients leave out by it what is no model
    return lambda kind, key: tags.get(key) if kind == filters.TAG else attributes.get(key)


@answers("POST", "registered-models/get-latest-versions", reads=True)
@answers("GET", "registered-models/get-latest-versions")
def get_latest_versions(context: CallContext) -> Answer:
    row = _model(context)
    stages = {registry.STAGES.get(stage.lower(), stage) for stage in context.body.texts("stages")}
    newest = shapes.registered_model(row)["latest_versions"]
    return {"model_versions": [version for version in newest if not stages or version["current_stage"] in stages]}


@answers("POST", "registered-models/set-tag")
def set_tag(context: CallContext) -> Answer:
    registry.set_tag(_model(context), context.body.text("key", max_length=250, needed=True), context.body.text("value"))
    return {}


@answers("DELETE", "registered-models/delete-tag")
def delete_tag(context: CallContext) -> Answer:
    registry.delete_tag(_model(context), context.body.text("key", needed=True))
    return {}


@answers("POST", "registered-models/alias")
def set_alias(context: CallContext) -> Answer:
    registry.set_alias(_model(context), context.body.text("alias", needed=True), context.body.integer("version"))
    return {}


@answers("GET", "registered-models/alias")
def get_by_alias(context: CallContext) -> Answer:
    name, alias = context.body.text("name", needed=True), context.body.text("alias", needed=True)
    return _version_answer(registry.by_alias(context.caller, name, alias))


@answers("DELETE", "registered-models/alias")
def delete_alias(context: CallContext) -> Answer:
    registry.delete_alias(_model(context), context.body.text("alias", needed=True))
    return {}


@answers("POST", "model-versions/create")
def create_version(context: CallContext) -> Answer:
    body = context.body
    row = registry.add_version(
        context.caller,
        _model(context),
        source=body.text("source", max_length=500, needed=True),
        run_uid=body.text("run_id"),
        logged_uid=body.text("model_id"),
        description=body.text("description"),
        tags=body.pairs("tags"),
    )
    return _version_answer(row)


@answers("GET", "model-versions/get")
def get_version(context: CallContext) -> Answer:
    return _version_answer(_version(context))


@answers("PATCH", "model-versions/update")
def update_version(context: CallContext) -> Answer:
    row = _version(context)
    registry.describe(row, context.body.text("description"))
    return _version_answer(row)


@answers("DELETE", "model-versions/delete")
def delete_version(context: CallContext) -> Answer:
    registry.delete(context.caller, _version(context))
    return {}


@answers("GET", "model-versions/search")
def search_versions(context: CallContext) -> Answer:
    body = context.body
    comparisons = filters.parse(body.text("filter", max_length=filters.LONGEST))
    own = TrackedVersion.objects.filter(model__owner=context.caller.user)
    for comparison in comparisons:
        if (comparison.kind, comparison.key, comparison.sign) == (filters.ATTRIBUTE, "name", "="):
            own = own.filter(model__name=str(comparison.value))
    rows = own.select_related("model__owner", "run", "logged").order_by("model__name", "-number")
    matching = [row for row in rows if filters.matches(comparisons, _value_of(_attributes(row), row.tags))]
    shown, token = paged(matching, body.integer("max_results", 1000), body.text("page_token"))
    return {"model_versions": [shapes.version(row, row.model) for row in shown]} | token


def _attributes(row: TrackedVersion) -> dict[str, Any]:
    attributes = shapes.version(row, row.model)
    return attributes | {"version_number": row.number, "source_path": row.source}


@answers("GET", "model-versions/get-download-uri")
def get_download_uri(context: CallContext) -> Answer:
    return {"artifact_uri": registry.download_uri(_version(context))}


@answers("POST", "model-versions/transition-stage")
def transition_stage(context: CallContext) -> Answer:
    row, others = _version(context), context.body.fields.get("archive_existing_versions") is True
    registry.move(row, context.body.text("stage", needed=True), archive_others=others)
    return _version_answer(row)


@answers("POST", "model-versions/set-tag")
def set_version_tag(context: CallContext) -> Answer:
    registry.set_tag(
        _version(context), context.body.text("key", max_length=250, needed=True), context.body.text("value")
    )
    return {}


@answers("DELETE", "model-versions/delete-tag")
def delete_version_tag(context: CallContext) -> Answer:
    registry.delete_tag(_version(context), context.body.text("key", needed=True))
    return {}
