"""Steps that decide: a gate by figures, a condition by parameters, an approval by people."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import User
from accounts.services.notify import notify
from aiplatform.lib import wording
from aiplatform.lib.errors import Invalid
from inference.pipelines import expressions
from inference.pipelines.kinds import Begun, Call, Done, Param, Port, StepKind
from inference.pipelines.models import StepApproval, StepRun
from workers.core.clock import now

MOST_PEOPLE = 50


class GateStep(StepKind):
    """A rule over figures. A figure that nobody measured fails the gate; it never passes."""

    name = "gate"
    label = gettext_lazy("Gate")
    about = gettext_lazy("Goes on one way or the other by a rule over figures, such as AP50 >= 0.85.")
    group = "judge"
    icon = "filter"
    acts = True  # a rule costs nothing
    inputs = (Port("figures", gettext_lazy("Figures"), "figures", many=True),)
    outputs = (
        Port("passed", gettext_lazy("Passed"), "signal"),
        Port("refused", gettext_lazy("Refused"), "signal"),
        Port("figures", gettext_lazy("Figures"), "figures"),
    )
    params = (
        Param(
            "rule", gettext_lazy("Rule"), required=True,
            help=gettext_lazy("Figures by name, + - * /, comparisons, and, or, not. champion.AP50 is of a comparison."),
        ),
    )  # fmt: skip

    def check(self, params: Mapping[str, Any], user: User) -> None:
        if params.get("rule"):
            _read(params["rule"], "rule")

    def begin(self, call: Call) -> Begun:
        rule = _read(call.params["rule"], "rule")
        figures = spelled(by_name(call.inputs["figures"]), rule.names())
        passed = rule.value(figures)
        used = {name: figures[name] for name in sorted(rule.names())}
        said = ", ".join(f"{name} = {value:.4g}" if isinstance(value, float) else f"{name} = {value}"
                         for name, value in used.items())  # fmt: skip
        message = wording.message("pipeline.gate", rule=rule.text, values=said)
        outputs = {"figures": {"type": "figures", "values": figures, "label": call.row.step}}
        return Begun(done=Done(outputs, "passed" if passed else "refused", message))


def _read(text: str, field: str, *, switches: bool = False) -> expressions.Expression:
    try:
        return expressions.parse(text, switches=switches)
    except Invalid as exc:
        raise Invalid(exc.message, field=field) from None


def by_name(given: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The figures by name; a later input overwrites an earlier one, each is also there as STEP.NAME."""
    found: dict[str, Any] = {}
    for one in given:
        values = one.get("values", {})
        found |= values
        if step := re.sub(r"[^a-z0-9_]", "_", str(one.get("step", ""))):
            found |= {f"{step}.{name}": value for name, value in values.items()}
    return found


def spelled(figures: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """With the names of a rule that differ from one figure in capital letters alone: AP50 is ap50."""
    found = dict(figures)
    for name in names:
        alike = [known for known in figures if known.lower() == name.lower()]
        if name not in found and len(alike) == 1:
            found[name] = figures[alike[0]]
    return found


class ConditionStep(StepKind):
    """A rule over the run's parameters."""

    name = "condition"
    label = gettext_lazy("Condition")
    about = gettext_lazy("Goes on one way or the other by the parameters of the run, such as preset == “hog”.")
    group = "judge"
    icon = "branch"
    acts = True
    inputs = (Port("for", gettext_lazy("After"), "any", optional=True, many=True),)
    outputs = (Port("yes", gettext_lazy("Yes"), "signal"), Port("no", gettext_lazy("No"), "signal"))
    params = (
        Param(
            "rule", gettext_lazy("Rule"), required=True,
            help=gettext_lazy("Parameters of the pipeline by name, compared with numbers and texts in quotes."),
        ),
    )  # fmt: skip

    def check(self, params: Mapping[str, Any], user: User) -> None:
        if params.get("rule"):
            _read(params["rule"], "rule", switches=True)

    def begin(self, call: Call) -> Begun:
        rule = _read(call.params["rule"], "rule", switches=True)
        plain = {
            name: value for name, value in call.parameters.items() if not isinstance(value, list | dict)
        } | by_name(call.inputs.get("for", ()))
        return Begun(done=Done(answer="yes" if rule.value(plain) else "no"))


class ApproveStep(StepKind):
    """A question to people."""

    name = "approve"
    label = gettext_lazy("Approval")
    about = gettext_lazy("Asks people, and goes on with their answer. It holds no machine while it waits.")
    group = "people"
    icon = "person"
    acts = True
    inputs = (Port("for", gettext_lazy("What is approved"), "any", optional=True, many=True),)
    outputs = (Port("passed", gettext_lazy("Passed"), "signal"), Port("refused", gettext_lazy("Refused"), "signal"))
    params = (
        Param("question", gettext_lazy("Question"), form="long", default="", help=gettext_lazy("What is asked.")),
        Param("people", gettext_lazy("People"), default="", help=gettext_lazy(
            "Usernames with commas between them. Empty: the owner of the run.")),
        Param("needed", gettext_lazy("People who have to agree"), form="whole", default=1, low=1, high=10),
        Param("hours", gettext_lazy("Hours to answer"), form="number", default=0, low=0, high=8760,
              help=gettext_lazy("0: as long as it takes.")),
        Param("at_expiry", gettext_lazy("When nobody answers"), form="choice", default="refused", choices=(
            ("refused", gettext_lazy("Refused")), ("passed", gettext_lazy("Passed")),
            ("failed", gettext_lazy("The step fails")))),
    )  # fmt: skip

    def check(self, params: Mapping[str, Any], user: User) -> None:
        if "people" in params:
            people = people_named(params["people"], user)
            if params.get("needed", 1) > len(people):
                said = _("%(needed)s people have to agree, but only %(count)s are asked.")
                raise Invalid(said % {"needed": params["needed"], "count": len(people)}, field="needed")

    def begin(self, call: Call) -> Begun:
        self.check(call.params, call.user)
        people = people_named(call.params["people"], call.user)
        hours, at_expiry = call.params["hours"], call.params["at_expiry"]
        question = call.params["question"].strip() or call.row.step
        approval = StepApproval.objects.create(
            step_run=call.row, question=question[:500], needed=call.params["needed"],
            expires_at=now() + timedelta(hours=hours) if hours else None,
            at_expiry="" if at_expiry == "failed" else at_expiry,
        )  # fmt: skip
        approval.people.set(people)
        title = wording.message(
            "pipeline.asked", name=call.run.pipeline.name, number=call.run.number, question=question[:200]
        )
        for person in people:
            notify(
                person, "approval", title=title, url=f"/pipelines/runs/{call.run.pk}/?step={call.row.step}",
                key=f"pipeline-approval-{approval.pk}",
            )  # fmt: skip
        return Begun(asks=True)

    def stop(self, row: StepRun) -> None:
        """A question holds nothing."""


def people_named(text: str, user: User) -> list[User]:
    """The people who are asked.

    Raises:
        Invalid: names that nobody has, all at once.
    """
    names = list(dict.fromkeys(re.split(r"[\s,;]+", text.strip()))) if text.strip() else [user.username]
    if len(names) > MOST_PEOPLE:
        raise Invalid(_("Ask at most %(most)s people.") % {"most": MOST_PEOPLE}, field="people")
    found = {person.username: person for person in User.objects.filter(username__in=names, is_active=True)}
    if gone := [name for name in names if name not in found]:
        raise Invalid(_("Nobody is called %(names)s.") % {"names": ", ".join(gone)}, field="people")
    return [found[name] for name in names]
