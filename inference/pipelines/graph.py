"""The specification of a pipeline: steps, what feeds them, when they begin. Pure: no database, no step kinds.

`parse` reads what people and programs send and refuses everything that is wrong at once; `canonical` writes the one
form that equal pipelines share, and `digest` names it. Positions on the canvas are not part of it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from django.utils.translation import gettext as _

from aiplatform.lib.errors import Invalid, Refusals
from aiplatform.lib.parsers import is_sound

FORMAT = 1
MAX_STEPS = 2000
MAX_PARAMETERS = 100
MAX_BYTES = 2 << 20  # of a specification as JSON
MAX_LINKS = 100  # into one port, and steps in `after`
MAX_NOTE = 500
MAX_RETRIES = 10
NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
RUN_NAME = re.compile(rf"{NAME.pattern}(?:/{NAME.pattern}){{0,3}}")  # steps and parameters of pipelines put inside
KIND = re.compile(r"[a-z][a-z0-9_]{0,19}")

Rule = Literal["all_ok", "all_done", "any_failed"]
RULES: Sequence[Rule] = ("all_ok", "all_done", "any_failed")
_STEP_KEYS = ("kind", "with", "from", "when", "after", "each", "retries", "rule", "tolerate", "note")


@dataclass(frozen=True, slots=True, order=True)
class Link:
    """An output of another step: "train.model"."""

    step: str
    port: str

    def __str__(self) -> str:
        return f"{self.step}.{self.port}"


@dataclass(frozen=True, slots=True)
class Step:
    """One step as the specification has it.

    Attributes:
        key: its name in the pipeline.
        params: `with` of the specification, as written, with `${…}` in it.
        inputs: what feeds each port.
        when: an answer that must have been given, as `gate.passed`.
        after: steps that must be over before, without any data.
        each: a list; the step runs once for each of its items.
        rule: what must have become of the steps before it.
        retries: more attempts after a failure, of the step or of each item.
        tolerate: share of the items that may fail, 0 to 1.
    """

    key: str
    kind: str
    params: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, tuple[Link, ...]] = field(default_factory=dict)
    when: Link | None = None
    after: tuple[str, ...] = ()
    each: Link | None = None
    rule: Rule = "all_ok"
    retries: int = 0
    tolerate: float = 0.0
    note: str = ""

    @property
    def needs(self) -> tuple[str, ...]:
        """The steps that its rule looks at: those that feed it, and those it comes after."""
        fed = {link.step for links in self.inputs.values() for link in links}
        return tuple(sorted(fed | set(self.after)))

    @property
    def sources(self) -> tuple[str, ...]:
        """All steps that must be over before it begins."""
        others = {link.step for link in (self.when, self.each) if link is not None}
        return tuple(sorted(others | set(self.needs)))


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value that each run may set."""

    default: Any = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Spec:
    """A whole pipeline."""

    steps: Mapping[str, Step]
    parameters: Mapping[str, Parameter] = field(default_factory=dict)

    def order(self) -> list[str]:
        """Names of the steps, each after those that it needs; equal ones by name. Without a circle."""
        left = {key: {name for name in step.sources if name in self.steps} for key, step in self.steps.items()}
        followers: dict[str, list[str]] = {}
        for key, sources in left.items():
            for source in sources:
                followers.setdefault(source, []).append(key)
        ready, done = sorted(key for key, sources in left.items() if not sources), list[str]()
        while ready:
            done += ready
            following = []
            for key in ready:
                for follower in followers.get(key, ()):
                    left[follower].discard(key)
                    if not left[follower]:
                        following.append(follower)
            ready = sorted(following)
        return done


def parse(content: Any, *, of_run: bool = False) -> Spec:
    """Read a specification.

    Args:
        of_run: what a run keeps, see `inlining`: names may be paths, and links are not counted.

    Raises:
        Invalid: one for each thing that is wrong; `field` is the step, or "spec".
    """
    refusals = Refusals()
    if not isinstance(content, Mapping) or not is_sound(content):
        raise Invalid(_("A pipeline must be an object with “steps”."), field="spec")
    if len(json.dumps(content, ensure_ascii=False).encode(errors="replace")) > MAX_BYTES:
        raise Invalid(_("A pipeline can have at most %(most)s MiB of text.") % {"most": MAX_BYTES >> 20}, field="spec")
    with refusals:
        _check_keys(content, ("format", "parameters", "steps"), _("the pipeline"), field="spec")
    with refusals:
        if content.get("format", FORMAT) != FORMAT:
            message = _("The pipeline format %(given)s is not supported, only %(known)s.")
            raise Invalid(message % {"known": FORMAT, "given": str(content["format"])[:20]}, field="spec")
    parameters: dict[str, Parameter] = {}
    with refusals:
        parameters = _parameters(content.get("parameters", {}), of_run)
    steps: dict[str, Step] = {}
    raw = content.get("steps", {})
    if not isinstance(raw, Mapping):
        raise Invalid(_("“steps” must be an object: a name and a step."), field="spec")
    if len(raw) > MAX_STEPS:
        raise Invalid(_("A pipeline can have at most %(most)s steps.") % {"most": MAX_STEPS}, field="spec")
    for key, entry in raw.items():
        with refusals:
            steps[key] = _step(key, entry, of_run)
    if not refusals:
        with refusals:
            _check_links(steps)
    refusals.end()
    return Spec(steps, parameters)


