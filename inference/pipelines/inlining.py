"""Pipelines inside pipelines: put in their places when a run is made, so that nothing else needs a second rule.

A step `sub` of the kind `pipeline` becomes three things: `sub/begin`, which waits for what the step waits for and lets
all inside begin; the steps of that pipeline as `sub/NAME`; and `sub` itself, which comes after all of them and fails
where one of them failed. What `sub` is fed with feeds whatever the steps of the kind `input` inside fed; what `sub`
gives comes from the step inside that `result` names. Parameters inside are kept as `sub/NAME` with their values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import ids
from aiplatform.lib.errors import DomainError, Invalid
from aiplatform.lib.parsers import is_sound
from inference.pipelines import graph, values
from inference.pipelines.graph import Link, Parameter, Spec, Step
from inference.pipelines.kinds import KINDS
from inference.pipelines.models import Pipeline, PipelineVersion

KIND, INPUT = "pipeline", "input"
MAX_DEPTH = 4  # pipelines in one another, the outermost counted
PORTS = ("data", "model", "figures")  # that a pipeline gives
BEGUN = "yes"  # the answer of `sub/begin`


def has_inside(spec: Spec) -> bool:
    """Whether there is a pipeline to put in its place."""
    return any(step.kind == KIND for step in spec.steps.values())


def inline(
    spec: Spec,
    user: User,
    params: Mapping[str, Any],
    *,
    within: int | None = None,
    authors: frozenset[int] = frozenset(),
) -> Spec:
    """Return what a run executes: all inner pipelines are replaced by their steps.

    Args:
        user: the owner of the run, who must see the pipelines inside.
        params: all parameters of the run.
        within: number of the pipeline itself, which must not contain itself.
        authors: numbers of people whose word goes besides the user's, see `version_named`.

    Raises:
        Invalid: an inner pipeline does not exist, contains itself, or is too large; `field` is the outermost step.
    """
    if not has_inside(spec):
        return spec
    work = _Inlining(user, authors)
    work.add_pipeline(spec, params, "", (within,), "")
    inlined = Spec(work.wired(), dict(spec.parameters) | work.parameters)
    return graph.parse(graph.canonical(inlined), of_run=True)


def entry_of(spec: Spec, key: str) -> str:
    """Return the step to restart or to skip: the entry of an inner pipeline, else the step itself."""
    step = spec.steps[key]
    return step.when.step if step.kind == KIND and step.when is not None else key


def parameters_of(spec: Spec, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return all parameters of a run.

    Raises:
        Invalid: one that the pipeline does not have, or a value that is too large, or that no database stores.
    """
    values.check(dict(params))
    if not is_sound(dict(params)):
        raise Invalid(_("A number is too large or invalid, or a text contains NUL."), field="parameters")
    unknown = sorted(set(params) - set(spec.parameters))
    if unknown:
        names = ", ".join(sorted(spec.parameters)) or _("none")
        message = _("This pipeline has no parameter %(odd)s. Available parameters: %(known)s.")
        raise Invalid(message % {"odd": ", ".join(unknown)[:200], "known": names}, field="parameters")
    return {name: params.get(name, parameter.default) for name, parameter in spec.parameters.items()}


