"""What the facts of an audit entry are called, for people. Scripts read the names themselves."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from accounts.access.permissions import ACTION_LABELS, FORMER_ROLE_NAMES, PRESET_ROLES
from accounts.models import ApiToken

LABELS: dict[str, Any] = {
    "actions": gettext_lazy("permissions"),
    "added": gettext_lazy("added"),
    "address": gettext_lazy("address"),
    "after": gettext_lazy("after"),
    "before": gettext_lazy("before"),
    "borrows": gettext_lazy("borrows"),
    "by": gettext_lazy("by"),
    "cards": gettext_lazy("GPUs"),
    "cluster": gettext_lazy("cluster"),
    "clusters": gettext_lazy("clusters"),
    "code": gettext_lazy("reason"),
    "cpus_max": gettext_lazy("max. cores"),
    "cpus_min": gettext_lazy("min. cores"),
    "datasets": gettext_lazy("datasets"),
    "description": gettext_lazy("description"),
    "device": gettext_lazy("device"),
    "email": gettext_lazy("e-mail"),
    "enabled": pgettext_lazy("fact", "on"),
    "expires_at": gettext_lazy("expires"),
    "fields": gettext_lazy("fields"),
    "fingerprint": gettext_lazy("fingerprint"),
    "for_s": gettext_lazy("after seconds"),
    "group": gettext_lazy("group"),
    "groups": gettext_lazy("groups"),
    "guaranteed": gettext_lazy("guaranteed"),
    "holders": gettext_lazy("holder"),
    "hours": gettext_lazy("hours"),
    "approves_environments": gettext_lazy("workspaces require approval"),
    "is_active": gettext_lazy("active"),
    "issuer": gettext_lazy("identity provider"),
    "jobs": gettext_lazy("jobs"),
    "kind": gettext_lazy("kind"),
    "kinds": gettext_lazy("kinds"),
    "known": gettext_lazy("name known"),
    "least": gettext_lazy("from severity"),
    "left": gettext_lazy("left"),
    "level": gettext_lazy("level"),
    "max_runtime_hours": gettext_lazy("maximum run time (h)"),
    "default_disk_gib": gettext_lazy("default disk limit (GiB)"),
    "max_disk_gib": gettext_lazy("maximum disk limit (GiB)"),
    "max_pause_hours": gettext_lazy("maximum pause (h)"),
    "made": gettext_lazy("new account"),
    "members": gettext_lazy("members"),
    "memory_max_mib": gettext_lazy("max. memory (MiB)"),
    "memory_min_mib": gettext_lazy("min. memory (MiB)"),
    "method": gettext_lazy("method"),
    "models": gettext_lazy("models"),
    "moved": gettext_lazy("moved"),
    "name": gettext_lazy("name"),
    "nickname": gettext_lazy("nickname"),
    "nodes": gettext_lazy("nodes"),
    "others": gettext_lazy("others"),
    "owners": gettext_lazy("owners"),
    "per user": gettext_lazy("per user"),
    "person": gettext_lazy("user"),
    "phone": gettext_lazy("phone"),
    "projects": gettext_lazy("annotation projects"),
    "removed": gettext_lazy("removed"),
    "roles": gettext_lazy("roles"),
    "rows": gettext_lazy("rows"),
    "scope": gettext_lazy("scope"),
    "send": gettext_lazy("sent"),
    "services": gettext_lazy("endpoints"),
    "severity": gettext_lazy("severity"),
    "stopped": gettext_lazy("stopped"),
    "subject": gettext_lazy("about"),
    "threshold": gettext_lazy("threshold"),
    "to": gettext_lazy("to"),
    "trainings": gettext_lazy("trainings"),
    "until": gettext_lazy("until"),
    "username": gettext_lazy("username"),
    "way": gettext_lazy("method"),
    "why": gettext_lazy("reason"),
}


_RIGHTS: dict[str, Any] = {action.value: label for action, label in ACTION_LABELS.items()}
#: What single values of a fact are called; apps above add theirs by `register_values`.
VALUES: dict[str, Mapping[str, Any]] = {
    **dict.fromkeys(("actions", "before", "after"), _RIGHTS),  # a changed role tells its rights before and after
    "fields": LABELS,
    "roles": {name: gettext_lazy(FORMER_ROLE_NAMES.get(name, name)) for name in (*PRESET_ROLES, *FORMER_ROLE_NAMES)},
    "level": {"view": gettext_lazy("view"), "annotate": gettext_lazy("annotate"), "use": gettext_lazy("use"),
              "manage": gettext_lazy("manage")},
    "scope": dict(ApiToken.Scope.choices),
}  # fmt: skip


def register_values(fact: str, labels: Mapping[str, Any]) -> None:
    """Register labels for single values of `fact`; called from AppConfig.ready()."""
    VALUES[fact] = labels


def register_names(labels: Mapping[str, Any]) -> None:
    """Register labels for facts of other apps' actions; called from AppConfig.ready()."""
    LABELS.update(labels)


def to_texts(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the facts of an entry as texts: [("roles", "User, viewer")]; times in the reader's zone."""
    return [(_name(name), _to_text(value, VALUES.get(name, {}))) for name, value in facts.items()]


def _name(name: str) -> str:
    return str(LABELS.get(name, name.replace("_", " ")))


def _to_text(value: Any, labels: Mapping[str, Any]) -> str:
    """Return a value as text."""
    if isinstance(value, Mapping):
        return "; ".join(f"{_name(name)}: {_to_text(item, VALUES.get(name, {}))}" for name, item in value.items())
    if isinstance(value, list):
        return ", ".join(_to_text(item, labels) for item in value) or "–"
    if isinstance(value, bool):
        return str(_("yes") if value else _("no"))
    if isinstance(value, str) and (moment := _moment(value)):
        return f"{timezone.localtime(moment):%Y-%m-%d %H:%M %Z}"
    return "–" if value in (None, "") else str(labels.get(str(value), value))


def _moment(text: str) -> datetime | None:
    """Return a stored time with its zone; None for any other text."""
    try:
        moment = parse_datetime(text) if len(text) > 18 and text[4:5] == "-" else None
    except ValueError:
        return None
    return moment if moment is not None and timezone.is_aware(moment) else None
