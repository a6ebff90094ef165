"""`aip train compare`: trainings beside each other."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from aiplatform.client import output
from aiplatform.client.commands import lookup
from aiplatform.client.options import flag, option
from aiplatform.client.output import Column
from aiplatform.client.verbs import Verb

MAX_CHARACTERS = 60  # of a value
ALL = flag("--all", field="", help="also equal parameters, and used resources")


def print_comparison(args: argparse.Namespace, comparison: Mapping[str, Any]) -> None:
    """Print a response of `training/comparison/`: a column for each run, metrics as "newest (lowest … highest)"."""
    runs = comparison["runs"]
    columns: list[Column] = [("", "name"), *((run["name"], _value_of(index)) for index, run in enumerate(runs))]
    params = [row for row in comparison["rows"] if row["differs"] or args.all]
    metrics = [
        {"name": key, "values": [format_metric(run["figures"].get(key)) for run in runs]}
        for key in comparison["keys"]
        if args.all or not key.startswith("system/")
    ]
    output.table([*params, *metrics], columns, empty="The runs have the same parameters, and no metrics yet.")


def _value_of(index: int) -> Callable[[Any], Any]:
    return lambda row: shorten(row["values"][index])


def shorten(value: Any) -> Any:
    """A value with at most MAX_CHARACTERS: a custom network is a program."""
    text = output.text(value)
    return value if len(text) <= MAX_CHARACTERS else f"{text[: MAX_CHARACTERS - 1]}…"


def format_metric(metric: Mapping[str, Any] | None) -> str:
    """A metric as "newest (lowest … highest)"; nothing for None."""
    return f"{metric['last']:.4g} ({metric['lowest']:.4g} … {metric['highest']:.4g})" if metric else ""


COMPARE = Verb("compare", "Compare trainings: parameters and metrics.",
               (option("ids", nargs="+", metavar="id", field="training", find=lookup.training, help="id or name"), ALL),
               get="training/comparison/", show=print_comparison)  # fmt: skip