def version_named(name: str, word: str, user: User, authors: frozenset[int] = frozenset()) -> PipelineVersion:
    """A version of a pipeline that this person sees.

    What stands inside runs with this person's rights, so nobody else may change it afterwards: the newest version
    counts only where this person saved it, and a name means no pipeline of a stranger's, who may give it to another.

    Args:
        name: its name, or its number.
        word: "latest", a number or "v3".
        authors: numbers of people whose pipelines and newest versions count as well.

    Raises:
        Invalid: there is none, the name belongs to an unrelated user, or the newest version is by another user.
    """
    visible = Pipeline.objects.visible_to(user)
    owner, slash, own_name = name.rpartition("/")
    trusted = authors | {user.pk}
    owner_filter = {"owner__username": owner} if slash else {"owner__in": trusted}
    named = list(visible.filter(name=own_name, **owner_filter).order_by("pk")[:50])
    chosen = ([row for row in named if row.owner_id == user.pk] or named)[:1]
    if not chosen and (number := ids.number(name)):
        chosen = list(visible.filter(pk=number))
    if not chosen:
        message = _("Pipeline “%(name)s” not found. For a pipeline of another user, write its number.")
        raise Invalid(message % {"name": name[:80]}, field="pipeline")
    if named and chosen[0].owner_id not in trusted:
        message = _(
            "%(name)s belongs to another user, who can give this name to another pipeline. Write its number: "
            "%(number)s."
        )
        raise Invalid(message % {"name": name[:80], "number": chosen[0].pk}, field="pipeline")
    versions = chosen[0].versions.order_by("-number")
    if word != "latest":
        versions = versions.filter(number=ids.number(word.removeprefix("v")) or 0)
    version: PipelineVersion | None = versions.first()
    if version is None:
        message = _("The pipeline %(name)s has no version %(word)s.")
        raise Invalid(message % {"name": chosen[0], "word": word[:20]}, field="version")
    if word == "latest" and version.created_by_id not in trusted:
        message = _("Another user saved the newest version of %(name)s. Review it, and enter its number: %(number)s.")
        raise Invalid(message % {"name": chosen[0], "number": version.number}, field="version")
    return version


