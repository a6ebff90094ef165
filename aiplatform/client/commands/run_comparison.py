"""`aip train compare`: trainings beside each other."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from aiplatform.client import output
from aiplatform.client.commands import lookup
from aiplatform.client.commands.verbs import Noun
from aiplatform.client.output import Column

WIDEST = 60  # characters of a value


def add(train: Noun) -> None:
    verb = train.verb("compare", compare, "Compare trainings: what they were given, and what they reached.")
    verb.add_argument("ids", nargs="+", metavar="id", help="id or name")
    verb.add_argument("--all", action="store_true", help="also parameters that do not differ, and what they used")


def compare(args: argparse.Namespace) -> None:
    """Print a column for each training; figures as "newest (lowest … highest)"."""
    numbers = [lookup.training(args.client, word) for word in args.ids]
    beside(args, args.client.get("training/comparison/", training=numbers))


def beside(args: argparse.Namespace, found: Mapping[str, Any]) -> None:
    """Print an answer of `training/comparison/`."""
    if args.json:
        output.as_json(found)
        return
    runs = found["runs"]
    columns: list[Column] = [("", "name"), *((run["name"], _value_of(place)) for place, run in enumerate(runs))]
    given = [row for row in found["rows"] if row["differs"] or args.all]
    reached = [
        {"name": key, "values": [told(run["figures"].get(key)) for run in runs]}
        for key in found["keys"]
        if args.all or not key.startswith("system/")
    ]
    output.table([*given, *reached], columns, empty="They were given the same, and have reported nothing yet.")


def _value_of(place: int) -> Callable[[Any], Any]:
    return lambda row: short(row["values"][place])


def short(value: Any) -> Any:
    """A value as a column takes it: a network of one's own is a program."""
    text = output.text(value)
    return value if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"


def told(figure: Mapping[str, Any] | None) -> str:
    """A figure as "newest (lowest … highest)"; nothing for None."""
    return f"{figure['last']:.4g} ({figure['lowest']:.4g} … {figure['highest']:.4g})" if figure else ""
