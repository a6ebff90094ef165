"""Stages of versions: candidate, approved, archived, and who may approve.

Whoever may edit a model moves its versions. In groups that ask for it, a version of a member's model is approved by
another user than the one who made the version.
"""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction
from django.utils.timezone import now
from django.utils.translation import gettext as _

from accounts.models import User, UserGroup
from accounts.services import audit
from aiplatform.lib.errors import DomainError, Invalid
from inference.registry import history
from inference.registry.models import GroupApproval, Model, ModelVersion, Stage

MAX_REASON_LENGTH = 500
#: Where a version may go from each stage.
MOVES: Mapping[str, tuple[Stage, ...]] = {
    Stage.CANDIDATE: (Stage.APPROVED, Stage.ARCHIVED),
    Stage.APPROVED: (Stage.CANDIDATE, Stage.ARCHIVED),
    Stage.ARCHIVED: (Stage.CANDIDATE,),
}


class WrongStage(DomainError, code="wrong_stage", field="stage"):
    """The version cannot move there from where it is."""


class NeedsAnotherPerson(DomainError, code="needs_another_person", field="stage"):
    """A group asks for approval by another user."""


class Archived(DomainError, code="version_archived", field="model_version"):
    """An archived version must not be used for anything new."""


def check_in_use(version: ModelVersion, *, field: str = "model_version") -> None:
    """Raise an error for an archived version.

    Raises:
        Archived.
    """
    if version.is_archived:
        message = _("%(version)s is archived. Choose another version, or unarchive it on the model page.")
        raise Archived(message % {"version": version}, field=field)


def check_approval(version: ModelVersion, by: User) -> None:
    """Raise an error if the group requires the approval of another user.

    Raises:
        NeedsAnotherPerson.
    """
    maker = version.job.owner_id if version.job else version.created_by_id
    if by.pk not in (maker, version.created_by_id):
        return
    approval = GroupApproval.objects.filter(group__users=version.model.owner_id).select_related("group").first()
    if approval is not None:
        message = _(
            "You created %(version)s, and the group %(group)s requires approval by another user. Share the "
            "model with manage access, and ask that user."
        )
        raise NeedsAnotherPerson(message % {"version": version, "group": approval.group})


def _check_move(version: ModelVersion, to: str, reason: str) -> None:
    if to not in Stage.values:
        raise Invalid(_("The stage must be one of %(known)s.") % {"known": ", ".join(Stage.values)}, field="stage")
    if to not in MOVES[version.stage]:
        values = {"version": version, "stage": version.get_stage_display(), "known": ", ".join(MOVES[version.stage])}
        raise WrongStage(_("%(version)s is %(stage)s. Possible next stages: %(known)s.") % values)
    if not reason.strip():
        raise Invalid(_("Enter a reason; it is shown in the history of the model."), field="reason")
    if len(reason) > MAX_REASON_LENGTH:
        raise Invalid(_("Enter at most %(most)s characters.") % {"most": MAX_REASON_LENGTH}, field="reason")
    names = ", ".join(alias.name for alias in version.aliases.all())
    if to == Stage.ARCHIVED and names:
        message = _("%(version)s is %(names)s. Move or remove the alias first.")
        raise WrongStage(message % {"version": version, "names": names})


@transaction.atomic
def move(*, version: ModelVersion, to: str, by: User, reason: str, **facts: object) -> ModelVersion:
    """Move a version to another stage, with the reason, and write it down.

    Args:
        facts: what else stands in the history, such as the rule that asked for it.

    Raises:
        WrongStage: there is no way from its stage, or an alias stands on what is to be archived.
        NeedsAnotherPerson: see `check_approval`.
        Invalid: no such stage, or no reason.
    """
    Model.objects.select_for_update().get(pk=version.model_id)  # one after the other, with the aliases
    fresh: ModelVersion = ModelVersion.objects.select_related("model", "job").get(pk=version.pk)
    _check_move(fresh, to, reason)
    if to == Stage.APPROVED:
        check_approval(fresh, by)
    before, fresh.stage = fresh.stage, to
    fresh.stage_reason, fresh.stage_by, fresh.stage_at = reason.strip(), by, now()
    fresh.save(update_fields=["stage", "stage_reason", "stage_by", "stage_at"])
    why = {"why": fresh.stage_reason}
    history.add(fresh.model, by, "model_stage_moved", fresh, **{"from": before}, stage=to, **why, **facts)
    return fresh


def groups_asking() -> set[int]:
    """Numbers of the groups that ask for approval by another user."""
    return set(GroupApproval.objects.values_list("group_id", flat=True))


@transaction.atomic
def ask_in_group(*, group: UserGroup, second_person: bool, by: User) -> None:
    """Let a group ask for approval by another user, or no longer."""
    if second_person:
        _row, changed = GroupApproval.objects.get_or_create(group=group, defaults={"set_by": by})
    else:
        changed = bool(GroupApproval.objects.filter(group=group).delete()[0])
    if changed:
        audit.record(by, "model_approval_rule_changed", group, second_person=second_person)
