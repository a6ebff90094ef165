"""What the inspector does with the files of a model. Runs in the sandbox; pure apart from the folder it is given."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.utils import translation

from aiplatform.lib import archives
from aiplatform.lib.disk import DiskFull
from aiplatform.lib.errors import DomainError
from inference.registry.formats.declared import NOTHING, Declared, Files, describe
from inference.registry.formats.folder import WEIGHTS, ModelContents, find_weights, home_of, survey
from inference.registry.formats.foreign_metadata import FileFacts
from inference.registry.formats.onnx import RefusedModel
from inference.registry.inspector import detection, limits, replies, runtime, trial_candidates

VERSION, SURVEY, TRIAL, DETECTION = "version", "survey", "trial", "detect"
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


def perform(request: Mapping[str, Any]) -> dict[str, Any]:
    """Inspect a folder.

    Args:
        request: `act`, one of VERSION, SURVEY, TRIAL, DETECTION; `folder`; `archive`, which is unpacked into the folder
            first, or "", with `max_bytes` and `max_files`; `declared`; `opens`: whether ONNX Runtime is to open the
            file; `language` of the texts.

    Returns:
        What `replies` decodes: `found`, with `files` after DETECTION, or `trial`, or else `refusals` with everything
        that is wrong.
    """
    with translation.override(request["language"]):
        try:
            return _perform(request)
        except DomainError as refusal:
            return {"refusals": [replies.refusal(error) for error in refusal.every]}
        except RefusedModel as refusal:
            return {"refusals": [replies.refused_model(refusal)]}


def _perform(request: Mapping[str, Any]) -> dict[str, Any]:
    folder = Path(request["folder"])
    if request["archive"]:
        limits = archives.Limits(max_bytes=request["max_bytes"], max_files=request["max_files"])
        try:
            archives.extract(Path(request["archive"]), folder, limits=limits)
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise
            raise DiskFull from None
    values = request["declared"]
    declared = Declared(**{**values, "labels": tuple(values["labels"])})
    if request["act"] == TRIAL:
        return _trial(folder, declared, opens=request["opens"])
    if request["act"] == DETECTION:
        return _detect(folder, opens=request["opens"])
    content = describe_folder(folder, declared) if request["act"] == VERSION else survey(folder)
    _open(content.files.get("model.onnx"), content, opens=request["opens"])
    return {"found": replies.encode_found(content, folder)}


def describe_folder(folder: Path, declared: Declared) -> ModelContents:
    """Return the contents of the folder; writes a model.json from the declaration if there is none.

    Raises:
        RefusedModel, Invalid: see `survey` and `describe`.
    """
    weights = find_weights(folder)
    files = _read_undescribed(folder, weights)
    file_facts = describe(folder, weights, declared) if weights else FileFacts()
    content = survey(folder)
    if files is not None:
        content.facts["detected"] = detection.detect(files, declared).as_json()
    if content.task == WEIGHTS and file_facts.labels:
        content.classes = [{"id": index, "name": label} for index, label in enumerate(file_facts.labels)]
    content.architecture = content.architecture or file_facts.architecture
    if content.task == WEIGHTS and file_facts.task:
        content.facts["declared_task"] = file_facts.task
    return content


def _trial(folder: Path, declared: Declared, *, opens: bool) -> dict[str, Any]:
    weights = trial_candidates.weights(folder)
    files = Files.read(folder, weights)
    ways = trial_candidates.list_declarations(folder, files, declared)
    if opens:
        limits.allow_runtime(weights)
        runtime.check_opens(weights)
    return {"trial": replies.encode_trial(ways, files)}


def _read_undescribed(folder: Path, weights: Path | None) -> Files | None:
    """Return the facts of an ONNX file without model.json; None for other models."""
    if weights is None or weights.suffix.lower() != ".onnx" or (home_of(folder) / "model.json").exists():
        return None
    return Files.read(folder, weights)


def _detect(folder: Path, *, opens: bool) -> dict[str, Any]:
    """Read the files without writing a description, so that the user can change it before the import."""
    files = _read_undescribed(folder, find_weights(folder))
    content = survey(folder) if files else describe_folder(folder, NOTHING)
    _open(content.files.get("model.onnx"), content, opens=opens)
    encoded = replies.encode_files(files) if files else None
    return {"found": replies.encode_found(content, folder), "files": encoded}


def _open(model: Path | None, content: ModelContents, *, opens: bool) -> None:
    if model is None or not opens:
        return
    limits.allow_runtime(model)
    if reason := runtime.check_opens(model):
        content.facts["not_on_cpu"] = reason
