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
from inference.registry.file_copies import copied
from inference.registry.formats.folder import Found
from workers.core.device_kinds import GPU
from workers.resources.nodes import device_rules

MOST_LAYERS, LONGEST = 300, 120
FACTS = ("file", "card", "capability", "tensorrt")
COLUMNS = ("name", "kind", "precision")


def on_offer() -> list[str]:
    """Names of the variants that can be asked for: engines only where a machine has an NVIDIA card."""
    cards = any(rules.kind is GPU for rules in device_rules.on_offer((GPU.name,)))
    return [name for name, target in variant_catalog.TARGETS.items() if cards or not target.needs_card]


def check(targets: Iterable[str], *, cards: int, kind: str) -> None:
    """Refuse engines that no machine could build, or that nobody asked a card for.

    Raises:
        Invalid.
    """
    asked = [name for name in targets if name in variant_catalog.TARGETS and variant_catalog.TARGETS[name].needs_card]
    if not asked:
        return
    found = Refusals()
    with found:
        if not set(asked) <= set(on_offer()):
            said = _("TensorRT builds on an NVIDIA card, and no machine here has one. Choose another variant.")
            raise Invalid(said, field="targets")
        if not cards or kind != GPU.name:
            raise Invalid(_("TensorRT builds for the card that it runs on. Ask for one card."), field="gpus_per_node")
    found.end()


def read(given: Mapping[str, Any]) -> dict[str, Any]:
    """What a row that a program wrote says of an engine, cut down to what is sound; {} where it has none."""
    about = given.get("engine")
    if not isinstance(about, dict) or not NAME.fullmatch(_word(about.get("file"))):
        return {}
    listed = given.get("layers")
    rows = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    engine = {name: _word(about.get(name)) for name in FACTS} | {"layers": int(finite(about.get("layers")) or 0)}
    return {
        "engine": engine,
        "layers": [{name: _word(one.get(name)) for name in COLUMNS} for one in rows[:MOST_LAYERS]],
    }


def bring(row: Mapping[str, Any], outputs: Path, into: Path, *, most: int) -> None:
    """Copy the engine of a variant, where it has one, to the other files that become its version.

    Raises:
        OSError, OutsideRoot: it is gone.
    """
    if engine := row.get("engine"):
        inside = files.open_beneath(outputs, f"targets/{row['target']}/{engine['file']}")
        with os.fdopen(inside, "rb") as source:
            copied(source, into / engine["file"], most=most)


def surveyed(folder: Path) -> Found:
    """The files of a version with the engine that the platform's own conversion built; uploads never keep one.

    Raises:
        ModelRefused: see `survey`.
    """
    content = inspections.of_outputs(folder)
    content.files |= {path.name: path for path in sorted(folder.iterdir()) if NAME.fullmatch(path.name)}
    return content


def _word(value: Any) -> str:
    return value[:LONGEST] if isinstance(value, str) and is_sound(value) else ""
