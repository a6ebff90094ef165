"""The reply of the inspector as JSON, and back.

Its reader trusts none of it: a file may have taken the program over. The encoders run in the sandbox, the decoders
outside.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path, PurePosixPath
from typing import Any

from aiplatform.lib.errors import DomainError
from aiplatform.lib.numbers import finite
from aiplatform.lib.parsers import is_sound
from inference.kit.model_io.spec import TENSOR
from inference.kit.task_kinds import TASKS
from inference.registry.formats.declared import Declared, Files
from inference.registry.formats.folder import WEIGHTS, ModelContents
from inference.registry.formats.foreign_metadata import FileFacts
from inference.registry.formats.onnx import RefusedModel, Summary, Tensor

MAX_REFUSALS, MAX_TEXT_LENGTH = 200, 2000
MAX_VARIANTS = 64
MODEL_REFUSED = "model_refused"


class BadReply(Exception):
    """The reply is not one that the inspector writes."""


def refusal(error: DomainError) -> dict[str, Any]:
    """One error that the user can act on."""
    worded = error.worded.as_json() if error.worded is not None else None
    facts = {name: value for name, value in error.facts.items() if isinstance(value, str | int | float)}
    return {"code": error.code, "text": error.message, "worded": worded, "field": error.blamed, "facts": facts}


def refused_model(error: RefusedModel) -> dict[str, Any]:
    """Why the files are no model that is accepted."""
    return {"code": MODEL_REFUSED, "text": str(error), "worded": None, "field": None, "facts": {}}


def encode_found(content: ModelContents, folder: Path) -> dict[str, Any]:
    """Encode the contents of a folder, files by their names below it."""
    listed = {name: str(path.relative_to(folder)) for name, path in content.files.items()}
    return {**vars(content), "files": listed}


def encode_declared(declaration: Declared) -> dict[str, Any]:
    """Encode a declaration."""
    return asdict(declaration)


def encode_trial(declarations: Sequence[Declared], read: Files) -> dict[str, Any]:
    """Encode declarations to try and the facts of the files. Lists of labels that they share are written once."""
    lists = list(dict.fromkeys(declaration.labels for declaration in declarations))
    rows = [encode_declared(declaration) | {"labels": lists.index(declaration.labels)} for declaration in declarations]
    return {"ways": rows, "labels": lists, "files": encode_files(read)}


def encode_files(read: Files) -> dict[str, Any]:
    """What the files of an ONNX model say."""
    return {"beside": asdict(read.beside), "summary": asdict(read.summary)}


def refusals_of(reply: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The errors in a reply, each with `code`, `text`, `worded`, `field` and `facts`; [] where it has none."""
    rows = reply.get("refusals", [])
    if not isinstance(rows, list) or len(rows) > MAX_REFUSALS:
        raise BadReply("refusals")
    return [_refusal(row) for row in rows]


def _refusal(row: Any) -> dict[str, Any]:
    if not isinstance(row, dict) or not isinstance(row.get("text"), str) or not is_sound(row):
        raise BadReply("a refusal")
    worded, field, facts = row.get("worded"), row.get("field"), row.get("facts")
    return {
        "code": str(row.get("code", "")),
        "text": row["text"][:MAX_TEXT_LENGTH],
        "worded": worded if isinstance(worded, dict) else None,
        "field": field if isinstance(field, str) else None,
        "facts": facts if isinstance(facts, dict) else {},
    }


def decode_found(reply: Mapping[str, Any], folder: Path) -> ModelContents:
    """Decode the contents of `folder` from a reply.

    Raises:
        BadReply: it has a value that no database keeps, a task that is not known, or a file outside the folder.
    """
    row = _table(reply.get("found"))
    parts = {name: _table(row.get(name)) for name in ("metrics", "params", "facts", "files")}
    classes = row.get("classes")
    texts = [row.get(name) for name in ("task", "architecture", "preset")]
    if not isinstance(classes, list) or not all(isinstance(entry, dict) for entry in classes):
        raise BadReply("classes")
    if not all(isinstance(word, str) for word in texts) or texts[0] not in {*TASKS, TENSOR, WEIGHTS}:
        raise BadReply("task")
    if not is_sound([*texts, classes, parts["metrics"], parts["params"], parts["facts"]]):
        raise BadReply("a value that cannot be kept")
    if any(finite(value) is None for value in parts["metrics"].values()):
        raise BadReply("metrics")
    listed = dict(_files(parts["files"], folder))
    if not listed.keys() & {"model.onnx", "model.safetensors"}:
        raise BadReply("no model")
    return ModelContents(
        task=str(texts[0]), architecture=str(texts[1])[:100], preset=str(texts[2])[:50], classes=classes,
        metrics=parts["metrics"], params=parts["params"], facts=parts["facts"], files=listed,
    )  # fmt: skip


def _files(listed: Mapping[str, Any], folder: Path) -> Iterator[tuple[str, Path]]:
    for name, location in listed.items():
        plain = "/" not in name and name not in ("", ".", "..") and is_sound(name) and len(name.encode()) <= 255
        if not plain or not isinstance(location, str) or "\0" in location:
            raise BadReply("the name of a file")
        path = PurePosixPath(location)
        if path.is_absolute() or ".." in path.parts:
            raise BadReply("a file outside of the folder")
        yield name, folder / path


def decode_trial(reply: Mapping[str, Any]) -> tuple[list[Declared], Files]:
    """Decode declarations to try and the facts of the files.

    Raises:
        BadReply: see `decode_found`.
    """
    table = _table(reply.get("trial"))
    rows = table.get("ways")
    if not isinstance(rows, list) or not 0 < len(rows) <= MAX_VARIANTS:
        raise BadReply("ways")
    lists = table.get("labels")
    if not isinstance(lists, list) or not all(isinstance(labels, list) for labels in lists) or not is_sound(lists):
        raise BadReply("labels")
    names = [tuple(map(str, labels)) for labels in lists]
    return [_decode_declared(_table(row), names) for row in rows], decode_files(table.get("files"))


def _decode_declared(row: Mapping[str, Any], lists: Sequence[tuple[str, ...]]) -> Declared:
    index = row.get("labels")
    if not is_sound(row) or type(index) is not int or not 0 <= index < len(lists):
        raise BadReply("a way")
    try:
        declaration = Declared(**{**row, "labels": lists[index]})
        declaration.check()
    except (TypeError, DomainError) as error:
        raise BadReply("a way") from error
    return declaration


def decode_files(row: Any) -> Files:
    """Decode the facts of the files of an ONNX model, as `encode_files` wrote them.

    Raises:
        BadReply: it did not.
    """
    table = _table(row)
    beside, summary = _table(table.get("beside")), _table(table.get("summary"))
    try:
        lists: dict[str, Any] = {name: tuple(beside.pop(name)) for name in ("labels", "mean", "std")}
        ends: dict[str, Any] = {
            name: [_tensor(tensor) for tensor in summary.pop(name)] for name in ("inputs", "outputs")
        }
        return Files(FileFacts(**beside, **lists), Summary(**summary, **ends))
    except (KeyError, TypeError) as error:
        raise BadReply("files") from error


def _tensor(row: Any) -> Tensor:
    table = _table(row)
    shape: Sequence[Any] = table["shape"]
    if not isinstance(shape, list) or not all(isinstance(size, int) for size in shape):
        raise BadReply("a shape")
    return Tensor(str(table["name"]), int(table["element_type"]), list(shape))


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadReply("no table")
    return dict(value)
