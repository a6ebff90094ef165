"""The command palette: pages, objects and commands that match a query, best first."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from aiplatform.frame.navigation import navigation
from aiplatform.lib import fuzzy, palette, search

MAX_RESULTS = 20
OBJECT_SCORE = 0.6  # of objects found by another column than their name
COMMAND_SCORE = 0.9  # of commands on objects: the query names both
NEXT_STEP_SCORE = 0.5  # of those that are offered because the query names the object


def pages(user: Any) -> list[dict[str, Any]]:
    """Return the pages of the navigation that this user may open."""
    return [
        {
            "name": str(tab["label"]),
            "icon": tab["icon"],
            "url": tab["url"],
            "kind": str(entry["label"]) if str(entry["label"]) != str(tab["label"]) else _("Page"),
        }
        for group in navigation("", user.actions())
        for entry in group["entries"]
        for tab in entry["tabs"]
    ]


def _page_score(query: str, page: dict[str, Any]) -> float:
    """Return the score of a page: by its name, by that of its entry, and by its URL, which keeps former names."""
    return max(
        fuzzy.score(query, page["name"]),
        fuzzy.score(query, f"{page['kind']} {page['name']}") - 0.05,
        fuzzy.score(query, page["url"].strip("/")) - 0.2,
    )


def results(user: Any, text: str) -> list[dict[str, Any]]:
    """Return what the palette shows for a query: [{group, kind, icon, name, url, …}], best first.

    `group` is "page", "command" or "object". Commands further have `post`, `fields`, `question` and `press`. Without a
    query these are all pages and the commands that need no object.

    Args:
        text: cut at 100 characters.
    """
    query = text.replace("\x00", "").strip()[: search.MAX_QUERY_LENGTH]
    own_pages = [row | {"group": "page"} for row in pages(user)]
    command = {"group": "command", "kind": _("Command")}
    own_commands = [row | command for row in palette.commands(user)]
    if not query:
        return own_commands + own_pages
    scored = [(_page_score(query, row), row) for row in own_pages]
    scored += [(fuzzy.score(query, row["name"]), row) for row in own_commands]
    scored += [
        (COMMAND_SCORE if named else NEXT_STEP_SCORE, row | command)
        for row, named in palette.commands_on_objects(user, query)
    ]
    scored += [
        (max(fuzzy.score(query, row["name"]), OBJECT_SCORE), {**row, "group": "object"})
        for row in search.search(user, query)
    ]
    scored.sort(key=lambda pair: -pair[0])
    return [row for score, row in scored if score > 0][:MAX_RESULTS]
