"""The side bar: groups of entries, each shown to those who may use it.

Entries of pages that are there once stand here. An app adds those of its own registry to a group (`register`), as the
kinds of jobs do; they are asked for at every page.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.urls import Resolver404, resolve
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from accounts.access.permissions import Action
from aiplatform.lib.registry import Registry, dotted_name


@dataclass(frozen=True)
class Entry:
    """One line of the side bar. Current on its own page and on every page below `path` or one of `also`.

    `order` is its place in its group; equal ones stand as they come.
    """

    label: Any
    icon: str
    path: str
    needs: Action
    also: tuple[str, ...] = ()
    order: int = 100


@dataclass(frozen=True)
class Group:
    key: str
    label: Any
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Source:
    """Entries that an app adds to the group `key`."""

    key: str
    entries: Callable[[], Iterable[Entry]]


SOURCES: Registry[Source] = Registry("source of the side bar", name=lambda source: dotted_name(source.entries))
register = SOURCES.register  # called from AppConfig.ready()


GROUPS = (
    Group(
        "work",
        _("Work"),
        (
            Entry(_("Overview"), "overview", "/", Action.OVERVIEW_VIEW, order=0),
            Entry(_("Files"), "folder", "/files/", Action.JOBS_VIEW, order=25),
            Entry(_("Datasets"), "datasets", "/datasets/", Action.DATASETS_VIEW, ("/uploads/",), order=20),
            Entry(_("Annotation"), "annotation", "/annotation/", Action.ANNOTATION_VIEW, order=30),
            Entry(_("Experiments"), "chart", "/experiments/", Action.TRAINING_VIEW, ("/training/compare/",), order=45),
            Entry(_("Models"), "models", "/models/", Action.MODELS_VIEW, order=50),
        ),
    ),
    Group(
        "cluster",
        _("Cluster"),
        (
            Entry(_("Queue"), "queue", "/queue/", Action.JOBS_VIEW),
            Entry(_("Resources"), "resources", "/cluster/", Action.CLUSTER_VIEW),
            Entry(_("Usage"), "chart", "/usage/", Action.JOBS_VIEW),
            Entry(_("Ports"), "port", "/ports/", Action.JOBS_VIEW),
            Entry(pgettext_lazy("container", "Images"), "images", "/images/", Action.JOBS_VIEW),
        ),
    ),
    Group(
        "administer",
        _("Administration"),
        (
            Entry(_("Clusters"), "clusters", "/clusters/", Action.CLUSTER_MANAGE, ("/resource-groups/",)),
            Entry(_("All jobs"), "tasks", "/tasks/", Action.TASKS_MANAGE),
            Entry(_("Alerts"), "alarms", "/alarms/", Action.CLUSTER_MANAGE),
        ),
    ),
    Group(
        "people",
        _("User management"),
        (
            Entry(_("Console"), "gauge", "/people/console/", Action.PEOPLE_MANAGE, ("/people/registration/",)),
            Entry(_("Users"), "people", "/people/", Action.PEOPLE_MANAGE),
            Entry(_("Groups"), "group", "/people/groups/", Action.PEOPLE_MANAGE),
            Entry(_("Roles"), "role", "/people/roles/", Action.PEOPLE_MANAGE),
            Entry(_("Audit log"), "story", "/people/audit/", Action.AUDIT_VIEW),
        ),
    ),
)


@cache
def exists(path: str) -> bool:
    """Whether the site serves `path`: an entry without a page does not show."""
    try:
        resolve(path)
    except Resolver404:
        return False
    return True


def _length(entry: Entry, path: str) -> int:
    """Return how much of `path` the entry matches; 0: nothing."""
    if entry.path == "/":
        return int(path == "/")
    return max(len(start) if path.startswith(start) else 0 for start in (entry.path, *entry.also))


def entries_of(group: Group) -> list[Entry]:
    """The entries of a group with those that apps add to it, in their order."""
    added = [entry for source in SOURCES if source.key == group.key for entry in source.entries()]
    return sorted((*group.entries, *added), key=lambda entry: entry.order)


def _current(path: str, entries: Iterable[Entry]) -> Entry | None:
    """Return the entry that matches most of `path`: of /people/ and /people/roles/ the longer one."""
    best = max(entries, key=lambda entry: _length(entry, path))
    return best if _length(best, path) else None


def navigation(path: str, actions: Collection[Action]) -> list[dict[str, Any]]:
    """Groups with at least one entry this reader may use: [{key, label, entries: [{label, icon, url, current}]}]."""
    there = [(group, entries_of(group)) for group in GROUPS]
    here = _current(path, (entry for _group, entries in there for entry in entries))
    groups = []
    for group, every in there:
        entries = [
            {"label": entry.label, "icon": entry.icon, "url": entry.path, "current": entry is here}
            for entry in every
            if entry.needs in actions and exists(entry.path)
        ]
        if entries:
            groups.append({"key": group.key, "label": group.label, "entries": entries})
    return groups
