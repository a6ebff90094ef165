"""Beginning a step: its parameters filled in, its inputs gathered, its owner's rights looked at again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from aiplatform.lib import titles, wording
from aiplatform.lib.errors import NotAllowed
from inference.pipelines import graph, values
from inference.pipelines.advance import STEP_ITEM, State
from inference.pipelines.kinds import KINDS, Begun, Call, StepFailed, StepKind
from inference.pipelines.models import PipelineRun, StepRun

Newest = Mapping[tuple[str, int], StepRun]


def kind_of(run: PipelineRun, step: StepRun) -> str:
    """Return the name of a row's kind; "" where its step does not exist any more."""
    entry = run.spec["steps"].get(step.step, {})
    return str(entry.get("kind", ""))


def is_repeated(run: PipelineRun, step: StepRun) -> bool:
    """Whether its step runs once for each item."""
    return bool(run.spec["steps"].get(step.step, {}).get("each"))


def is_repeated_whole(run: PipelineRun, step: StepRun) -> bool:
    """Whether a row only gathers its items."""
    return step.item == STEP_ITEM and is_repeated(run, step)


def start_step(run: PipelineRun, spec: graph.Spec, step: StepRun, newest: Newest) -> Begun:
    """Start a step as the owner of the run.

    Raises:
        DomainError: it is refused, or its owner may not do it any more.
    """
    kind = KINDS.find(spec.steps[step.step].kind)
    if kind is None:
        raise StepFailed(wording.message("pipeline.kind_gone", kind=spec.steps[step.step].kind))
    if not run.owner.is_active or not run.owner.can(kind.needs):
        raise NotAllowed(wording.message("pipeline.owner_not_allowed"))
    return kind.start(call_of(run, spec, step, kind, newest))


def call_of(run: PipelineRun, spec: graph.Spec, step: StepRun, kind: StepKind, newest: Newest) -> Call:
    """Return the call that starts a step.

    Raises:
        DomainError: a value is missing or out of range.
    """
    of = spec.steps[step.step]
    item, has_item = None, of.each is not None and step.item != STEP_ITEM
    if of.each is not None and has_item:
        item = newest[of.each.step, STEP_ITEM].outputs[of.each.port][step.item]
    params_by_name = {name: parameter.default for name, parameter in spec.parameters.items()} | run.parameters
    params_by_name = values.scope(params_by_name, step.step)
    params = kind.checked(values.substitute(dict(of.params), params_by_name, item=item, has_item=has_item))
    inputs = {
        port: [item] if has_item and links == (of.each,) and isinstance(item, Mapping) else _references(links, newest)
        for port, links in of.inputs.items()
    }
    missing = [port.label for port in kind.inputs if not port.optional and not inputs.get(port.name)]
    if missing:
        raise StepFailed(_("No value for %(ports)s.") % {"ports": ", ".join(map(str, missing))})
    suffix = f"_{step.item}" if step.item != STEP_ITEM else ""
    name = titles.derive_name(f"{run.pipeline.name}_{run.number}_{step.step}{suffix}", room=90)
    return Call(run=run, row=step, user=run.owner, params=params, inputs=inputs, name=name, parameters=params_by_name)


def _references(links: Sequence[graph.Link], newest: Newest) -> list[Mapping[str, Any]]:
    """Return the references connected to a port. A list is the output of a step that ran for each item."""
    gathered: list[Mapping[str, Any]] = []
    for link in links:
        row = newest.get((link.step, STEP_ITEM))
        if row is None or row.state not in (State.OK, State.CACHED) or link.port not in row.outputs:
            continue
        value = row.outputs[link.port]
        gathered += [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else [value]
    return gathered
