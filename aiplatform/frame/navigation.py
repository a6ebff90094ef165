"""Navigation: groups of entries in the side bar, each entry with tabs.

An entry is a subject (Datasets, Training, Nodes); its tabs are the lists of that subject, each with its own URL and
permission. The entry links its first tab that the reader may see; with one such tab no strip of tabs is drawn.
Tabs of pages that always exist are declared here. An app adds its own in AppConfig.ready():

    navigation.register(tabs)  # tabs() → [Tab("training", _("Presets"), "/training/presets/", Action.TRAINING_VIEW)]
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.urls import Resolver404, resolve
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from aiplatform.frame import badges
from aiplatform.lib.registry import Registry, dotted_name


@dataclass(frozen=True)
class Tab:
    """A page of an entry. It is current on its own page and on every page below `path` or one of `also`.

    Attributes:
        entry: key of the entry that it belongs to.
        order: place among the tabs of its entry.
        icon: symbol in the command palette; "" is that of the entry.
    """

    entry: str
    label: Any
    path: str
    needs: Action
    also: tuple[str, ...] = ()
    order: int = 100
    icon: str = ""


@dataclass(frozen=True)
class Entry:
    """One line of the side bar.

    Attributes:
        icon: symbol of icons.svg; no two entries have the same.
        shortcut: key that opens it after `g`.
        needs: permission to have the entry as such; None: any of its tabs is enough.
        otherwise: key of the entry that shows the tabs to readers without `needs`.
    """

    key: str
    label: Any
    icon: str
    shortcut: str
    needs: Action | None = None
    otherwise: str = ""


@dataclass(frozen=True)
class Group:
    """Entries below one heading. `product`: folded at first, and last, for readers who manage the cluster."""

    key: str
    label: Any
    entries: tuple[Entry, ...]
    product: bool = False


GROUPS = (
    Group("home", "", (Entry("home", _("Home"), "overview", "h"),)),
    Group(
        "data",
        _("Data"),
        (
            Entry("datasets", _("Datasets"), "datasets", "d"),
            Entry("annotation", _("Annotation"), "annotation", "a"),
        ),
        product=True,
    ),
    Group(
        "build",
        _("Build"),
        (
            Entry("training", _("Training"), "training", "t"),
            Entry("experiments", _("Experiments"), "flask", "e"),
            Entry("workspaces", _("Workspaces"), "environments", "w"),
        ),
        product=True,
    ),
    Group(
        "deploy",
        _("Deploy"),
        (
            Entry("models", _("Models"), "models", "m"),
            Entry("endpoints", _("Endpoints"), "inference", "i"),
            Entry("devices", _("Devices"), "smartphone", "v"),
            Entry("pipelines", _("Pipelines"), "pipeline", "p"),
        ),
        product=True,
    ),
    Group(
        "cluster",
        _("Cluster"),
        (
            Entry("jobs", _("Jobs"), "queue", "j"),
            Entry("nodes", _("Nodes"), "server", "n", needs=Action.CLUSTER_MANAGE, otherwise="jobs"),
            Entry("usage", _("Usage"), "bar-chart", "s", needs=Action.CLUSTER_MANAGE, otherwise="jobs"),
        ),
    ),
    Group(
        "admin",
        _("Admin"),
        (
            Entry("users", _("Users"), "people", "u"),
            Entry("alerts", _("Alerts"), "alarms", "l"),
        ),
    ),
)

TABS = (
    Tab("home", _("Home"), "/", Action.OVERVIEW_VIEW),
    Tab("datasets", _("Datasets"), "/datasets/", Action.DATASETS_VIEW, order=10),
    Tab("datasets", _("Files"), "/files/", Action.JOBS_VIEW, order=20, icon="folder"),
    Tab("annotation", _("Annotation"), "/annotation/", Action.ANNOTATION_VIEW),
    Tab("experiments", _("Runs"), "/experiments/", Action.TRAINING_VIEW, ("/training/compare/",), order=10),
    Tab("models", _("Models"), "/models/", Action.MODELS_VIEW, order=10),
    Tab("jobs", _("Queue"), "/queue/", Action.JOBS_VIEW, ("/arrays/",), order=10),
    Tab("jobs", _("All jobs"), "/tasks/", Action.TASKS_MANAGE, order=20, icon="tasks"),
    Tab("nodes", _("Nodes"), "/cluster/", Action.CLUSTER_VIEW, order=10, icon="server"),
    Tab("nodes", _("Add a node"), "/cluster/join/", Action.CLUSTER_MANAGE, order=20, icon="plus"),
    Tab("nodes", _("Resource groups"), "/resource-groups/", Action.CLUSTER_MANAGE, order=30, icon="lock"),
    Tab("usage", _("Usage"), "/usage/", Action.JOBS_VIEW, order=10, icon="bar-chart"),
    Tab("usage", _("Virtual clusters"), "/clusters/", Action.CLUSTER_MANAGE, order=20, icon="clusters"),
    Tab("users", _("Users"), "/people/", Action.PEOPLE_MANAGE, order=10),
    Tab("users", _("Groups"), "/people/groups/", Action.PEOPLE_MANAGE, order=20, icon="group"),
    Tab("users", _("Roles"), "/people/roles/", Action.PEOPLE_MANAGE, order=30, icon="role"),
    Tab("users", _("Registration"), "/people/registration/", Action.PEOPLE_MANAGE, order=40, icon="sign-in"),
    Tab("users", _("Audit log"), "/people/audit/", Action.AUDIT_VIEW, order=50, icon="story"),
    Tab("alerts", _("Alerts"), "/alarms/", Action.CLUSTER_MANAGE, order=10),
    Tab("alerts", _("Alert rules"), "/alarms/rules/", Action.CLUSTER_MANAGE, order=20, icon="sliders"),
    Tab("alerts", _("Recipients"), "/alarms/addresses/", Action.CLUSTER_MANAGE, order=30, icon="mail"),
)

SOURCES: Registry[Callable[[], Iterable[Tab]]] = Registry("source of tabs", name=dotted_name)
register = SOURCES.register  # called from AppConfig.ready(); the sources are read for every page


@cache
def exists(path: str) -> bool:
    """Return whether the site serves `path`: a tab without a page is not shown."""
    try:
        resolve(path)
    except Resolver404:
        return False
    return True


def all_tabs() -> list[Tab]:
    """Return the tabs of all entries that have a page, in the order within their entries."""
    added = (tab for source in SOURCES for tab in source())
    return sorted((tab for tab in (*TABS, *added) if exists(tab.path)), key=lambda tab: tab.order)


def all_entries() -> Iterator[Entry]:
    """Yield the entries of all groups."""
    for group in GROUPS:
        yield from group.entries


def current_tab(path: str, tabs: Iterable[Tab]) -> Tab | None:
    """Return the tab that matches most of `path`: of /people/ and /people/roles/ the longer one."""

    def length(tab: Tab) -> int:
        if tab.path == "/":
            return int(path == "/")
        return max(len(start) if path.startswith(start) else 0 for start in (tab.path, *tab.also))

    best = max(tabs, key=length, default=None)
    return best if best and length(best) else None


def navigation(path: str, actions: Collection[Action], counts: Mapping[str, int] | None = None) -> list[dict[str, Any]]:
    """Return the groups with the entries and tabs that a reader with these permissions may open.

    Each group is {key, label, folded, current, entries}, each entry {key, label, icon, url, shortcut, current, badge,
    badge_text, tabs}, each tab {label, icon, url, current}.

    Args:
        counts: what waits for the reader, by the key of the entry (aiplatform.frame.badges).
    """
    tabs = all_tabs()
    here = current_tab(path, tabs)
    moved = {entry.key: entry.otherwise for entry in all_entries() if entry.needs and entry.needs not in actions}
    by_entry: dict[str, list[Tab]] = {}
    for origin in (entry.key for entry in all_entries()):
        shown = by_entry.setdefault(moved.get(origin, origin), [])
        shown += [tab for tab in tabs if tab.entry == origin and tab.needs in actions]
    current = moved.get(here.entry, here.entry) if here else ""
    manages = Action.CLUSTER_MANAGE in actions
    groups = []
    for group in sorted(GROUPS, key=lambda group: manages and group.product):
        entries = [
            {
                "key": entry.key,
                "label": entry.label,
                "icon": entry.icon,
                "shortcut": entry.shortcut,
                "url": by_entry[entry.key][0].path,
                "current": entry.key == current,
                "badge": (counts or {}).get(entry.key, 0),
                "badge_text": badges.badge_text(entry.key, (counts or {}).get(entry.key, 0)),
                "tabs": [
                    {"label": tab.label, "icon": tab.icon or entry.icon, "url": tab.path, "current": tab is here}
                    for tab in by_entry[entry.key]
                ],
            }
            for entry in group.entries
            if entry.key not in moved and by_entry[entry.key]
        ]
        if entries:
            groups.append(
                {
                    "key": group.key,
                    "label": group.label,
                    "folded": manages and group.product,
                    "current": any(entry["current"] for entry in entries),
                    "entries": entries,
                }
            )
    return groups


def tab_strip(path: str, groups: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the tabs to draw on the page `path`: those of its entry if `path` is one of them and there are several."""
    for group in groups:
        for entry in group["entries"]:
            if entry["current"] and len(entry["tabs"]) > 1 and any(tab["url"] == path for tab in entry["tabs"]):
                tabs: list[dict[str, Any]] = entry["tabs"]
                return tabs
    return []


def current_entry(groups: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the entry of the page, None where no entry leads to it."""
    entries: Iterator[Mapping[str, Any]] = (entry for group in groups for entry in group["entries"])
    return next((entry for entry in entries if entry["current"]), None)


def place_below(request: Any, path: str) -> None:
    """Show the page of `request` as a part of the list at `path` although its URL is another one."""
    request.navigation_path = path


def side_key(path: str, groups: Iterable[Mapping[str, Any]]) -> tuple[object, ...]:
    """Return what the side bar shows as a key: readers with the same entries share one rendered side bar."""
    entries = (
        (group["key"], group["folded"], entry["url"], entry["current"], entry["badge"])
        for group in groups
        for entry in group["entries"]
    )
    return (path in ("/help/", "/about/"), *entries)
