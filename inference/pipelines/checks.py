"""Checks of a specification against the step kinds: ports, types, parameters, and what its owner may do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.errors import DomainError, Invalid, Refusals
from inference.pipelines import inlining, values
from inference.pipelines.graph import Link, Spec, Step
from inference.pipelines.kinds import KINDS, TYPES, Port, StepKind

NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong: at a step, in one of its fields ("" is the whole), and why.

    Attributes:
        level: "error" keeps it from running; "warning" does not, see `doubts`.
    """

    step: str
    field: str
    message: str
    level: Literal["error", "warning"] = "error"


def problems(
    spec: Spec,
    user: User,
    parameters: Mapping[str, Any] | None = None,
    *,
    within: int | None = None,
    authors: frozenset[int] = frozenset(),
) -> list[Problem]:
    """Return everything that is wrong, in the order of the steps.

    Args:
        user: as whom it would run.
        parameters: values for this run; None takes the defaults, and what has none is left to the run.
        within: number of the pipeline, where it has one.
        authors: see `inlining.inline`.
    """
    values_by_name = {name: parameter.default for name, parameter in spec.parameters.items()} | dict(parameters or {})
    problems: list[Problem] = []
    if not spec.steps:
        problems.append(Problem("", "", _("No steps yet. Add one from the palette.")))
    unset = (
        frozenset(name for name, value in values_by_name.items() if value in (None, "")) if parameters is None else NONE
    )
    for key in spec.order():
        problems += _of_step(spec, spec.steps[key], user, values_by_name, unset)
    if not problems and inlining.has_inside(spec):
        problems += _inside(spec, user, values_by_name, within, authors)
    return problems


def _inside(
    spec: Spec, user: User, values_by_name: Mapping[str, Any], within: int | None, authors: frozenset[int]
) -> Iterator[Problem]:
    """Yield what is wrong once all inner pipelines are inlined, reported for the steps that users see."""
    try:
        inlined = inlining.inline(spec, user, values_by_name, within=within, authors=authors)
    except DomainError as exc:
        for item in exc.every:
            yield Problem(item.blamed or "", "", item.message)
        return
    values_by_name = {name: item.default for name, item in inlined.parameters.items()} | dict(values_by_name)
    for key in inlined.order():
        outermost, inside, _rest = key.partition("/")
        for problem in _of_step(inlined, inlined.steps[key], user, values_by_name):
            message = f"{key}: {problem.message}" if inside else problem.message
            yield Problem(outermost, "" if inside else problem.field, message)


def check(
    spec: Spec,
    user: User,
    parameters: Mapping[str, Any] | None = None,
    *,
    within: int | None = None,
    authors: frozenset[int] = frozenset(),
) -> None:
    """Refuse a pipeline that could not run.

    Raises:
        Invalid: one for each problem; `field` is the step.
    """
    refusals = Refusals()
    for problem in problems(spec, user, parameters, within=within, authors=authors):
        with refusals:
            message = f"{problem.step}: {problem.message}" if problem.step else problem.message
            raise Invalid(message, field=problem.step or "spec")
    refusals.end()


def _of_step(
    spec: Spec, step: Step, user: User, values_by_name: Mapping[str, Any], unset: frozenset[str] = NONE
) -> Iterator[Problem]:
    kind = KINDS.find(step.kind)
    if kind is None:
        yield Problem(step.key, "kind", _("Unknown step kind “%(kind)s”.") % {"kind": step.kind})
        return
    if not user.can(kind.needs):
        yield Problem(step.key, "", _("You do not have permission for: %(kind)s.") % {"kind": kind.label})
    yield from _inputs(spec, step, kind)
    yield from _conditions(spec, step)
    yield from _params(spec, step, kind, user, values.scope(values_by_name, step.key), unset)


def _inputs(spec: Spec, step: Step, kind: StepKind) -> Iterator[Problem]:
    for name, links in step.inputs.items():
        port = kind.input(name)
        if port is None:
            names = ", ".join(item.name for item in kind.inputs) or _("none")
            message = _("%(kind)s has no input “%(name)s”. Available inputs: %(known)s.")
            yield Problem(step.key, name, message % {"kind": kind.label, "name": name, "known": names})
            continue
        if len(links) > 1 and not port.many:
            yield Problem(step.key, name, _("%(port)s accepts only one connection.") % {"port": port.label})
        for link in links:
            if problem := _misfit(spec, link, port, paired=link == step.each):
                yield Problem(step.key, name, problem)
    for port in kind.inputs:
        if not port.optional and port.name not in step.inputs:
            facts = {"port": port.label, "type": TYPES[port.type]}
            yield Problem(step.key, port.name, _("%(port)s is not connected: it requires %(type)s.") % facts)


