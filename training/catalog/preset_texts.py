"""Texts of presets for translation. Presets know no gettext, so their texts are gathered and looked up here."""

from __future__ import annotations

from collections.abc import Iterator

from training.presets.catalog import PRESETS


def texts() -> Iterator[str]:
    """Every text of every preset that a page translates."""
    for preset in PRESETS.values():
        yield from (preset.title, preset.purpose, preset.size, preset.reference_time)
        yield from preset.architectures.values()
        for result in preset.expected:
            yield from (result.dataset, result.metric, result.conditions)
        for param in preset.parameters:
            yield from (param.help, param.unit)