class _Inlining:
    """The steps of a run, gathered level by level."""

    def __init__(self, user: User, authors: frozenset[int]) -> None:
        self.user, self.authors = user, authors
        self.steps: dict[str, Step] = {}
        self.parameters: dict[str, Parameter] = {}
        self.stands_for: dict[Link, tuple[Link, ...]] = {}  # outputs of pipelines inside and of their inputs
        self.left_out: dict[str, str] = {}  # a step of the kind `input` → what begins its pipeline
        self._versions: dict[tuple[str, str], tuple[PipelineVersion, Spec]] = {}

    def add_pipeline(
        self, spec: Spec, params: Mapping[str, Any], prefix: str, within: tuple[int | None, ...], begin: str
    ) -> None:
        """Add the steps of a pipeline below `prefix`; `begin` is the step that allows them to start."""
        used = {link.step for step in spec.steps.values() for link in _links(step)}
        for key, step in spec.steps.items():
            if prefix + key in self.left_out:
                continue
            placed = _moved(step, prefix)
            if begin and placed.when is None:
                placed = replace(placed, when=Link(begin, BEGUN))
            if step.kind == KIND:
                with_words = _Blamed(placed.key)
                with with_words:
                    self._inside(placed, params, within, is_used=key in used)
            else:
                self._add(placed)

    def _inside(
        self, step: Step, outer_params: Mapping[str, Any], within: tuple[int | None, ...], *, is_used: bool
    ) -> None:
        if step.each is not None:
            raise Invalid(_("A nested pipeline runs once. Use the list in steps inside it."))
        if step.retries:
            raise Invalid(_("Retries apply to steps inside a pipeline, not to the pipeline. Set them there."))
        if len(within) >= MAX_DEPTH:
            raise Invalid(_("Pipelines can be nested at most %(most)s levels deep.") % {"most": MAX_DEPTH})
        own_params = KINDS.get(KIND).checked(values.substitute(dict(step.params), outer_params))
        version, spec = self._load_version(own_params["pipeline"], own_params["version"])
        if version.pipeline_id in within:
            raise Invalid(_("The pipeline %(name)s contains itself.") % {"name": version.pipeline})
        inner = parameters_of(spec, own_params["parameters"] or {})
        self.parameters |= {f"{step.key}/{name}": Parameter(value) for name, value in inner.items()}
        begin = f"{step.key}/begin"
        while begin.rpartition("/")[2] in spec.steps:
            begin += "_"
        inputs = {"for": tuple(link for links in step.inputs.values() for link in links)} if step.inputs else {}
        self._add(Step(begin, "condition", {"rule": "1 == 1"}, inputs, step.when, step.after, rule=step.rule))
        self._feed(step, spec, begin)
        self.add_pipeline(spec, inner, f"{step.key}/", (*within, version.pipeline_id), begin)
        leaves = self._leaves(step, spec)
        self._map_outputs(step, spec, own_params["result"], leaves, is_used=is_used)
        after = tuple(sorted(leaves)) or (begin,)
        named = {"pipeline": str(version.pipeline_id), "version": str(version.number)}
        self._add(Step(step.key, KIND, dict(step.params) | named, when=Link(begin, BEGUN), after=after, rule="all_done",
                       note=step.note))  # fmt: skip

    def _load_version(self, name: str, word: str) -> tuple[PipelineVersion, Spec]:
        if (name, word) not in self._versions:
            version = version_named(name, word, self.user, self.authors)
            self._versions[name, word] = version, graph.parse(version.spec)
        return self._versions[name, word]

    def _feed(self, step: Step, spec: Spec, begin: str) -> None:
        """Replace the outputs of its input steps by what feeds the pipeline; fully replaced ones are left out."""
        used = {link for inner in spec.steps.values() for link in _links(inner)}
        for key in (key for key, inner in spec.steps.items() if inner.kind == INPUT):
            connected = {Link(key, port) for port in step.inputs}
            self.stands_for |= {Link(f"{step.key}/{key}", port): links for port, links in step.inputs.items()}
            open_ = {link for link in used if link.step == key} - connected
            if connected and not open_:
                self.left_out[f"{step.key}/{key}"] = begin

    def _leaves(self, step: Step, spec: Spec) -> list[str]:
        """The steps inside that nothing inside waits for."""
        waited_for = {source for inner in spec.steps.values() for source in inner.sources}
        ends = (f"{step.key}/{key}" for key in spec.steps if key not in waited_for)
        return [key for key in ends if key not in self.left_out]

    def _map_outputs(self, step: Step, spec: Spec, result: str, leaves: list[str], *, is_used: bool) -> None:
        if not result and len(leaves) == 1:
            result = leaves[0].rpartition("/")[2]
        if result and result not in spec.steps:
            names = ", ".join(sorted(spec.steps)[:20])
            message = _("Step “%(result)s” not found inside. Available steps: %(known)s.")
            raise Invalid(message % {"result": result[:40], "known": names})
        if not result and is_used:
            raise Invalid(_("Several final steps exist. Name in “result” the one whose outputs are returned."))
        if result:
            self.stands_for |= {Link(step.key, port): (Link(f"{step.key}/{result}", port),) for port in PORTS}

    def _add(self, step: Step) -> None:
        self.steps[step.key] = step
        if len(self.steps) > graph.MAX_STEPS:
            message = _("Including nested pipelines this has more than %(most)s steps.")
            raise Invalid(message % {"most": graph.MAX_STEPS})

    def wired(self) -> dict[str, Step]:
        """All steps, fed by steps that there are."""
        return {key: self._wired(step) for key, step in self.steps.items()}

    def _wired(self, step: Step) -> Step:
        inputs = {
            port: tuple(source for link in links for source in self._meant(link)) for port, links in step.inputs.items()
        }
        each = self._meant(step.each)[0] if step.each is not None else None
        pipelines = {
            link.step for link in _links(step) if link.step in self.steps and self.steps[link.step].kind == KIND
        }
        after = {self.left_out.get(name, name) for name in step.after} | pipelines
        return replace(step, inputs=inputs, each=each, after=tuple(sorted(after)))

    def _meant(self, link: Link) -> tuple[Link, ...]:
        if link not in self.stands_for:
            return (link,)
        return tuple(source for other in self.stands_for[link] for source in self._meant(other))


def _links(step: Step) -> list[Link]:
    """The outputs that feed a step, its list as well."""
    return [link for links in step.inputs.values() for link in links] + ([step.each] if step.each is not None else [])


def _moved(step: Step, prefix: str) -> Step:
    """The step below a prefix, with all that it names."""

    def moved(link: Link | None) -> Link | None:
        return Link(prefix + link.step, link.port) if link is not None else None

    inputs = {port: tuple(Link(prefix + link.step, link.port) for link in links) for port, links in step.inputs.items()}
    after = tuple(prefix + name for name in step.after)
    return replace(
        step, key=prefix + step.key, inputs=inputs, when=moved(step.when), each=moved(step.each), after=after
    )


class _Blamed:
    """Has refusals name the outermost step, which is the one that people see."""

    def __init__(self, key: str) -> None:
        self.key = key

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, exc: BaseException | None, _trace: object) -> None:
        outermost, inside, _rest = self.key.partition("/")
        if isinstance(exc, DomainError) and not inside:
            raise Invalid(exc.sentences, field=outermost) from None
