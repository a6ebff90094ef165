"""TensorRT engines of conversions: where they are on offer, what their rows say, how one becomes a file of a version.

Nothing here opens an engine: it is data that jobs on such a card use.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _

from aiplatform.lib import files
from aiplatform.lib.errors import Invalid, Refusals
from aiplatform.lib.numbers import finite
from aiplatform.lib.parsers import is_sound
from inference.conversion.converter import variant_catalog
from inference.kit.model_io.tensorrt import NAME
from inference.registry import inspections
from inference.registry.file_copies import copy_rest
from inference.registry.formats.folder import ModelContents
from workers.core.device_kinds import GPU
from workers.resources.nodes import device_rules

MAX_LAYERS, LONGEST = 300, 120
FACTS = ("file", "card", "capability", "tensorrt")
COLUMNS = ("name", "kind", "precision")


def available() -> list[str]:
    """Return the names of the variants that can be requested: engines only if a node has an NVIDIA GPU."""
    cards = any(rules.kind is GPU for rules in device_rules.on_offer((GPU.name,)))
    return [name for name, target in variant_catalog.TARGETS.items() if cards or not target.needs_card]


def check(targets: Iterable[str], *, cards: int, kind: str) -> None:
    """Check engines: a node must be able to build them, and a GPU must be requested.

    Raises:
        Invalid.
    """
    names = [name for name in targets if name in variant_catalog.TARGETS and variant_catalog.TARGETS[name].needs_card]
    if not names:
        return
    refusals = Refusals()
    with refusals:
        if not set(names) <= set(available()):
            message = _("TensorRT builds on an NVIDIA GPU, and no node has one. Choose another variant.")
            raise Invalid(message, field="targets")
        if not cards or kind != GPU.name:
            raise Invalid(_("TensorRT builds for the GPU it runs on. Request one GPU."), field="gpus_per_node")
    refusals.end()


def read(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an engine in the row of a program, only valid ones; {} if it has none."""
    engine_fields = row.get("engine")
    if not isinstance(engine_fields, dict) or not NAME.fullmatch(_word(engine_fields.get("file"))):
        return {}
    listed = row.get("layers")
    rows = [layer for layer in listed if isinstance(layer, dict)] if isinstance(listed, list) else []
    engine = {name: _word(engine_fields.get(name)) for name in FACTS} | {
        "layers": int(finite(engine_fields.get("layers")) or 0)
    }
    return {
        "engine": engine,
        "layers": [{name: _word(layer.get(name)) for name in COLUMNS} for layer in rows[:MAX_LAYERS]],
    }


def copy_engine(row: Mapping[str, Any], outputs: Path, into: Path, *, max_bytes: int) -> None:
    """Copy the engine of a variant, if it has one, to the other files of its version.

    Raises:
        OSError, OutsideRoot: it was deleted.
    """
    if engine := row.get("engine"):
        inside = files.open_beneath(outputs, f"targets/{row['target']}/{engine['file']}")
        with os.fdopen(inside, "rb") as source:
            copy_rest(source, into / engine["file"], max_bytes=max_bytes)


def survey_with_engine(folder: Path) -> ModelContents:
    """The files of a version with the engine that the platform's own conversion built; uploads never keep one.

    Raises:
        ModelRefused: see `survey`.
    """
    content = inspections.of_outputs(folder)
    content.files |= {path.name: path for path in sorted(folder.iterdir()) if NAME.fullmatch(path.name)}
    return content


def _word(value: Any) -> str:
    return value[:LONGEST] if isinstance(value, str) and is_sound(value) else ""
