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
    """Everything that is wrong, in the order of the steps.

    Args:
        user: as whom it would run.
        parameters: values for this run; None takes the defaults, and what has none is left to the run.
        within: number of the pipeline, where it has one.
        authors: see `inlining.inline`.
    """
    given = {name: one.default for name, one in spec.parameters.items()} | dict(parameters or {})
    found: list[Problem] = []
    if not spec.steps:
        found.append(Problem("", "", _("There are no steps yet. Add one from the palette.")))
    unset = frozenset(name for name, value in given.items() if value in (None, "")) if parameters is None else NONE
    for key in spec.order():
        found += _of_step(spec, spec.steps[key], user, given, unset)
    if not found and inlining.has_inside(spec):
        found += _inside(spec, user, given, within, authors)
    return found


def _inside(
    spec: Spec, user: User, given: Mapping[str, Any], within: int | None, authors: frozenset[int]
) -> Iterator[Problem]:
    """What is wrong once all pipelines inside are in their places, said of the steps that people see."""
    try:
        whole = inlining.inline(spec, user, given, within=within, authors=authors)
    except DomainError as exc:
        for one in exc.every:
            yield Problem(one.blamed or "", "", one.message)
        return
    given = {name: one.default for name, one in whole.parameters.items()} | dict(given)
    for key in whole.order():
        outermost, inside, _rest = key.partition("/")
        for found in _of_step(whole, whole.steps[key], user, given):
            said = f"{key}: {found.message}" if inside else found.message
            yield Problem(outermost, "" if inside else found.field, said)


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
    found = Refusals()
    for problem in problems(spec, user, parameters, within=within, authors=authors):
        with found:
            said = f"{problem.step}: {problem.message}" if problem.step else problem.message
            raise Invalid(said, field=problem.step or "spec")
    found.end()


def _of_step(
    spec: Spec, step: Step, user: User, given: Mapping[str, Any], unset: frozenset[str] = NONE
) -> Iterator[Problem]:
    kind = KINDS.find(step.kind)
    if kind is None:
        yield Problem(step.key, "kind", _("There is no step kind “%(kind)s”.") % {"kind": step.kind})
        return
    if not user.can(kind.needs):
        yield Problem(step.key, "", _("You are not allowed to do this: %(kind)s.") % {"kind": kind.label})
    yield from _inputs(spec, step, kind)
    yield from _conditions(spec, step)
    yield from _params(spec, step, kind, user, values.scope(given, step.key), unset)


def _inputs(spec: Spec, step: Step, kind: StepKind) -> Iterator[Problem]:
    for name, links in step.inputs.items():
        port = kind.input(name)
        if port is None:
            known = ", ".join(one.name for one in kind.inputs) or _("none")
            said = _("%(kind)s has no input “%(name)s”. Known: %(known)s.")
            yield Problem(step.key, name, said % {"kind": kind.label, "name": name, "known": known})
            continue
        if len(links) > 1 and not port.many:
            yield Problem(step.key, name, _("%(port)s takes one link only.") % {"port": port.label})
        for link in links:
            if why := _misfit(spec, link, port, paired=link == step.each):
                yield Problem(step.key, name, why)
    for port in kind.inputs:
        if not port.optional and port.name not in step.inputs:
            facts = {"port": port.label, "type": TYPES[port.type]}
            yield Problem(step.key, port.name, _("%(port)s is not connected: it needs %(type)s.") % facts)


def _misfit(spec: Spec, link: Link, port: Port, *, paired: bool) -> str:
    """Why an output does not fit an input; "" if it does.

    Args:
        paired: the step runs for each item of this very output, so each time it gets the one of its item.
    """
    given = output_of(spec, link)
    if given is None:
        return _("%(link)s is not there: its step has no such output.") % {"link": link}
    repeated = spec.steps[link.step].each is not None
    if repeated and not port.many and not paired:
        said = _("%(link)s is there once for each item. Let this step run for each of %(link)s, or take another input.")
        return said % {"link": link}
    if given.type == port.type or (port.type == "any" and given.type != "signal"):
        return ""
    facts = {"link": link, "given": TYPES[given.type], "type": TYPES[port.type]}
    return _("%(link)s is %(given)s, but this input takes %(type)s.") % facts


