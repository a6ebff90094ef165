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

MAX_USERS = 50


class GateStep(StepKind):
    """A rule over metrics. A metric that was not measured fails the gate; it never passes."""

    name = "gate"
    label = gettext_lazy("Gate")
    description = gettext_lazy("Chooses one of two branches by a rule on metrics, such as AP50 >= 0.85.")
    group = "judge"
    icon = "filter"
    acts = True  # a rule costs nothing
    inputs = (Port("figures", gettext_lazy("Metrics"), "figures", many=True),)
    outputs = (
        Port("passed", gettext_lazy("Passed"), "signal"),
        Port("refused", gettext_lazy("Rejected"), "signal"),
        Port("figures", gettext_lazy("Metrics"), "figures"),
    )
    params = (
        Param(
            "rule", gettext_lazy("Rule"), required=True,
            help=gettext_lazy("Metrics by name, + - * /, comparisons, and, or, not. champion.AP50 comes from a "
                              "comparison."),
        ),
    )  # fmt: skip

    def check(self, params: Mapping[str, Any], user: User) -> None:
        if params.get("rule"):
            _read(params["rule"], "rule")

    def start(self, call: Call) -> Begun:
        rule = _read(call.params["rule"], "rule")
        figures = spelled(by_name(call.inputs["figures"]), rule.names())
        passed = rule.value(figures)
        used = {name: figures[name] for name in sorted(rule.names())}
        text = ", ".join(f"{name} = {value:.4g}" if isinstance(value, float) else f"{name} = {value}"
                         for name, value in used.items())  # fmt: skip
        message = wording.message("pipeline.gate", rule=rule.text, values=text)
        outputs = {"figures": {"type": "figures", "values": figures, "label": call.row.step}}
        return Begun(done=Done(outputs, "passed" if passed else "refused", message))


def _read(text: str, field: str, *, switches: bool = False) -> expressions.Expression:
    try:
        return expressions.parse(text, switches=switches)
    except Invalid as exc:
        raise Invalid(exc.message, field=field) from None


def by_name(references: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the metrics by name; a later input overwrites an earlier one, each is also available as STEP.NAME."""
    values_by_name: dict[str, Any] = {}
    for figures_ref in references:
        values = figures_ref.get("values", {})
        values_by_name |= values
        if step := re.sub(r"[^a-z0-9_]", "_", str(figures_ref.get("step", ""))):
            values_by_name |= {f"{step}.{name}": value for name, value in values.items()}
    return values_by_name


def spelled(figures: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Add the names of a rule that differ from one metric only in case: AP50 is ap50."""
    renamed = dict(figures)
    for name in names:
        alike = [figure for figure in figures if figure.lower() == name.lower()]
        if name not in renamed and len(alike) == 1:
            renamed[name] = figures[alike[0]]
    return renamed


class ConditionStep(StepKind):
    """A rule over the run's parameters."""

    name = "condition"
    label = gettext_lazy("Condition")
    description = gettext_lazy("Chooses one of two branches by the parameters of the run, such as preset == “hog”.")
    group = "judge"
    icon = "branch"
    acts = True
    inputs = (Port("for", gettext_lazy("After"), "any", optional=True, many=True),)
    outputs = (Port("yes", gettext_lazy("Yes"), "signal"), Port("no", gettext_lazy("No"), "signal"))
    params = (
        Param(
            "rule", gettext_lazy("Rule"), required=True,
            help=gettext_lazy("Pipeline parameters by name, compared with numbers and quoted texts."),
        ),
    )  # fmt: skip

    def check(self, params: Mapping[str, Any], user: User) -> None:
        if params.get("rule"):
            _read(params["rule"], "rule", switches=True)

    def start(self, call: Call) -> Begun:
        rule = _read(call.params["rule"], "rule", switches=True)
        plain = {
            name: value for name, value in call.parameters.items() if not isinstance(value, list | dict)
        } | by_name(call.inputs.get("for", ()))
        return Begun(done=Done(answer="yes" if rule.value(plain) else "no"))


class ApproveStep(StepKind):
    """A question to people."""

    name = "approve"
    label = gettext_lazy("Approval")
    description = gettext_lazy(
        "Requests a decision from users, and continues with their answer. Uses no resources while it waits."
    )
    group = "people"
    icon = "person"
    acts = True
    inputs = (Port("for", gettext_lazy("Object to approve"), "any", optional=True, many=True),)
    outputs = (Port("passed", gettext_lazy("Passed"), "signal"), Port("refused", gettext_lazy("Rejected"), "signal"))
    params = (
        Param("question", gettext_lazy("Question"), form="long", default="",
              help=gettext_lazy("Text of the question.")),
        Param("people", gettext_lazy("Users"), default="", help=gettext_lazy(
            "Usernames separated by commas. Default: the owner of the run.")),
        Param("needed", gettext_lazy("Required approvals"), form="whole", default=1, low=1, high=10),
        Param("hours", gettext_lazy("Hours to respond"), form="number", default=0, low=0, high=8760,
              help=gettext_lazy("0: no limit.")),
        Param("at_expiry", gettext_lazy("If the deadline passes"), form="choice", default="refused", choices=(
            ("refused", gettext_lazy("Rejected")), ("passed", gettext_lazy("Passed")),
            ("failed", gettext_lazy("The step fails")))),
    )  # fmt: skip

    def check(self, params: Mapping[str, Any], user: User) -> None:
        if "people" in params:
            people = people_named(params["people"], user)
            if params.get("needed", 1) > len(people):
                message = _("%(needed)s approvals are required, but only %(count)s users are asked.")
                raise Invalid(message % {"needed": params["needed"], "count": len(people)}, field="needed")

    def start(self, call: Call) -> Begun:
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
    """Return the users who have to decide.

    Raises:
        Invalid: names without a user, all at once.
    """
    names = list(dict.fromkeys(re.split(r"[\s,;]+", text.strip()))) if text.strip() else [user.username]
    if len(names) > MAX_USERS:
        raise Invalid(_("At most %(most)s users can be asked.") % {"most": MAX_USERS}, field="people")
    users = {person.username: person for person in User.objects.filter(username__in=names, is_active=True)}
    if unknown := [name for name in names if name not in users]:
        raise Invalid(_("No user is named %(names)s.") % {"names": ", ".join(unknown)}, field="people")
    return [users[name] for name in names]
