"""Every action a person can be allowed to do, and which preset role allows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Any

from django.utils.translation import gettext_lazy as _


class Action(StrEnum):
    """An action, named <room>.<verb>; a page or API route declares exactly one."""

    OVERVIEW_VIEW = "overview.view"
    SELF_MANAGE = "self.manage"  # own settings, tokens, password

    DATASETS_VIEW = "datasets.view"
    DATASETS_CREATE = "datasets.create"
    DATASETS_EDIT = "datasets.edit"
    DATASETS_DELETE = "datasets.delete"

    ANNOTATION_VIEW = "annotation.view"
    ANNOTATION_ANNOTATE = "annotation.annotate"
    ANNOTATION_MANAGE = "annotation.manage"

    TRAINING_VIEW = "training.view"
    TRAINING_SUBMIT = "training.submit"
    TRAINING_CONTROL = "training.control"

    MODELS_VIEW = "models.view"
    MODELS_MANAGE = "models.manage"
    EVALUATIONS_VIEW = "evaluations.view"
    EVALUATIONS_SUBMIT = "evaluations.submit"
    SERVICES_VIEW = "services.view"
    SERVICES_MANAGE = "services.manage"
    SERVICES_CALL = "services.call"

    JOBS_VIEW = "jobs.view"
    JOBS_SUBMIT = "jobs.submit"
    JOBS_CONTROL = "jobs.control"
    CLUSTER_VIEW = "cluster.view"
    CLUSTER_ADMINISTER = "cluster.administer"  # people, priorities and requests of clusters one was put in charge of

    JOBS_URGENT = "jobs.urgent"  # the tier before everybody else's work
    CLUSTER_MANAGE = "cluster.manage"
    TASKS_MANAGE = "tasks.manage"  # see and stop everybody's jobs
    PEOPLE_MANAGE = "people.manage"
    AUDIT_VIEW = "audit.view"  # who did what


_BY_NAME: Mapping[str, Action] = {action.value: action for action in Action}


def known_actions(names: Iterable[str]) -> frozenset[Action]:
    """Return the actions of these names, without those of other versions of the platform."""
    return _actions_named(tuple(names))


@lru_cache(maxsize=256)
def _actions_named(names: tuple[str, ...]) -> frozenset[Action]:
    """Return the actions of these names; cached, because every row of a table of accounts asks for a role's list."""
    return frozenset(_BY_NAME[name] for name in names if name in _BY_NAME)


ADMIN_ONLY = frozenset(
    {Action.CLUSTER_MANAGE, Action.TASKS_MANAGE, Action.PEOPLE_MANAGE, Action.AUDIT_VIEW, Action.JOBS_URGENT}
)
#: What everyone with any role may do.
EVERYONE = frozenset({Action.OVERVIEW_VIEW, Action.SELF_MANAGE})
ANNOTATION_PLATFORM = frozenset(
    {Action.OVERVIEW_VIEW, Action.SELF_MANAGE, Action.ANNOTATION_VIEW, Action.ANNOTATION_ANNOTATE}
)
AI_PLATFORM = frozenset(Action) - ADMIN_ONLY

SYSTEM_ADMIN, USER, ANNOTATOR = "System Admin", "User", "Annotator"
#: Preset roles: created by the system, never deleted.
PRESET_ROLES: Mapping[str, frozenset[Action]] = {
    SYSTEM_ADMIN: frozenset(Action),
    USER: AI_PLATFORM,
    ANNOTATOR: ANNOTATION_PLATFORM,
}

#: Former name of a preset role → its name; files and settings of older versions still use it.
FORMER_ROLE_NAMES: Mapping[str, str] = {"Annotation person": ANNOTATOR}

#: Every action in words, for the pages where roles are made.
ACTION_LABELS: Mapping[Action, Any] = {
    Action.OVERVIEW_VIEW: _("View the home page"),
    Action.SELF_MANAGE: _("Manage own account"),
    Action.DATASETS_VIEW: _("View datasets"),
    Action.DATASETS_CREATE: _("Create datasets and upload data"),
    Action.DATASETS_EDIT: _("Edit datasets"),
    Action.DATASETS_DELETE: _("Delete datasets"),
    Action.ANNOTATION_VIEW: _("View annotation projects"),
    Action.ANNOTATION_ANNOTATE: _("Annotate images"),
    Action.ANNOTATION_MANAGE: _("Manage annotation projects"),
    Action.TRAINING_VIEW: _("View training jobs"),
    Action.TRAINING_SUBMIT: _("Start training jobs"),
    Action.TRAINING_CONTROL: _("Pause, stop and restore training jobs"),
    Action.MODELS_VIEW: _("View models"),
    Action.MODELS_MANAGE: _("Upload, edit and delete models"),
    Action.EVALUATIONS_VIEW: _("View evaluations"),
    Action.EVALUATIONS_SUBMIT: _("Start evaluations"),
    Action.SERVICES_VIEW: _("View endpoints"),
    Action.SERVICES_MANAGE: _("Start and stop endpoints"),
    Action.SERVICES_CALL: _("Send images to endpoints"),
    Action.JOBS_VIEW: _("View jobs and the queue"),
    Action.JOBS_SUBMIT: _("Start jobs"),
    Action.JOBS_CONTROL: _("Pause, stop and restore jobs"),
    Action.JOBS_URGENT: _("Start urgent jobs"),
    Action.CLUSTER_VIEW: _("View nodes and devices"),
    Action.CLUSTER_ADMINISTER: _("Approve users and requests of the clusters they administer"),
    Action.CLUSTER_MANAGE: _("Manage clusters and nodes"),
    Action.TASKS_MANAGE: _("View and stop the jobs of all users"),
    Action.PEOPLE_MANAGE: _("Manage users, groups and roles"),
    Action.AUDIT_VIEW: _("View the audit log"),
}

#: Groups of actions on pages: the area of the platform, and where its actions begin in their names.
ACTION_GROUPS: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (_("Account"), ("overview.", "self.")),
    (_("Data"), ("datasets.",)),
    (_("Annotation"), ("annotation.",)),
    (_("Training"), ("training.",)),
    (_("Models"), ("models.", "evaluations.")),
    (_("Deploy"), ("services.",)),
    (_("Cluster"), ("jobs.", "cluster.")),
    (_("Admin"), ("tasks.", "people.", "audit.")),
)


def grouped_actions(actions: Iterable[Action]) -> list[tuple[Any, list[Action]]]:
    """Return the groups that have any of these actions, each with its label and its actions in order."""
    held = frozenset(actions)
    groups = [(label, [action for action in Action if action in held and action.value.startswith(prefixes)])
              for label, prefixes in ACTION_GROUPS]  # fmt: skip
    return [(label, own) for label, own in groups if own]
