"""Resource groups: machines kept for development, training or other kinds of jobs, at certain hours."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import User
from accounts.services import audit
from aiplatform.lib.errors import Invalid, NameTaken, Refusals
from workers.core import kinds as registry
from workers.core import scheduler_wakeup
from workers.core.count_classes import ENVIRONMENT
from workers.core.models import Node, ResourceGroup, ResourceWindow
from workers.planning import planner_input
from workers.planning.planner import windows

MAX_WINDOWS = 10
CLASS_LABELS = {ENVIRONMENT.name: gettext_lazy("Workspace")}
"""Count classes that machines can be kept for: each stands for all kinds of jobs that count as it."""


@dataclass(frozen=True)
class Hours:
    """One window: weekdays on which it begins (0 is Monday), local times; equal times are a whole day."""

    weekdays: frozenset[int]
    begins: time
    ends: time


@dataclass(frozen=True)
class Opening:
    """Present state of a group. `until` is when it changes, None where it never does or the group is closed."""

    is_open: bool
    until: datetime | None


def kind_choices() -> list[tuple[str, str]]:
    """(name, label) of what machines can be kept for: kinds of jobs that people submit, and classes of them."""
    return [(name, label) for name, label in _kind_labels().items() if registry.has_submittable([name])]


def _kind_labels() -> dict[str, str]:
    """The labels of all kinds, and of the classes that are no kind themselves."""
    labels = {name: registry.label_of(name) for name in registry.names()}
    return labels | {name: str(label) for name, label in CLASS_LABELS.items() if name not in labels}


def list_unusable() -> list[ResourceGroup]:
    """Groups that reserve nodes for work that no user can submit: nothing ever starts there in their hours."""
    return [group for group in ResourceGroup.objects.order_by("name") if not registry.has_submittable(group.kinds)]


@transaction.atomic
def save(
    group: ResourceGroup | None,
    *,
    name: str,
    nodes: Collection[Node],
    kinds: Collection[str],
    hours: Sequence[Hours] = (),
    by: User | None = None,
) -> ResourceGroup:
    """Create a resource group (None) or change one. It decides only about starts; running work continues.

    Args:
        kinds: names of job kinds, or of a class of them, that may start there.
        hours: empty keeps the machines for these kinds at all hours.

    Raises:
        NameTaken: another group has this name.
        Invalid: no machine, no kind, a kind that nobody knows or can submit, or hours without a day.
    """
    check(group, name=name, nodes=nodes, kinds=kinds, hours=hours)
    row = group or ResourceGroup()
    row.name, row.kinds = name.strip(), sorted(set(kinds))
    row.save()
    row.nodes.set(nodes)
    row.windows.all().delete()
    ResourceWindow.objects.bulk_create(
        [
            ResourceWindow(group=row, weekdays=sorted(window.weekdays), begins=window.begins, ends=window.ends)
            for window in hours
        ]
    )
    verb = "resource_group_changed" if group else "resource_group_made"
    audit.record(by, verb, row, nodes=sorted(node.name for node in nodes), kinds=row.kinds)
    scheduler_wakeup.notify()
    return row


def check(
    group: ResourceGroup | None,
    *,
    name: str | None = None,
    nodes: Collection[Node] | None = None,
    kinds: Collection[str] | None = None,
    hours: Sequence[Hours] = (),
) -> None:
    """Refuse at once the given values that `save` refuses, and write nothing."""
    refusals = Refusals()
    with refusals:
        if name is not None:
            _check_name(group, name.strip())
    with refusals:
        if nodes is not None and not nodes:
            raise Invalid(_("Choose at least one node."), field="nodes")
    with refusals:
        unknown = sorted(set(kinds or ()) - _kind_labels().keys())
        if kinds is not None and (unknown or not registry.has_submittable(kinds)):
            raise Invalid(_unusable(unknown or sorted(kinds)), field="kinds")
    with refusals:
        if len(hours) > MAX_WINDOWS:
            raise Invalid(_("At most %(most)s windows.") % {"most": MAX_WINDOWS}, field="windows")
        if any(not window.weekdays or not window.weekdays <= frozenset(range(7)) for window in hours):
            raise Invalid(_("Choose at least one weekday for each window."), field="windows")
    refusals.end()


def _check_name(group: ResourceGroup | None, name: str) -> None:
    if not name:
        raise Invalid(_("Enter a name for the resource group."), field="name")
    others = ResourceGroup.objects.filter(name__iexact=name)
    if (others.exclude(pk=group.pk) if group else others).exists():
        raise NameTaken(_("A resource group named %(name)s already exists.") % {"name": name})


def _unusable(kinds: Sequence[str]) -> str:
    """What is wrong with kinds that machines cannot be kept for; none at all is wrong, too."""
    if not kinds:
        return _("Choose at least one kind of job; otherwise nothing could start there.")
    label = _kind_labels().get(kinds[0])
    if label is None:
        return _("Unknown job kind %(kind)s.") % {"kind": kinds[0][:20]}
    return _(
        "Jobs of kind “%(kind)s” cannot be submitted, so nodes reserved for them would be idle. Choose kinds "
        "that can be submitted."
    ) % {"kind": label}


@transaction.atomic
def delete(group: ResourceGroup, *, by: User | None = None) -> None:
    """Let everybody start on its machines again."""
    audit.record(by, "resource_group_deleted", group)
    group.delete()
    scheduler_wakeup.notify()


def opening(group: ResourceGroup, moment: datetime) -> Opening:
    """Whether the group's machines are kept for its kinds at `moment`, and until when."""
    spans, offset = planner_input.resource_group_of(group).windows, planner_input.utc_offset_s(moment)
    if not windows.is_open(spans, moment.timestamp(), offset):
        return Opening(False, None)
    ends = windows.closes_at(spans, moment.timestamp(), offset)
    if ends is None:
        return Opening(True, None)
    until = datetime.fromtimestamp(ends, UTC)
    until -= timedelta(
        seconds=planner_input.utc_offset_s(until) - offset
    )  # the clocks are put forward or back before that
    return Opening(True, until.astimezone(moment.tzinfo))
