"""Step kinds: what a step can do, registered once from this room's `AppConfig.ready()`.

A kind declares its ports and parameters, which the editor, the checks and the text forms read, and three actions:
`start` creates a job or completes at once, `poll` returns the outcome, `stop` ends it. All three run in a transaction
that locks the run: they only write rows, and never wait.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.access.permissions import Action
from accounts.models import NamedSecret, User
from accounts.services import named_secrets
from aiplatform.lib.errors import DomainError, Invalid, Refusals
from aiplatform.lib.numbers import finite
from aiplatform.lib.registry import Registry
from aiplatform.lib.wording import Message
from inference.pipelines.models import PipelineRun, StepRun
from workers.core.models import Job
from workers.core.states import COMPLETED, IllegalMove
from workers.jobs import actions, transitions

#: What goes along a link. `any` takes everything but a signal.
TYPES: Mapping[str, Any] = {
    "dataset": gettext_lazy("Dataset"),
    "model": gettext_lazy("Model"),
    "figures": gettext_lazy("Metrics"),
    "list": gettext_lazy("List"),
    "service": gettext_lazy("Endpoint"),
    "file": gettext_lazy("File"),
    "signal": gettext_lazy("Answer"),
    "any": gettext_lazy("Any type"),
}
GROUPS: Mapping[str, Any] = {
    "data": gettext_lazy("Data"),
    "people": gettext_lazy("Users"),
    "train": gettext_lazy("Train"),
    "judge": gettext_lazy("Evaluate and decide"),
    "ship": gettext_lazy("Deploy"),
    "other": gettext_lazy("Other"),
}
NOTHING = Message()
Form = Literal["text", "long", "number", "whole", "yesno", "choice", "json", "secret", "secrets"]
MAX_TEXT_LENGTH = 20_000
MAX_SECRETS = 50  # of one step


class StepFailed(DomainError, code="step_failed"):
    """What a step does went wrong; the message is kept in its row."""


@dataclass(frozen=True, slots=True)
class Port:
    """An input or an output.

    Attributes:
        many: an input that takes several links.
        optional: an input that may stay empty.
    """

    name: str
    label: Any
    type: str
    optional: bool = False
    many: bool = False


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter: its form field and its allowed values.

    Attributes:
        required: it must be given; without a default.
        low, high: of numbers.
        choices: values and words, of the form "choice".
    """

    name: str
    label: Any
    form: Form = "text"
    default: Any = None
    required: bool = False
    help: Any = ""
    low: float | None = None
    high: float | None = None
    choices: Sequence[tuple[str, Any]] = ()

    def checked(self, value: Any) -> Any:
        """Return the value as the step uses it.

        Raises:
            Invalid: it is none of this form.
        """
        if value is None or value in ("", []):
            if self.required:
                raise Invalid(_("%(name)s is missing.") % {"name": self.label}, field=self.name)
            return self.default
        if self.form in ("number", "whole"):
            return self._number(value)
        if self.form == "yesno":
            if not isinstance(value, bool):
                raise Invalid(_("%(name)s must be true or false.") % {"name": self.label}, field=self.name)
            return value
        if self.form == "json":
            return value
        if self.form in ("secret", "secrets"):
            return self._names(value)
        if not isinstance(value, str | int | float) or isinstance(value, bool):
            raise Invalid(_("%(name)s must be a text.") % {"name": self.label}, field=self.name)
        text = str(value)
        if len(text) > MAX_TEXT_LENGTH:
            message = _("%(name)s can have at most %(most)s characters.") % {
                "name": self.label,
                "most": MAX_TEXT_LENGTH,
            }
            raise Invalid(message, field=self.name)
        values = [choice for choice, _label in self.choices]
        if self.form == "choice" and text not in values:
            message = _("%(name)s must be one of %(known)s.") % {"name": self.label, "known": ", ".join(values)}
            raise Invalid(message, field=self.name)
        return text

    def _names(self, value: Any) -> str | list[str]:
        """Return the name of a secret, or a list of them. Errors never show other input: it may be the secret."""
        names = value if isinstance(value, list) else re.split(r"[\s,;]+", str(value).strip())
        names = [name for name in names if name != ""]
        if not names or len(names) > (MAX_SECRETS if self.form == "secrets" else 1):
            what = _("names of at most %(most)s secrets") % {"most": MAX_SECRETS}
            what = what if self.form == "secrets" else _("the name of one secret")
            raise Invalid(_("%(name)s must be %(what)s.") % {"name": self.label, "what": what}, field=self.name)
        for name in names:
            if not isinstance(name, str) or not named_secrets.is_name(name):
                message = _(
                    "%(name)s requires names of secrets, never the secret itself: capital letters, digits and _."
                )
                raise Invalid(message % {"name": self.label}, field=self.name)
        return list(dict.fromkeys(names)) if self.form == "secrets" else str(names[0])

    def _number(self, value: Any) -> float:
        number = None if isinstance(value, bool) else finite(value)
        if number is None or (self.form == "whole" and number != int(number)):
            what = _("an integer") if self.form == "whole" else _("a number")
            raise Invalid(_("%(name)s must be %(what)s.") % {"name": self.label, "what": what}, field=self.name)
        if (self.low is not None and number < self.low) or (self.high is not None and number > self.high):
            low = "–∞" if self.low is None else f"{self.low:g}"
            high = "∞" if self.high is None else f"{self.high:g}"
            message = _("%(name)s must be from %(low)s to %(high)s.")
            raise Invalid(message % {"name": self.label, "low": low, "high": high}, field=self.name)
        return int(number) if self.form == "whole" else number


