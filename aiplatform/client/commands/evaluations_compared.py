"""`aip evaluate compare`: evaluations beside each other, and which differences may be chance."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from aiplatform.client import output
from aiplatform.client.commands.verbs import Noun
from aiplatform.client.errors import USAGE, ClientError
from aiplatform.client.output import Column

VERDICTS = {"better": "better", "worse": "worse", "no_difference": "not a difference"}


def add(evaluate: Noun) -> None:
    verb = evaluate.verb("compare", compare, "Compare two to six evaluations of the same images.")
    verb.add_argument("ids", nargs="+", metavar="id")
    verb.add_argument("--base", type=int, metavar="ID", help="measure the others against this one (the first)")
    verb = evaluate.verb("slices", slices, "Figures of parts of the images, of one evaluation or of two to six.")
    verb.add_argument("ids", nargs="+", metavar="id")
    verb.add_argument("--base", type=int, metavar="ID", help="measure the others against this one (the first)")
    verb.add_argument("-q", "--search", help="ask for images of your own: words in their path")
    verb.add_argument("--class-id", type=int, metavar="ID", help="ask for images of your own: a class on them")
    verb.add_argument("--split", help="ask for images of your own: a split")


def slices(args: argparse.Namespace) -> None:
    """Print a row for each part, worst first, a column for each evaluation."""
    _check(args.ids)
    asked = {"search": args.search, "class_id": args.class_id, "split": args.split}
    if len(args.ids) == 1:
        found = args.client.get(f"evaluations/{args.ids[0]}/slices/", **asked)
    else:
        found = args.client.get("evaluations/comparison/slices/", evaluation=args.ids, base=args.base, **asked)
    if args.json:
        output.as_json(found)
        return
    heads: list[Column] = [
        ("by", "by"), ("part", "name"), ("images", lambda row: f"{row['images']}{' (few)' if row['few'] else ''}"),
        ("figure", "figure"), *((number, _told(place)) for place, number in enumerate(args.ids)),
    ]  # fmt: skip
    output.table(found["slices"], heads, empty="All images are alike in what is known of them.")


def _check(ids: list[str]) -> None:
    if not all(word.isdecimal() for word in ids):
        raise ClientError("Give numbers of evaluations. See: aip evaluate list", USAGE)


def compare(args: argparse.Namespace) -> None:
    """Print a row for each figure, a column for each evaluation; then who is right where."""
    _check(args.ids)
    found = args.client.get("evaluations/comparison/", evaluation=args.ids, base=args.base)
    if args.json:
        output.as_json(found)
        return
    rows = found["evaluations"]
    heads: list[Column] = [("", "key"), *((_head(row), _told(place)) for place, row in enumerate(rows))]
    told = [{"key": key, "values": [{"value": row["summary"].get(key)} for row in rows]} for key in found["only_told"]]
    output.table([*found["figures"], *told], heads, empty="They judged no images.")
    names = {row["id"]: row["name"] for row in rows}
    for one in found["mcnemar"]:
        output.say(
            f"{output.clean(names[one['evaluation']])}: of {found['images']} images {one['only_other']} right that "
            f"{output.clean(names[found['base']])} has wrong, {one['only_base']} the other way round; "
            f"McNemar p {one['p']:.3g}: {VERDICTS[one['verdict']]}"
        )


def _head(row: Mapping[str, Any]) -> str:
    return f"{row['id']} {row['name']}"


def _told(place: int) -> Callable[[Any], object]:
    def value(row: Any) -> object:
        if not row["values"]:
            return ""
        own = row["values"][place]
        if own["value"] is None:
            return ""
        off = own.get("difference")
        if off is None and own.get("low") is not None and "images" in row:
            return f"{own['value']:.4f} ({own['low']:.4f} … {own['high']:.4f})"
        if off is None:
            return f"{own['value']:.4f}"
        half = (off["high"] - off["low"]) / 2
        return f"{own['value']:.4f} ({off['value']:+.4f} ± {half:.4f}: {VERDICTS[off['verdict']]})"

    return value
