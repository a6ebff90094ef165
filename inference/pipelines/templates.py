"""Pipelines to begin with, from the way that most people go to a retraining that runs by itself."""

from __future__ import annotations

import itertools
import re
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from aiplatform.lib.registry import Registry


@dataclass(frozen=True, slots=True)
class Template:
    """A pipeline to start from: its name, a one-sentence description, and the specification."""

    name: str
    label: Any
    description: Any
    spec: Mapping[str, Any]


TEMPLATES: Registry[Template] = Registry("pipeline template")

TEMPLATES.register(
    Template(
        "train_and_judge",
        gettext_lazy("Train, evaluate, decide"),
        gettext_lazy(
            "Trains on the newest version of a dataset, evaluates the model, and decides whether it is good "
            "enough."
        ),
        {
            "format": 1,
            "parameters": {
                "dataset": {"default": "", "note": "Name of the dataset"},
                "minutes": {"default": 2, "note": "Training time budget (min)"},
            },
            "steps": {
                "data": {"kind": "dataset", "with": {"dataset": "${dataset}"}},
                "train": {"kind": "train", "with": {"minutes": "${minutes}"}, "from": {"data": "data.data"}},
                "evaluate": {"kind": "evaluate", "from": {"data": "data.data", "model": "train.model"}},
                "gate": {"kind": "gate", "with": {"rule": "AP50 >= 0.5"}, "from": {"figures": "evaluate.figures"}},
                "good": {"kind": "notify", "with": {"text": "Target value"}, "from": {"for": "train.model"},
                         "when": "gate.passed"},
                "bad": {"kind": "notify", "with": {"text": "Not good enough"}, "from": {"for": "train.model"},
                        "when": "gate.refused"},
            },
        },
    ),
)  # fmt: skip


TEMPLATES.register(
    Template(
        "from_images_to_use",
        gettext_lazy("From images to a deployed model"),
        gettext_lazy(
            "Annotation, training and evaluation; after approval the model is converted to INT8 and deployed."
        ),
        {
            "format": 1,
            "parameters": {
                "minutes": {"default": 2, "note": "Training time budget (min)"},
                "model": {"default": "cells", "note": "Name of the model that gets a new version"},
                "project": {"default": "", "note": "Name of the annotation project"},
                "service": {"default": "cells", "note": "Name of the endpoint; created if missing"},
            },
            "steps": {
                "annotate": {"kind": "people", "with": {"project": "${project}", "until": "all"}},
                "train": {"kind": "train", "with": {"model": "${model}", "minutes": "${minutes}"},
                          "from": {"data": "annotate.data"}},
                "evaluate": {"kind": "evaluate", "from": {"data": "annotate.data", "model": "train.model"}},
                "gate": {"kind": "gate", "with": {"rule": "AP50 >= 0.5"}, "from": {"figures": "evaluate.figures"}},
                "approve": {"kind": "approve", "with": {"question": "Deploy this model?"},
                            "from": {"for": "train.model"}, "when": "gate.passed"},
                "convert": {"kind": "convert", "with": {"targets": "int8"},
                            "from": {"data": "annotate.data", "model": "train.model"}, "when": "approve.passed"},
                "serve": {"kind": "serve", "with": {"service": "${service}"}, "from": {"model": "convert.model"}},
                "tell": {"kind": "notify", "with": {"text": "A new model is in use"}, "from": {"for": "serve.service"}},
                "sorry": {"kind": "notify", "with": {"text": "The model is not good enough"},
                          "from": {"for": "train.model"}, "when": "gate.refused"},
            },
        },
    ),
    Template(
        "every_sunday",
        gettext_lazy("Retrain every Sunday"),
        gettext_lazy(
            "Trains after 200 newly accepted images and rolls out significantly better models step by step."
        ),
        {
            "format": 1,
            "parameters": {
                "at_least": {"default": 200, "note": "New accepted images since the last training"},
                "figure": {"default": "AP50", "note": "Metric that must improve"},
                "minutes": {"default": 60, "note": "Training time budget (min)"},
                "model": {"default": "cells", "note": "Name of the model; its alias champion is the best version"},
                "project": {"default": "", "note": "Name of the annotation project"},
                "service": {"default": "cells", "note": "Name of the endpoint; created if missing"},
            },
            "steps": {
                "people": {"kind": "people", "with": {
                    "project": "${project}", "at_least": "${at_least}", "hours": 0, "at_expiry": "too_few"}},
                "train": {"kind": "train", "with": {"model": "${model}", "minutes": "${minutes}"},
                          "from": {"data": "people.data"}, "when": "people.enough"},
                "evaluate": {"kind": "evaluate", "from": {"data": "people.data", "model": "train.model"}},
                "compare": {"kind": "compare", "with": {"champion": "${model}@champion", "first": True},
                            "from": {"figures": "evaluate.figures"}},
                "gate": {"kind": "gate", "with": {"rule": "better.${figure} == 1"},
                         "from": {"figures": "compare.figures"}},
                "ship": {"kind": "serve", "with": {"service": "${service}", "mode": "canary", "percent": 10,
                                                   "minutes": 60, "most_failed": 5},
                         "from": {"model": "train.model"}, "when": "gate.passed"},
                "crown": {"kind": "register", "with": {"alias": "champion"},
                          "from": {"figures": "compare.figures", "model": "train.model"}, "after": ["ship"]},
                "shipped": {"kind": "notify", "with": {"text": "A better model is in use"},
                            "from": {"for": "crown.model"}},
                "same": {"kind": "notify", "with": {"text": "The new model is not better by a significant margin"},
                         "from": {"for": "train.model"}, "when": "gate.refused"},
                "back": {"kind": "notify", "with": {"text": "The new model was rolled back"}, "after": ["ship"],
                         "rule": "any_failed"},
            },
        },
    ),
)  # fmt: skip


EMPTY_LABEL = gettext_lazy("New pipeline")


def choices() -> list[tuple[str, str]]:
    """Return the values of a form field; "" is the empty pipeline."""
    return [("", _("Empty pipeline")), *((template.name, str(template.label)) for template in TEMPLATES)]


def name_for(name: str, taken: Container[str]) -> str:
    """Return a free name of a pipeline that starts from a template, or from nothing ("")."""
    template = TEMPLATES.find(name)
    title = str(template.label if template else EMPTY_LABEL)
    label = re.sub(r"[^\w.+()-]+", " ", title).strip()  # names take no commas
    numbered = (f"{label} {number}" for number in itertools.count(2))
    return next(title for title in itertools.chain([label], numbered) if title not in taken)


def description_of(name: str) -> str:
    """Return the one-sentence description of a template; "" for the empty pipeline."""
    template = TEMPLATES.find(name)
    return str(template.description) if template else ""


def spec_of(name: str) -> Mapping[str, Any] | None:
    """Return the specification of a template; None for the empty pipeline."""
    template = TEMPLATES.find(name)
    return template.spec if template else None
