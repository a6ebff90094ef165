"""What may be wrong with a pipeline: it is saved and runs all the same.

A rule of a gate names figures, and a name that nobody gives is found by the gate alone, after hours of training. Where
it can be known which figures the steps before it give, a name that is none of them is told early.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from functools import cache

from django.utils.translation import gettext as _

from aiplatform.lib.errors import Invalid
from inference.kit.task_kinds import TASKS
from inference.pipelines import expressions
from inference.pipelines.checks import Problem
from inference.pipelines.graph import Spec, Step

_MAX_SUGGESTIONS = 3
_OF_BOXES = ("map", "ap50", "ap75", "ap_small", "ap_medium", "ap_large", "ar1", "ar10", "ar100")
#: Metrics of evaluations that no tile of their page shows.
_FURTHER = frozenset({
    "threshold", "images_seen", "recall_5", "classification_loss", "class_accuracy", "oks_ap", *_OF_BOXES,
    *(f"box_{name}" for name in _OF_BOXES),
})  # fmt: skip
_COMPARED = re.compile(r"(champion\.|better\.|worse\.|difference\.)(?P<name>.+?)(\.low|\.high)?")


def list_warnings(spec: Spec) -> Iterator[Problem]:
    """Yield names of metrics in rules of gates that none of their steps provides, where that can be known."""
    for key in spec.order():
        step = spec.steps[key]
        rule = step.params.get("rule")
        if step.kind != "gate" or not isinstance(rule, str) or "${" in rule:
            continue
        try:
            names = expressions.parse(rule).names()
        except Invalid:
            continue  # that is an error, and is reported as one
        metrics = _figures_before(spec, step)
        for name in sorted(names) if metrics else ():
            if not _is_provided(name, metrics):
                yield Problem(key, "rule", _words(name, metrics), "warning")


def _figures_before(spec: Spec, gate: Step) -> dict[str, frozenset[str]]:
    """Return the metric names of each step that feeds a gate, by step; empty where one of them is unknown."""
    metrics: dict[str, frozenset[str]] = {}
    for link in gate.inputs.get("figures", ()):
        source = spec.steps[link.step]
        if source.kind not in ("evaluate", "compare") or _uses_custom_code(source):
            return {}  # own code, a training or a command may give any
        names = evaluated()
        metrics[link.step] = names | {"p", "images", "champion.exists"} if source.kind == "compare" else names
    return metrics


def _uses_custom_code(step: Step) -> bool:
    """Whether a custom script evaluates, or may: its metrics have any names."""
    return any(step.params.get(name) for name in ("home_path", "start_file", "request"))


def _is_provided(name: str, metrics: dict[str, frozenset[str]]) -> bool:
    """Whether one of the steps provides a metric; case is ignored, as in the gate."""
    low = name.lower()
    step, dot, own_name = low.partition(".")
    if dot and step in metrics:
        return _is_among(own_name, metrics[step])
    return any(_is_among(low, names) for names in metrics.values())


def _is_among(name: str, names: frozenset[str]) -> bool:
    if name in names:
        return True
    compared = _COMPARED.fullmatch(name) if "p" in names else None
    return compared is not None and compared["name"] in names


def _words(name: str, metrics: dict[str, frozenset[str]]) -> str:
    names = sorted(set().union(*metrics.values()))
    word = name.rpartition(".")[2].lower()
    similar = difflib.get_close_matches(word, names, n=_MAX_SUGGESTIONS, cutoff=0.5)
    facts = {"name": name, "steps": ", ".join(metrics), "near": ", ".join(similar)}
    if similar:
        return _("%(steps)s has no metric %(name)s, so the gate would fail. Similar metrics: %(near)s.") % facts
    message = _("%(steps)s has no metric %(name)s, so the gate would fail. See an evaluation for its metrics.")
    return message % facts


@cache
def evaluated() -> frozenset[str]:
    """Return the names of all metrics that an evaluation may have, of any task."""
    names = set(_FURTHER)
    for task in TASKS.values():
        names |= {figure.key for figure in task.pages.figures}
        names |= (
            {measure.key for measure in task.measures}
            | {measure.key for measure in task.means}
            | {measure.key for measure in task.ranked}
        )
    return frozenset(names)
