"""Calls about registered models and their versions."""

from __future__ import annotations

from typing import Any

from training.experiments.tracking import filters, registry, shapes
from training.experiments.tracking.calls import Answer, Asked, answers
from training.experiments.tracking.models import TrackedModel, TrackedVersion
from training.experiments.tracking.pages_of_rows import paged


def _model(asked: Asked) -> TrackedModel:
    return registry.find(asked.caller, asked.body.text("name", needed=True))


def _version(asked: Asked) -> TrackedVersion:
    body = asked.body
    return registry.version(asked.caller, body.text("name", needed=True), body.text("version", needed=True))


def _model_answer(row: TrackedModel) -> Answer:
    return {"registered_model": shapes.registered_model(row)}


def _version_answer(row: TrackedVersion) -> Answer:
    return {"model_version": shapes.version(row, row.model)}


@answers("POST", "registered-models/create")
def create(asked: Asked) -> Answer:
    body = asked.body
    name, description = body.text("name", needed=True), body.text("description")
    return _model_answer(registry.create(asked.caller, name, description=description, tags=body.pairs("tags")))


@answers("GET", "registered-models/get")
def get(asked: Asked) -> Answer:
    return _model_answer(_model(asked))


@answers("PATCH", "registered-models/update")
def update(asked: Asked) -> Answer:
    row = _model(asked)
    registry.describe(row, asked.body.text("description"))
    return _model_answer(row)


@answers("POST", "registered-models/rename")
def rename(asked: Asked) -> Answer:
    row = _model(asked)
    registry.rename(row, asked.body.text("new_name"))
    return _model_answer(row)


@answers("DELETE", "registered-models/delete")
def delete(asked: Asked) -> Answer:
    registry.delete(asked.caller, _model(asked))
    return {}


@answers("GET", "registered-models/search")
def search(asked: Asked) -> Answer:
    body = asked.body
    comparisons = filters.parse(body.text("filter", most=filters.LONGEST))
    own = TrackedModel.objects.filter(owner=asked.caller.user).select_related("owner")
    all_own = own.prefetch_related("versions__run", "versions__logged")
    rows = [row for row in all_own if filters.matches(comparisons, _value_of({"name": row.name}, row.tags))]
    found, token = paged(rows, body.whole("max_results", 100), body.text("page_token"))
    return {"registered_models": [shapes.registered_model(row) for row in found]} | token


def _value_of(about: dict[str, Any], tags: dict[str, str]) -> filters.ValueOf:
    tags = {"mlflow.prompt.is_prompt": "false"} | tags  # clients leave out by it what is no model
    return lambda kind, key: tags.get(key) if kind == filters.TAG else about.get(key)


@answers("POST", "registered-models/get-latest-versions", reads=True)
@answers("GET", "registered-models/get-latest-versions")
def get_latest_versions(asked: Asked) -> Answer:
    row = _model(asked)
    stages = {registry.STAGES.get(stage.lower(), stage) for stage in asked.body.texts("stages")}
    newest = shapes.registered_model(row)["latest_versions"]
    return {"model_versions": [one for one in newest if not stages or one["current_stage"] in stages]}


@answers("POST", "registered-models/set-tag")
def set_tag(asked: Asked) -> Answer:
    registry.set_tag(_model(asked), asked.body.text("key", most=250, needed=True), asked.body.text("value"))
    return {}


@answers("DELETE", "registered-models/delete-tag")
def delete_tag(asked: Asked) -> Answer:
    registry.delete_tag(_model(asked), asked.body.text("key", needed=True))
    return {}


@answers("POST", "registered-models/alias")
def set_alias(asked: Asked) -> Answer:
    registry.set_alias(_model(asked), asked.body.text("alias", needed=True), asked.body.whole("version"))
    return {}


@answers("GET", "registered-models/alias")
def get_by_alias(asked: Asked) -> Answer:
    name, alias = asked.body.text("name", needed=True), asked.body.text("alias", needed=True)
    return _version_answer(registry.by_alias(asked.caller, name, alias))


@answers("DELETE", "registered-models/alias")
def delete_alias(asked: Asked) -> Answer:
    registry.delete_alias(_model(asked), asked.body.text("alias", needed=True))
    return {}


@answers("POST", "model-versions/create")
def create_version(asked: Asked) -> Answer:
    body = asked.body
    row = registry.add_version(
        asked.caller,
        _model(asked),
        source=body.text("source", most=500, needed=True),
        run_uid=body.text("run_id"),
        logged_uid=body.text("model_id"),
        description=body.text("description"),
        tags=body.pairs("tags"),
    )
    return _version_answer(row)


@answers("GET", "model-versions/get")
def get_version(asked: Asked) -> Answer:
    return _version_answer(_version(asked))


@answers("PATCH", "model-versions/update")
def update_version(asked: Asked) -> Answer:
    row = _version(asked)
    registry.describe(row, asked.body.text("description"))
    return _version_answer(row)


@answers("DELETE", "model-versions/delete")
def delete_version(asked: Asked) -> Answer:
    registry.delete(asked.caller, _version(asked))
    return {}


@answers("GET", "model-versions/search")
def search_versions(asked: Asked) -> Answer:
    body = asked.body
    comparisons = filters.parse(body.text("filter", most=filters.LONGEST))
    own = TrackedVersion.objects.filter(model__owner=asked.caller.user)
    for one in comparisons:
        if (one.kind, one.key, one.sign) == (filters.ATTRIBUTE, "name", "="):
            own = own.filter(model__name=str(one.value))
    rows = own.select_related("model__owner", "run", "logged").order_by("model__name", "-number")
    found = [row for row in rows if filters.matches(comparisons, _value_of(_about(row), row.tags))]
    shown, token = paged(found, body.whole("max_results", 1000), body.text("page_token"))
    return {"model_versions": [shapes.version(row, row.model) for row in shown]} | token


def _about(row: TrackedVersion) -> dict[str, Any]:
    about = shapes.version(row, row.model)
    return about | {"version_number": row.number, "source_path": row.source}


@answers("GET", "model-versions/get-download-uri")
def get_download_uri(asked: Asked) -> Answer:
    return {"artifact_uri": registry.download_uri(_version(asked))}


@answers("POST", "model-versions/transition-stage")
def transition_stage(asked: Asked) -> Answer:
    row, others = _version(asked), asked.body.fields.get("archive_existing_versions") is True
    registry.move(row, asked.body.text("stage", needed=True), archive_others=others)
    return _version_answer(row)


@answers("POST", "model-versions/set-tag")
def set_version_tag(asked: Asked) -> Answer:
    registry.set_tag(_version(asked), asked.body.text("key", most=250, needed=True), asked.body.text("value"))
    return {}


@answers("DELETE", "model-versions/delete-tag")
def delete_version_tag(asked: Asked) -> Answer:
    registry.delete_tag(_version(asked), asked.body.text("key", needed=True))
    return {}