def output_of(spec: Spec, link: Link) -> Port | None:
    """The port behind a link."""
    kind = KINDS.find(spec.steps[link.step].kind)
    return kind.output(link.port) if kind else None


def _conditions(spec: Spec, step: Step) -> Iterator[Problem]:
    if step.when is not None:
        given = output_of(spec, step.when)
        if given is None or given.type != "signal" or spec.steps[step.when.step].each is not None:
            said = _("%(link)s is no answer. Take an output of a gate, a condition or an approval.")
            yield Problem(step.key, "when", said % {"link": step.when})
    if step.each is not None:
        given = output_of(spec, step.each)
        repeated = spec.steps[step.each.step].each is not None
        if given is None or (given.type != "list" and not repeated):
            said = _("%(link)s is no list. Take the items of a list, or outputs of a step that runs for each item.")
            yield Problem(step.key, "each", said % {"link": step.each})
        kind = KINDS.find(step.kind)
        if kind and any(port.type == "signal" for port in kind.outputs):
            yield Problem(step.key, "each", _("A step that decides runs once, not for each item."))


def _params(
    spec: Spec, step: Step, kind: StepKind, user: User, given: Mapping[str, Any], unset: frozenset[str]
) -> Iterator[Problem]:
    try:
        names = values.names(step.params)
    except DomainError as exc:
        yield Problem(step.key, "", exc.sentences)
        return
    unknown = sorted(names - set(given))
    if unknown:
        said = _("There is no parameter %(names)s. Add it to the pipeline, or write $${ for the characters ${.")
        yield Problem(step.key, "", said % {"names": ", ".join(unknown)})
        return
    if values.uses_item(step.params) and step.each is None:
        yield Problem(step.key, "each", _("${item} is known only in a step that runs for each item of a list."))
        return
    later = {name for name, value in step.params.items() if values.uses_item(value) or values.names(value) & unset}
    try:
        now = values.substitute({name: value for name, value in step.params.items() if name not in later}, given)
        whole = now | {name: _stand_in(kind, name) for name in later}
        checked = kind.checked({name: value for name, value in whole.items() if value is not None})
    except DomainError as exc:
        for one in exc.every:
            if one.blamed not in later:
                yield Problem(step.key, one.blamed or "", one.message)
        return
    known = {name: value for name, value in checked.items() if name not in later}
    yield from _refused(step, lambda: kind.check(known, user))
    yield from _refused(step, lambda: kind.check_links(known, *_linked(spec, step)))


def _refused(step: Step, check: Callable[[], None]) -> Iterator[Problem]:
    try:
        check()
    except DomainError as exc:
        for one in exc.every:
            yield Problem(step.key, one.blamed or "", one.message)


def _linked(spec: Spec, step: Step) -> tuple[dict[str, list[str]], list[str]]:
    """The steps that feed its inputs, and all beside it, as texts name them: without the pipeline they stand in."""
    prefix = step.key.rpartition("/")[0]
    beside = [key.rpartition("/")[2] for key in spec.steps if key.rpartition("/")[0] == prefix]
    return {port: [link.step.rpartition("/")[2] for link in links] for port, links in step.inputs.items()}, beside


def _stand_in(kind: StepKind, name: str) -> Any:
    """A value that passes for one that is known only with its item."""
    param = next((one for one in kind.params if one.name == name), None)
    if param is None or param.form in ("text", "long", "json"):
        return "x"
    if param.form in ("secret", "secrets"):
        return "X"
    if param.form == "choice":
        return param.choices[0][0]
    return True if param.form == "yesno" else (param.low or param.high or 1)
