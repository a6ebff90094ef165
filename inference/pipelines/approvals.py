"""Approvals: who may answer, which answers count, and what happens without one."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import wording
from aiplatform.lib.enqueue import enqueue
from aiplatform.lib.errors import DomainError, Invalid, NotAllowed
from aiplatform.lib.wording import Message
from inference.pipelines.kinds import Done
from inference.pipelines.models import PipelineRun, StepApproval, StepApprovalAnswer, StepRun
from workers.core.clock import now

PASSED, REFUSED = "passed", "refused"
ANSWERS = (PASSED, REFUSED)


class AlreadyAnswered(DomainError, code="already_answered"):
    """The question was decided, or this person has answered it."""


def outcome(step: StepRun) -> Done | Message | None:
    """Return the decision: one refusal refuses, enough approvals pass; after the deadline the default applies."""
    approval = StepApproval.objects.filter(step_run=step).first()
    if approval is None:
        return wording.message("pipeline.question_gone")
    answers = list(approval.answers.select_related("person"))
    if refused := next((answer for answer in answers if answer.answer == REFUSED), None):
        message = wording.message("pipeline.refused_by", person=refused.person.get_full_name(), comment=refused.comment)
        return Done(answer=REFUSED, message=message)
    if len(answers) >= approval.needed:
        people = ", ".join(
            answer.person.get_full_name() + (f" ({answer.comment})" if answer.comment else "") for answer in answers
        )
        return Done(answer=PASSED, message=wording.message("pipeline.passed_by", people=people))
    if approval.expires_at is not None and approval.expires_at <= now():
        if approval.at_expiry in ANSWERS:
            return Done(answer=approval.at_expiry, message=wording.message("pipeline.nobody_answered"))
        return wording.message("pipeline.nobody_answered")
    return None


def state(approval: StepApproval) -> tuple[str, Any]:
    """Return the state of a chip and its label: awaiting approval, approved or rejected, else that of the step."""
    step = approval.step_run
    answers = [row.answer for row in approval.answers.all()]
    if step.answer == REFUSED or REFUSED in answers:
        return "failed", _("Rejected")
    if step.answer == PASSED or len(answers) >= approval.needed:
        return "approved", _("Approved")
    if not step.is_final:
        return "asking", _("Awaiting approval")
    return step.state, step.get_state_display()


@transaction.atomic
def answer(approval: StepApproval, *, by: User, answer: str, comment: str = "") -> StepApprovalAnswer:
    """Store the answer of a user; the run continues by itself.

    Raises:
        Invalid: another answer than passed or refused.
        NotAllowed: the question is not put to this person.
        AlreadyAnswered.
    """
    if answer not in ANSWERS:
        raise Invalid(_("Result is passed or rejected."), field="answer")
    if len(comment) > 500:
        raise Invalid(_("The comment can have at most 500 characters."), field="comment")
    run_id = StepRun.objects.filter(pk=approval.step_run_id).values_list("run_id", flat=True).get()
    PipelineRun.objects.select_for_update().get(pk=run_id)
    step = StepRun.objects.get(pk=approval.step_run_id)
    if not approval.people.filter(pk=by.pk).exists():
        raise NotAllowed(_("This approval request is assigned to other users."))
    if step.state != StepRun.State.ASKING:
        raise AlreadyAnswered(_("This approval request is closed."))
    if approval.answers.filter(person=by).exists():
        raise AlreadyAnswered(_("You have already answered this request."))
    row = StepApprovalAnswer.objects.create(
        approval=approval, person=by, answer=answer, comment=comment.strip(), at=now()
    )
    wake(run_id)
    return row


def wake(run_id: int) -> None:
    """Mark a run as due in this transaction, and have it looked at once that commits."""

    PipelineRun.objects.filter(pk=run_id).update(is_due=True)
    enqueue("pipelines.advance", run_id=run_id)
