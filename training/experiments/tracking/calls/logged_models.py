"""Calls about models that scripts log."""

from __future__ import annotations

from training.experiments.tracking import artifacts, experiments, filters, logged_models, shapes
from training.experiments.tracking.calls import Answer, Asked, answers
from training.experiments.tracking.models import LoggedModel
from training.experiments.tracking.pages_of_rows import paged


def _shown(asked: Asked, rows: list[LoggedModel]) -> list[dict[str, object]]:
    found = {}
    for row in rows:
        found[row.owner_id, row.experiment] = row
    numbers: dict[tuple[int, str], str] = {}
    for (owner, name), row in found.items():
        made = experiments.ensured(row.owner, [name])
        numbers[owner, name] = str(made[name].pk) if name else experiments.DEFAULT_ID
    return [shapes.logged_model(row, numbers[row.owner_id, row.experiment]) for row in rows]


def _answer(asked: Asked, row: LoggedModel) -> Answer:
    return {"model": _shown(asked, [row])[0]}


@answers("POST", "logged-models")
def create(asked: Asked) -> Answer:
    body = asked.body
    experiment = experiments.own(asked.caller, body.text("experiment_id") or experiments.DEFAULT_ID)
    uid = body.text("source_run_id")
    row = logged_models.create(
        asked.caller,
        experiment,
        name=body.text("name", most=250),
        run=asked.caller.run_to_change(uid) if uid else None,
        model_type=body.text("model_type", most=250),
        params=body.pairs("params", longest=6000),
        tags=body.pairs("tags", longest=8000),
    )
    return _answer(asked, row)


@answers("POST", "logged-models/search", reads=True)
def search(asked: Asked) -> Answer:
    body = asked.body
    chosen = [experiments.by_id(asked.caller, number) for number in dict.fromkeys(body.texts("experiment_ids"))]
    comparisons = filters.parse(body.text("filter", most=filters.LONGEST))
    rows = logged_models.of_experiments(asked.caller, chosen)
    rows = [row for row in rows if filters.matches(comparisons, _value_of(row))]
    found, token = paged(rows, body.whole("max_results"), body.text("page_token"))
    return {"models": _shown(asked, found)} | token


def _value_of(row: LoggedModel) -> filters.ValueOf:
    about = shapes.logged_model(row, "")["info"]
    metrics = {metric["key"]: metric["value"] for metric in row.metrics}
    by_kind = {filters.PARAM: row.params, filters.TAG: row.tags, filters.METRIC: metrics, filters.ATTRIBUTE: about}
    return lambda kind, key: by_kind[kind].get(key)


@answers("GET", "logged-models/<uid>")
def get(asked: Asked) -> Answer:
    return _answer(asked, logged_models.find(asked.caller, asked.at["uid"]))


@answers("PATCH", "logged-models/<uid>")
def finish(asked: Asked) -> Answer:
    row, status = logged_models.find(asked.caller, asked.at["uid"], to_change=True), asked.body.fields.get("status")
    word = logged_models.OLD_NUMBERS.get(status, "?") if isinstance(status, int) else asked.body.text("status")
    logged_models.finish(row, word)
    return _answer(asked, row)


@answers("DELETE", "logged-models/<uid>")
def delete(asked: Asked) -> Answer:
    logged_models.delete(asked.caller, logged_models.find(asked.caller, asked.at["uid"], to_change=True))
    return {}


@answers("POST", "logged-models/<uid>/params")
def add_params(asked: Asked) -> Answer:
    row = logged_models.find(asked.caller, asked.at["uid"], to_change=True)
    logged_models.add_params(row, asked.body.pairs("params", longest=6000))
    return {}


@answers("PATCH", "logged-models/<uid>/tags")
def set_tags(asked: Asked) -> Answer:
    row = logged_models.find(asked.caller, asked.at["uid"], to_change=True)
    logged_models.set_tags(row, asked.body.pairs("tags", longest=8000))
    return _answer(asked, row)


@answers("DELETE", "logged-models/<uid>/tags/<key>")
def delete_tag(asked: Asked) -> Answer:
    logged_models.delete_tag(logged_models.find(asked.caller, asked.at["uid"], to_change=True), asked.at["key"])
    return {}


@answers("GET", "logged-models/<uid>/artifacts/directories")
def list_artifacts(asked: Asked) -> Answer:
    path = asked.body.text("artifact_directory_path").strip("/")
    rows = artifacts.listed(artifacts.of_model(asked.caller, asked.at["uid"]), artifacts.parse(path))
    named = [(f"{path}/{row.name}" if path else row.name, row) for row in rows]
    files = [{"path": name, "is_dir": row.is_folder, "file_size": row.size_bytes} for name, row in named]
    return {"root_uri": shapes.place_of_model(asked.at["uid"]), "files": files}
