"""Composed models on disk, made of tiny ones as the registry makes them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from inference.kit.model_io.engine import Loaded
from inference.kit.model_io.spec import ModelSpec
from inference.kit.models import composed, model_json
from inference.registry.composition.descriptions import Recipe, describe


def folder_of(into: Path, recipe: Recipe, *parts: Path) -> Path:
    """A folder as a composed version has it."""
    into.mkdir(parents=True)
    descriptions = [json.loads((part / "model.json").read_text()) for part in parts]
    for number, part in enumerate(parts, 1):
        shutil.copyfile(part / "model.onnx", into / f"part{number}.onnx")
    description = describe(recipe, descriptions, [part.name for part in parts])
    (into / "model.json").write_text(json.dumps(description))
    return into


def changed(folder: Path, **fields: object) -> Path:
    """The same model with other values in its model.json; `input` is merged into the existing one."""
    description = json.loads((folder / "model.json").read_text())
    changes = {**fields, "input": description["input"] | dict(fields.get("input", {}))}
    (folder / "model.json").write_text(json.dumps(description | changes))
    return folder


def loaded(folder: Path, *, threads: int = 1) -> tuple[ModelSpec, Loaded]:
    spec = model_json.load(folder)
    return spec, composed.load(folder, spec, threads=threads)
