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

_NEAR = 3
_OF_BOXES = ("map", "ap50", "ap75", "ap_small", "ap_medium", "ap_large", "ar1", "ar10", "ar100")
#: Figures of evaluations that stand in no tile of their page.
_FURTHER = frozenset({
    "threshold", "images_seen", "recall_5", "classification_loss", "class_accuracy", "oks_ap", *_OF_BOXES,
    *(f"box_{name}" for name in _OF_BOXES),
})  # fmt: skip
_COMPARED = re.compile(r"(champion\.|better\.|worse\.|difference\.)(?P<name>.+?)(\.low|\.high)?")


def doubts(spec: Spec) -> Iterator[Problem]:
    """Names of figures in rules of gates that none of their steps gives, where that can be known."""
    for key in spec.order():
        step = spec.steps[key]
        rule = step.params.get("rule")
        if step.kind != "gate" or not isinstance(rule, str) or "${" in rule:
            continue
        try:
            names = expressions.parse(rule).names()
        except Invalid:
            continue  # that is an error, and is told as one
        given = _figures_before(spec, step)
        for name in sorted(names) if given else ():
            if not _is_given(name, given):
                yield Problem(key, "rule", _words(name, given), "warning")


def _figures_before(spec: Spec, gate: Step) -> dict[str, frozenset[str]]:
    """Kind and figures of each step that a gate has figures of, by its name; empty where one of them is not known."""
    found: dict[str, frozenset[str]] = {}
    for link in gate.inputs.get("figures", ()):
        source = spec.steps[link.step]
        if source.kind not in ("evaluate", "compare") or _judges_by_own_code(source):
            return {}  # own code, a training or a command may give any
        known = evaluated()
        found[link.step] = known | {"p", "images", "champion.exists"} if source.kind == "compare" else known
    return found


def _judges_by_own_code(step: Step) -> bool:
    """Whether somebody's script evaluates in place of ours, or may: its figures have any names."""
    return any(step.params.get(name) for name in ("home_path", "start_file", "request"))


def _is_given(name: str, given: dict[str, frozenset[str]]) -> bool:
    """Whether one of the steps gives a figure; capital letters do not count, as for the gate."""
    low = name.lower()
    step, dot, rest = low.partition(".")
    if dot and step in given:
        return _is_of(rest, given[step])
    return any(_is_of(low, known) for known in given.values())


def _is_of(name: str, known: frozenset[str]) -> bool:
    if name in known:
        return True
    compared = _COMPARED.fullmatch(name) if "p" in known else None
    return compared is not None and compared["name"] in known


def _words(name: str, given: dict[str, frozenset[str]]) -> str:
    known = sorted(set().union(*given.values()))
    word = name.rpartition(".")[2].lower()
    near = difflib.get_close_matches(word, known, n=_NEAR, cutoff=0.5)
    facts = {"name": name, "steps": ", ".join(given), "near": ", ".join(near)}
    if near:
        return _("%(steps)s gives no figure %(name)s, so the gate would fail. Near it: %(near)s.") % facts
    said = _("%(steps)s gives no figure %(name)s, so the gate would fail. Look at an evaluation for its figures.")
    return said % facts


@cache
def evaluated() -> frozenset[str]:
    """Names of all figures that an evaluation may have, whatever its task."""
    names = set(_FURTHER)
    for task in TASKS.values():
        names |= {figure.key for figure in task.pages.figures}
        names |= {one.key for one in task.measures} | {one.key for one in task.means} | {one.key for one in task.ranked}
    return frozenset(names)
