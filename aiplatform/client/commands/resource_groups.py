"""`aip resource-groups`: nodes reserved for some kinds of jobs, always or in windows of hours."""

from __future__ import annotations

import argparse
from typing import Any

from aiplatform.client import output
from aiplatform.client.commands import lookup
from aiplatform.client.errors import USAGE, ClientError
from aiplatform.client.options import LIMIT, YES, Option, flag, option, repeated
from aiplatform.client.output import columns, titled
from aiplatform.client.verbs import Verb

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def _parse_windows(texts: list[str]) -> list[dict[str, Any]]:
    return [_parse_window(text) for text in texts]


def _parse_window(text: str) -> dict[str, Any]:
    """Parse `"mon-fri,sun@21:00-06:00"` to the API's form.

    Raises:
        ClientError: it is written another way.
    """
    days, at, hours = text.lower().partition("@")
    begins, dash, ends = hours.partition("-")
    chosen: set[int] = set()
    try:
        for part in days.split(","):
            first, _dash, last = part.partition("-")
            begin, end = DAYS.index(first), DAYS.index(last or first)
            chosen |= {n % 7 for n in range(begin, end + 1 if end >= begin else end + 8)}
    except ValueError:
        chosen = set()
    if not (at and dash and begins and ends and chosen):
        raise ClientError(f"{text}: write a window as mon-fri@09:00-21:00.", USAGE)
    return {"weekdays": sorted(chosen), "begins": begins, "ends": ends}


def _format_window(row: dict[str, Any]) -> str:
    """Format a window of the API as `_parse_window` parses it: three and more days in a row as first-last."""
    runs: list[list[int]] = []
    for day in row["weekdays"]:
        if runs and day == runs[-1][-1] + 1:
            runs[-1].append(day)
        else:
            runs.append([day])
    days = [f"{DAYS[run[0]]}-{DAYS[run[-1]]}" if len(run) > 2 else ",".join(DAYS[n] for n in run) for run in runs]
    return f"{','.join(days)}@{row['begins']}-{row['ends']}"


def _hours(windows: list[dict[str, Any]]) -> str:
    return ", ".join(_format_window(window) for window in windows) or "always"


def _describe(args: argparse.Namespace, row: Any) -> str:
    return output.clean(
        f"{row['name']}: {', '.join(row['nodes'])} for {', '.join(row['kinds'])}, {_hours(row['windows'])}."
    )


def _options(*, required: bool) -> tuple[Option, ...]:
    return (
        repeated("--node", field="nodes", find=lookup.node, required=required, metavar="NAME",
                 help="a node: name or id; can be repeated"),
        repeated("--kind", field="kinds", required=required, metavar="KIND",
                 help="training, environment, service, …; can be repeated"),
        repeated("--window", field="windows", convert=_parse_windows, metavar="WHEN",
                 help="in the time zone of the site, e.g. mon-fri@09:00-21:00; can be repeated"),
    )  # fmt: skip


COLUMNS = columns("id, name, machines=nodes|joined, for=kinds|joined, hours=windows|hours", hours=_hours)
FIELDS = titled(COLUMNS) + columns("Time zone=time_zone")
GROUP = option("group", find=lookup.resource_group, help="name or id")

NOUNS = {
    "resource-groups": (
        Verb("list", "List resource groups.", (LIMIT,),
             get="resource-groups/", table=COLUMNS, empty="No reserved nodes."),
        Verb("show", "Show one resource group.", (GROUP,), get="resource-groups/{group}/", record=FIELDS),
        Verb("create", "Reserve nodes for kinds of jobs.", (option("name"), *_options(required=True)),
             post="resource-groups/", once=True, done=_describe),
        Verb("change", "Change a resource group; omitted values are kept.", (
            GROUP,
            option("--name", help="new name"),
            *_options(required=False),
            flag("--always", default=None, field="windows", convert=lambda _: [],
                 help="at all hours: remove all windows"),
        ), patch="resource-groups/{group}/", done=_describe,
             unchanged="Specify a change: --name, --node, --kind, --window or --always."),
        Verb("delete", "Delete a resource group; all jobs can "
                       "start on its nodes again.", (GROUP, YES), delete="resource-groups/{group}/",
             confirm="Delete resource group {args.group}?", done="Deleted resource group {args.group}."),
    ),
}  # fmt: skip