def _misfit(spec: Spec, link: Link, port: Port, *, paired: bool) -> str:
    """Return why an output does not fit an input; "" if it does.

    Args:
        paired: the step runs for each item of this very output, so each time it gets the one of its item.
    """
    output = output_of(spec, link)
    if output is None:
        return _("%(link)s does not exist: its step has no such output.") % {"link": link}
    repeated = spec.steps[link.step].each is not None
    if repeated and not port.many and not paired:
        message = _("%(link)s exists once per item. Run this step for each of %(link)s, or use another input.")
        return message % {"link": link}
    if output.type == port.type or (port.type == "any" and output.type != "signal"):
        return ""
    facts = {"link": link, "given": TYPES[output.type], "type": TYPES[port.type]}
    return _("%(link)s is %(given)s, but this input requires %(type)s.") % facts


def output_of(spec: Spec, link: Link) -> Port | None:
    """The port behind a link."""
    kind = KINDS.find(spec.steps[link.step].kind)
    return kind.output(link.port) if kind else None


def _conditions(spec: Spec, step: Step) -> Iterator[Problem]:
    if step.when is not None:
        output = output_of(spec, step.when)
        if output is None or output.type != "signal" or spec.steps[step.when.step].each is not None:
            message = _("%(link)s is not a decision. Use an output of a gate, a condition or an approval.")
            yield Problem(step.key, "when", message % {"link": step.when})
    if step.each is not None:
        output = output_of(spec, step.each)
        repeated = spec.steps[step.each.step].each is not None
        if output is None or (output.type != "list" and not repeated):
            message = _(
                "%(link)s is not a list. Use the items of a list, or outputs of a step that runs for each item."
            )
            yield Problem(step.key, "each", message % {"link": step.each})
        kind = KINDS.find(step.kind)
        if kind and any(port.type == "signal" for port in kind.outputs):
            yield Problem(step.key, "each", _("A gate runs once, not per item."))


def _params(
    spec: Spec, step: Step, kind: StepKind, user: User, values_by_name: Mapping[str, Any], unset: frozenset[str]
) -> Iterator[Problem]:
    try:
        names = values.names(step.params)
    except DomainError as exc:
        yield Problem(step.key, "", exc.sentences)
        return
    unknown = sorted(names - set(values_by_name))
    if unknown:
        message = _("Unknown parameter %(names)s. Add it to the pipeline, or write $${ for the characters ${.")
        yield Problem(step.key, "", message % {"names": ", ".join(unknown)})
        return
    if values.uses_item(step.params) and step.each is None:
        yield Problem(step.key, "each", _("${item} is available only in a step that runs for each item of a list."))
        return
    later = {name for name, value in step.params.items() if values.uses_item(value) or values.names(value) & unset}
    try:
        now = values.substitute(
            {name: value for name, value in step.params.items() if name not in later}, values_by_name
        )
        complete = now | {name: _sample_value(kind, name) for name in later}
        checked = kind.checked({name: value for name, value in complete.items() if value is not None})
    except DomainError as exc:
        for error in exc.every:
            if error.blamed not in later:
                yield Problem(step.key, error.blamed or "", error.message)
        return
    ready = {name: value for name, value in checked.items() if name not in later}
    yield from _refused(step, lambda: kind.check(ready, user))
    yield from _refused(step, lambda: kind.check_links(ready, *_linked(spec, step)))


def _refused(step: Step, check: Callable[[], None]) -> Iterator[Problem]:
    try:
        check()
    except DomainError as exc:
        for error in exc.every:
            yield Problem(step.key, error.blamed or "", error.message)


def _linked(spec: Spec, step: Step) -> tuple[dict[str, list[str]], list[str]]:
    """Return the steps that feed its inputs, and all steps of the same pipeline, without the path of that pipeline."""
    prefix = step.key.rpartition("/")[0]
    siblings = [key.rpartition("/")[2] for key in spec.steps if key.rpartition("/")[0] == prefix]
    return {port: [link.step.rpartition("/")[2] for link in links] for port, links in step.inputs.items()}, siblings


def _sample_value(kind: StepKind, name: str) -> Any:
    """Return a valid value for a parameter that is known only with its item."""
    param = next((item for item in kind.params if item.name == name), None)
    if param is None or param.form in ("text", "long", "json"):
        return "x"
    if param.form in ("secret", "secrets"):
        return "X"
    if param.form == "choice":
        return param.choices[0][0]
    return True if param.form == "yesno" else (param.low or param.high or 1)
