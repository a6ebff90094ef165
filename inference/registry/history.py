"""The history of a model: its rows of the audit trail, for all who may see the model."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext_lazy as _

from accounts.models import AuditEntry, User
from accounts.services import audit
from inference.registry.models import Model, ModelVersion

KIND = Model._meta.label_lower
SHOWN = 200

VERBS = {
    "model_version_made": _("created a version of"),
    "model_changed": _("changed the model"),
    "model_card_changed": _("edited the model card of"),
    "model_stage_moved": _("moved the stage of a version of"),
    "model_alias_moved": _("moved an alias of"),
    "model_alias_removed": _("removed an alias of"),
    "model_rule_made": _("created a promotion rule for"),
    "model_rule_removed": _("removed a promotion rule of"),
    "model_exported": _("exported a version of"),
    "model_version_deleted": _("deleted a version of"),
    "model_deleted": _("deleted the model"),
    "service_trial_started": _("started a rollout at"),
    "service_trial_changed": _("changed the rollout share at"),
    "service_trial_promoted": _("promoted the rollout at"),
    "service_trial_rolled_back": _("rolled back the rollout at"),
    "service_trial_halted": _("halted the rollout at"),
    "model_approval_rule_changed": _("changed who approves the models of"),
}
#: What the facts of these acts are called, for people.
FACTS = {
    "version": _("version"),
    "stage": _("stage"),
    "from": _("from"),
    "alias": _("alias"),
    "rule": _("rule"),
    "evaluation": _("evaluation"),
    "value": _("value"),
    "run": _("run"),
    "source": _("source"),
    "second_person": _("approval by another user"),
}


def add(model: Model, by: User | None, verb: str, version: ModelVersion | None = None, **facts: object) -> None:
    """Record an action in the transaction of the action itself."""
    version_fact = {"version": f"v{version.number}"} if version else {}
    audit.record(
        by, verb, model, **version_fact, **{name: value for name, value in facts.items() if value not in (None, "")}
    )


def list_entries(model: Model) -> Sequence[AuditEntry]:
    """Return the newest actions on a model. The caller checks that the reader may see the model."""
    return list(AuditEntry.objects.filter(target_kind=KIND, target_id=str(model.pk))[:SHOWN])


def exports_of(version: ModelVersion) -> Sequence[AuditEntry]:
    """Who took a package of a version, newest first."""
    rows = AuditEntry.objects.filter(target_kind=KIND, target_id=str(version.model_id), verb="model_exported")
    return list(rows.filter(facts__version=f"v{version.number}")[:20])