@dataclass(frozen=True, slots=True)
class Call:
    """The inputs of a step that starts.

    Attributes:
        row: the row of the step; its `kept` is set to `stored` of the result of `start`.
        params: checked, with `${…}` replaced.
        inputs: references by port, in the order of the links; see `models.reference`.
        name: for jobs and other created objects, at most 90 characters.
        parameters: parameters of the step's pipeline, with the values of this run.
    """

    run: PipelineRun
    row: StepRun
    user: User
    params: Mapping[str, Any]
    inputs: Mapping[str, Sequence[Mapping[str, Any]]]
    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def only(self, port: str) -> Mapping[str, Any] | None:
        """Return the single reference of a port; None where nothing is connected."""
        references = self.inputs.get(port, ())
        return references[0] if references else None


@dataclass(frozen=True, slots=True)
class Done:
    """What a step ended well with.

    Attributes:
        outputs: references, figures or lists by port.
        answer: the signal that it gives.
    """

    outputs: Mapping[str, Any] = field(default_factory=dict)
    answer: str = ""
    message: Message = NOTHING


@dataclass(frozen=True, slots=True)
class Begun:
    """The result of `start`: a job, a state to poll later, a question to users, or a completed step.

    Attributes:
        stored: values that `poll` needs.
        look_again: for what has no job, how long until `poll` is called.
        asks: users have to decide.
    """

    job: Job | None = None
    stored: Mapping[str, Any] = field(default_factory=dict)
    done: Done | None = None
    look_again: timedelta | None = None
    asks: bool = False


