"""Pipelines to begin with, from the way that most people go to a retraining that runs by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from aiplatform.lib.registry import Registry


@dataclass(frozen=True, slots=True)
class Template:
    """A pipeline to begin with: its name, a sentence of what it does, and the specification."""

    name: str
    label: Any
    about: Any
    spec: Mapping[str, Any]


TEMPLATES: Registry[Template] = Registry("pipeline template")

TEMPLATES.register(
    Template(
        "train_and_judge",
        gettext_lazy("Train, evaluate, decide"),
        gettext_lazy("Trains on the newest version of a dataset, evaluates the model, and says if it is good enough."),
        {
            "format": 1,
            "parameters": {
                "dataset": {"default": "", "note": "Its name"},
                "minutes": {"default": 2, "note": "Time budget of the training"},
            },
            "steps": {
                "data": {"kind": "dataset", "with": {"dataset": "${dataset}"}},
                "train": {"kind": "train", "with": {"minutes": "${minutes}"}, "from": {"data": "data.data"}},
                "evaluate": {"kind": "evaluate", "from": {"data": "data.data", "model": "train.model"}},
                "gate": {"kind": "gate", "with": {"rule": "AP50 >= 0.5"}, "from": {"figures": "evaluate.figures"}},
                "good": {"kind": "notify", "with": {"text": "Good enough"}, "from": {"for": "train.model"},
                         "when": "gate.passed"},
                "bad": {"kind": "notify", "with": {"text": "Not good enough"}, "from": {"for": "train.model"},
                        "when": "gate.refused"},
            },
        },
    ),
)  # fmt: skip


def choices() -> list[tuple[str, str]]:
    """For a form: an empty canvas first."""
    return [("", _("An empty canvas")), *((one.name, f"{one.label}: {one.about}") for one in TEMPLATES)]


def spec_of(name: str) -> Mapping[str, Any] | None:
    """The specification of a template; None for an empty canvas."""
    found = TEMPLATES.find(name)
    return found.spec if found else None