def canonical(spec: Spec) -> dict[str, Any]:
    """Return the specification as JSON: keys sorted, empty values and defaults left out."""
    written: dict[str, Any] = {"format": FORMAT}
    if spec.parameters:
        written["parameters"] = {
            name: {"default": parameter.default} | ({"note": parameter.note} if parameter.note else {})
            for name, parameter in sorted(spec.parameters.items())
        }
    written["steps"] = {key: _written(step) for key, step in sorted(spec.steps.items())}
    return written


def digest(spec: Spec) -> str:
    """SHA-256 of the canonical form, as 64 hexadecimal digits."""
    text = json.dumps(canonical(spec), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def after(spec: Mapping[str, Step], start: str) -> set[str]:
    """`start` and all steps that come after it."""
    followers: dict[str, list[str]] = {}
    for key, step in spec.items():
        for source in step.sources:
            followers.setdefault(source, []).append(key)
    reached, open_ = {start}, [start]
    while open_:
        for follower in followers.get(open_.pop(), ()):
            if follower not in reached:
                reached.add(follower)
                open_.append(follower)
    return reached


def layout_of(content: Any, spec: Spec | None = None) -> dict[str, list[int]]:
    """Return the positions of existing steps as integers; everything else is dropped.

    Raises:
        Invalid: it is no object.
    """
    if not isinstance(content, Mapping):
        raise Invalid(_("“layout” must be an object: a step and [x, y]."), field="layout")
    layout = {}
    for key, position in list(content.items())[:MAX_STEPS]:
        if spec is not None and key not in spec.steps:
            continue
        if (
            isinstance(position, list)
            and len(position) == 2
            and all(_is_number(number) and abs(number) < 1e7 for number in position)
        ):
            layout[str(key)[:40]] = [round(position[0]), round(position[1])]
    return layout


# Reading ---------------------------------------------------------------------------------------------------------


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_keys(content: Mapping[str, Any], names: Sequence[str], where: str, *, field: str) -> None:
    unknown = [str(key)[:40] for key in content if key not in names]
    if unknown:
        message = _("%(where)s has no “%(odd)s”. Available: %(known)s.")
        raise Invalid(message % {"where": where, "odd": ", ".join(unknown[:5]), "known": ", ".join(names)}, field=field)


def _parameters(content: Any, of_run: bool) -> dict[str, Parameter]:
    if not isinstance(content, Mapping) or (len(content) > MAX_PARAMETERS and not of_run):
        message = _("“parameters” must be an object with at most %(most)s names.")
        raise Invalid(message % {"most": MAX_PARAMETERS}, field="parameters")
    refusals, parameters = Refusals(), {}
    for name, entry in content.items():
        with refusals:
            if not _is_name(name, of_run) or name == "item":
                raise Invalid(_name_rule(name), field="parameters")
            if not isinstance(entry, Mapping):
                message = _("The parameter %(name)s must be an object with a “default”.")
                raise Invalid(message % {"name": name}, field="parameters")
            _check_keys(entry, ("default", "note"), name, field="parameters")
            parameters[name] = Parameter(entry.get("default"), _note(entry.get("note", ""), "parameters"))
    refusals.end()
    return parameters


def _is_name(name: Any, of_run: bool) -> bool:
    return isinstance(name, str) and bool((RUN_NAME if of_run else NAME).fullmatch(name))


def _name_rule(name: Any) -> str:
    message = _("“%(name)s” is not a valid name: use lowercase letters, digits and _, a letter first, at most 40.")
    return message % {"name": str(name)[:40]}


def _note(value: Any, field: str) -> str:
    if not isinstance(value, str) or len(value) > MAX_NOTE:
        raise Invalid(_("A note must be a text of at most %(most)s characters.") % {"most": MAX_NOTE}, field=field)
    return value.strip()


def _step(key: Any, content: Any, of_run: bool) -> Step:
    if not _is_name(key, of_run):
        raise Invalid(_name_rule(key), field="spec")
    if not isinstance(content, Mapping):
        raise Invalid(_("Step %(step)s must be an object with a “kind”.") % {"step": key}, field=key)
    refusals, columns = Refusals(), dict[str, Any]()
    with refusals:
        _check_keys(content, _STEP_KEYS, key, field=key)
    with refusals:
        kind = content.get("kind")
        if not isinstance(kind, str) or not KIND.fullmatch(kind):
            raise Invalid(_("Step %(step)s has no “kind”.") % {"step": key}, field=key)
        columns["kind"] = kind
    readers = {
        "with": ("params", _params), "from": ("inputs", _inputs), "when": ("when", _link), "each": ("each", _link),
        "after": ("after", _names), "rule": ("rule", _rule), "retries": ("retries", _retries),
        "tolerate": ("tolerate", _share),
    }  # fmt: skip
    for name, (column, read) in readers.items():
        with refusals:
            if (value := content.get(name)) not in (None, ""):
                columns[column] = read(key, value, of_run)
    with refusals:
        columns["note"] = _note(content.get("note", ""), key)
    refusals.end()
    return Step(key=key, **columns)


def _params(key: str, value: Any, _of_run: bool) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise Invalid(_("“with” of %(step)s must be an object: a parameter and its value.") % {"step": key}, field=key)
    return dict(value)


def _inputs(key: str, content: Any, of_run: bool) -> dict[str, tuple[Link, ...]]:
    if not isinstance(content, Mapping):
        raise Invalid(_("“from” of %(step)s must be an object: an input and “step.output”.") % {"step": key}, field=key)
    read = {}
    for port, value in content.items():
        if not isinstance(port, str) or not NAME.fullmatch(port):
            raise Invalid(_name_rule(port), field=key)
        links = value if isinstance(value, list) else [value]
        if len(links) > MAX_LINKS and not of_run:
            raise Invalid(_("An input can have at most %(most)s connections.") % {"most": MAX_LINKS}, field=key)
        if links:
            read[port] = tuple(dict.fromkeys(_link(key, link, of_run) for link in links))
    return read


def _link(key: str, value: Any, of_run: bool) -> Link:
    step, dot, port = value.partition(".") if isinstance(value, str) else ("", "", "")
    if not dot or not _is_name(step, of_run) or not NAME.fullmatch(port):
        message = _("“%(given)s” in %(step)s is not an output: write step.output, such as train.model.")
        raise Invalid(message % {"given": str(value)[:80], "step": key}, field=key)
    return Link(step, port)


def _names(key: str, value: Any, of_run: bool) -> tuple[str, ...]:
    names = value if isinstance(value, list) else [value]
    if (len(names) > MAX_LINKS and not of_run) or not all(_is_name(name, of_run) for name in names):
        message = _("“after” of %(step)s must be a list of at most %(most)s steps.")
        raise Invalid(message % {"step": key, "most": MAX_LINKS}, field=key)
    return tuple(sorted(set(names)))


def _rule(key: str, value: Any, _of_run: bool) -> Rule:
    for rule in RULES:
        if value == rule:
            return rule
    raise Invalid(
        _("“rule” of %(step)s must be one of %(known)s.") % {"step": key, "known": ", ".join(RULES)}, field=key
    )


def _retries(key: str, value: Any, _of_run: bool) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_RETRIES:
        message = _("“retries” of %(step)s must be an integer from 0 to %(most)s.")
        raise Invalid(message % {"step": key, "most": MAX_RETRIES}, field=key)
    return value


def _share(key: str, value: Any, _of_run: bool) -> float:
    if not _is_number(value) or not 0 <= value <= 1:
        raise Invalid(_("“tolerate” of %(step)s must be a number from 0 to 1.") % {"step": key}, field=key)
    return float(value)


def _check_links(steps: Mapping[str, Step]) -> None:
    refusals = Refusals()
    for key, step in steps.items():
        with refusals:
            missing = [name for name in step.sources if name not in steps]
            if missing:
                message = _("%(step)s requires %(gone)s, which does not exist.")
                raise Invalid(message % {"step": key, "gone": ", ".join(missing)}, field=key)
    refusals.end()
    ordered = set(Spec(steps).order())
    if len(ordered) < len(steps):
        cycle = sorted(set(steps) - ordered)
        message = _("These steps form a cycle: %(steps)s. Remove a connection.")
        raise Invalid(message % {"steps": ", ".join(cycle[:10])}, field=cycle[0])


# Writing ---------------------------------------------------------------------------------------------------------


def _written(step: Step) -> dict[str, Any]:
    return dict(_parts(step))


def _parts(step: Step) -> Iterator[tuple[str, Any]]:
    yield "kind", step.kind
    if step.params:
        yield "with", {name: step.params[name] for name in sorted(step.params)}
    if step.inputs:
        yield (
            "from",
            {
                port: str(links[0]) if len(links) == 1 else [str(link) for link in links]
                for port, links in sorted(step.inputs.items())
            },
        )
    if step.when:
        yield "when", str(step.when)
    if step.after:
        yield "after", list(step.after)
    if step.each:
        yield "each", str(step.each)
    if step.retries:
        yield "retries", step.retries
    if step.rule != "all_ok":
        yield "rule", step.rule
    if step.tolerate:
        yield "tolerate", step.tolerate
    if step.note:
        yield "note", step.note