class StepKind:
    """One kind of step.

    Attributes:
        name: what specifications say; never changed.
        number: rises whenever what the kind makes of the same inputs changes: earlier results no longer count.
        acts: it has effects other than its outputs, so it runs again in each run.
        computes: programs make its result, so the versions of what they compute with decide it as well.
        needs: what its owner must be allowed to do, when the run begins and when the step does.
    """

    name: str
    label: Any
    description: Any
    group: str
    icon: str = "tasks"
    number: int = 1
    acts: bool = False
    computes: bool = False
    needs: Action = Action.JOBS_SUBMIT
    inputs: tuple[Port, ...] = ()
    outputs: tuple[Port, ...] = ()
    params: tuple[Param, ...] = ()

    def input(self, name: str) -> Port | None:
        """The input of this name."""
        return next((port for port in self.inputs if port.name == name), None)

    def output(self, name: str) -> Port | None:
        """The output of this name."""
        return next((port for port in self.outputs if port.name == name), None)

    def checked(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """Return all parameters with their values.

        Raises:
            Invalid: one for each that is unknown or out of range; `field` is the parameter.
        """
        refusals, values = Refusals(), dict[str, Any]()
        names = {param.name for param in self.params}
        for name in content:
            with refusals:
                if name not in names:
                    message = _("%(kind)s has no parameter “%(name)s”. Available parameters: %(known)s.")
                    facts = {"kind": self.label, "name": name[:40], "known": ", ".join(sorted(names)) or _("none")}
                    raise Invalid(message % facts, field=name[:40])
        for param in self.params:
            with refusals:
                values[param.name] = param.checked(content.get(param.name))
        refusals.end()
        return values

    def check(self, params: Mapping[str, Any], user: User) -> None:
        """Refuse early what `start` would refuse of known parameters; those with `${…}` are left out.

        Raises:
            DomainError.
        """

    def check_links(self, params: Mapping[str, Any], linked: Mapping[str, Sequence[str]], steps: Iterable[str]) -> None:
        """Refuse parameters that do not go with what is linked; those with `${…}` are left out.

        Args:
            linked: steps by the input that they feed.
            steps: all steps of its pipeline.

        Raises:
            DomainError.
        """

    def content(self, call: Call) -> Mapping[str, Any] | None:
        """What else decides its result, for the key of earlier results; None: never take an earlier one."""
        return None if self.acts else {}

    def start(self, call: Call) -> Begun:
        """Start the job, or do what needs none.

        Raises:
            DomainError: it is refused; the step fails with its words.
        """
        raise NotImplementedError(f"The step kind {self.name!r} does not say what to do.")

    def poll(self, row: StepRun) -> Done | None:
        """Return the outcome; None: not over yet. Called once its job is over and published, or `look_at` is reached.

        Raises:
            StepFailed: it went wrong.
        """
        return Done()

    def stop(self, row: StepRun) -> None:
        """End what it started; called again until it is over."""
        stop_job(row.job)


def stop_job(job: Job | None) -> None:
    """Request a stop, unless it is ending or over."""
    if job is None or job.is_final:
        return
    try:
        actions.stop(job)
    except (IllegalMove, transitions.StaleReport):
        return


def completed(row: StepRun) -> Job:
    """The job of a row, which must have ended well.

    Raises:
        StepFailed: with the job's own words.
    """
    job = row.job
    if job is None:
        raise StepFailed(_("The job was deleted."))
    if job.state not in COMPLETED:
        raise StepFailed(job.message or _("The job ended as %(state)s.") % {"state": job.get_state_display()})
    return job


KINDS: Registry[StepKind] = Registry("step kind")
register = KINDS.register


def label_of(name: str) -> str:
    """Return the label of a kind in the reader's language; its name where it does not exist any more."""
    kind = KINDS.find(name)
    return str(kind.label) if kind else name


def catalogue(reader: User | None = None) -> dict[str, Any]:
    """Return all kinds for the editor, in the reader's language.

    Args:
        reader: whose secrets it offers, by name.
    """
    names = NamedSecret.objects.visible_to(reader).values_list("name", flat=True) if reader else ()
    return {
        "secrets": list(names),
        "types": {name: {"label": str(label)} for name, label in TYPES.items()},
        "groups": [{"name": name, "label": str(label)} for name, label in GROUPS.items()],
        "kinds": [_shown(kind) for kind in sorted(KINDS, key=lambda step_kind: list(GROUPS).index(step_kind.group))],
    }


def _shown(kind: StepKind) -> dict[str, Any]:
    return {
        "name": kind.name,
        "label": str(kind.label),
        "about": str(kind.description),
        "group": kind.group,
        "icon": kind.icon,
        "inputs": [
            {
                "name": port.name, "label": str(port.label), "type": port.type, "optional": port.optional,
                "many": port.many,
            }
            for port in kind.inputs
        ],
        "outputs": [{"name": port.name, "label": str(port.label), "type": port.type} for port in kind.outputs],
        "params": [
            {
                "name": param.name, "label": str(param.label), "form": param.form, "default": param.default,
                "required": param.required, "help": str(param.help), "low": param.low, "high": param.high,
                "choices": [[value, str(label)] for value, label in param.choices],
            }
            for param in kind.params
        ],
    }  # fmt: skip
