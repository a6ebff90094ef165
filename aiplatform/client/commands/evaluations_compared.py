"""`aip evaluate compare`: evaluations beside each other, and which differences may be chance."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from aiplatform.client import output
from aiplatform.client.errors import USAGE, ClientError
from aiplatform.client.options import fields, option
from aiplatform.client.output import Column
from aiplatform.client.verbs import Verb

VERDICTS = {"better": "better", "worse": "worse", "no_difference": "not a difference"}


def _slices(args: argparse.Namespace) -> None:
    """Print a row for each part, worst first, a column for each evaluation."""
    query = fields(args, SLICE)
    [ids] = fields(args, (IDS,)).values()
    if len(ids) == 1:
        comparison = args.client.get(f"evaluations/{ids[0]}/slices/", **query)
    else:
        comparison = args.client.get("evaluations/comparison/slices/", evaluation=ids, base=args.base, **query)
    if args.json:
        output.as_json(comparison)
        return
    heads: list[Column] = [
        ("by", "by"), ("part", "name"), ("images", lambda row: f"{row['images']}{' (few)' if row['few'] else ''}"),
        ("figure", "figure"), *((number, _cell(index)) for index, number in enumerate(ids)),
    ]  # fmt: skip
    output.table(comparison["slices"], heads, empty="All images are alike in what is known of them.")


def _compare(args: argparse.Namespace, comparison: Any) -> None:
    """Print a row for each metric, a column for each evaluation; then which one is right where."""
    rows = comparison["evaluations"]
    heads: list[Column] = [("", "key"), *((_head(row), _cell(index)) for index, row in enumerate(rows))]
    summary = [
        {"key": key, "values": [{"value": row["summary"].get(key)} for row in rows]} for key in comparison["only_told"]
    ]
    output.table([*comparison["figures"], *summary], heads, empty="They judged no images.")
    names = {row["id"]: row["name"] for row in rows}
    for test in comparison["mcnemar"]:
        output.say(
            f"{output.clean(names[test['evaluation']])}: of {comparison['images']} images {test['only_other']} right "
            f"that {output.clean(names[comparison['base']])} has wrong, {test['only_base']} the other way round; "
            f"McNemar p {test['p']:.3g}: {VERDICTS[test['verdict']]}"
        )


def _head(row: Mapping[str, Any]) -> str:
    return f"{row['id']} {row['name']}"


def _cell(index: int) -> Callable[[Any], object]:
    def value(row: Any) -> object:
        if not row["values"]:
            return ""
        own = row["values"][index]
        if own["value"] is None:
            return ""
        difference = own.get("difference")
        if difference is None and own.get("low") is not None and "images" in row:
            return f"{own['value']:.4f} ({own['low']:.4f} … {own['high']:.4f})"
        if difference is None:
            return f"{own['value']:.4f}"
        half = (difference["high"] - difference["low"]) / 2
        return f"{own['value']:.4f} ({difference['value']:+.4f} ± {half:.4f}: {VERDICTS[difference['verdict']]})"

    return value


def _number(text: str) -> str:
    if not text.isdecimal():
        raise ClientError("Give numbers of evaluations. See: aip evaluate list", USAGE)
    return text


IDS = option("ids", nargs="+", metavar="id", field="evaluation", find=lambda _, text: _number(text))
BASE = option("--base", type=int, metavar="ID", help="measure the others against this one (the first)")
SLICE = (
    option("-q", "--search", help="ask for images of your own: words in their path"),
    option("--class-id", type=int, metavar="ID", help="ask for images of your own: a class on them"),
    option("--split", help="ask for images of your own: a split"),
)
VERBS = (
    Verb("compare", "Compare two to six evaluations of the same images.", (IDS, BASE),
         get="evaluations/comparison/", show=_compare),
    Verb("slices", "Figures of parts of the images, of one evaluation or of two to six.", (IDS, BASE, *SLICE),
         run=_slices),
)  # fmt: skip
