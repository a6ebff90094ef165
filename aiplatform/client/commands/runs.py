"""`aip runs`: find, compare and mark runs by their parameters and metrics."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

from aiplatform.client import output
from aiplatform.client.commands import run_comparison
from aiplatform.client.errors import USAGE, ClientError
from aiplatform.client.http import Client
from aiplatform.client.options import YES, fields, flag, option, repeated
from aiplatform.client.output import Column, columns
from aiplatform.client.verbs import Verb, show_one
from aiplatform.lib import tables

FIELDS = columns(
    "Id=id, Name=name, State=state, Owner=owner, Training=training, Parent run=parent, Experiment=experiment, "
    "Visible to=visibility, Archived=archived|mark, Starred=starred|mark, Tags=tags|tags, "
    "Created=created_at|ago, Notes=notes",
    tags=lambda tags: ", ".join(_format_tag(*pair) for pair in tags.items()),
)
PARAMETERS = columns("name, runs, differs")
VIEWS = columns("id, name, owner, visible to=visibility, filter=query.filter")


def _number(_: Client, text: str) -> int:
    if not text.isdecimal():
        raise ClientError(f"{text} is not a run number. See: aip runs list 'name = {text}'", USAGE)
    return int(text)


NARROWING = (
    option("filter", nargs="?", help="such as 'params.lr < 0.01 and best(val/accuracy) > 0.9'"),
    flag("--archived", default=None, convert=lambda _: "true", help="include archived runs"),
)
TABLE = (
    *NARROWING,
    repeated("--column", metavar="NAME",
             help="state, params.lr, best(val/accuracy), tags.x …; can be repeated; default: the most informative"),
    option("--sort", metavar="COLUMN", help="sort by this column, ascending; descending as --sort=-COLUMN"),
)  # fmt: skip
RUNS = option("runs", nargs="+", metavar="run", find=_number, help="id")


def _list(args: argparse.Namespace) -> None:
    table = args.client.get("runs/table/", **_view_fields(args), **fields(args, TABLE))
    rows = [
        {"run": run, "values": [column["values"][index] for column in table["columns"]]}
        for index, run in enumerate(table["runs"])
    ]
    rows = rows[: args.limit] if args.limit > 0 else rows
    if args.json:
        names = [column["name"] for column in table["columns"]]
        output.as_json([{**row["run"], "values": dict(zip(names, row["values"]))} for row in rows])
        return
    if args.csv:
        _print_csv(table["columns"], rows)
        return
    heads: list[Column] = columns("id=run.id, name=run.name")
    heads += [(column["label"], _cell(index, column["kind"])) for index, column in enumerate(table["columns"])]
    output.table(rows, heads, empty="No such runs. Trainings, custom jobs and scripts that report create runs.")
    if len(rows) < table["total"]:
        output.say(f"{len(rows)} of {table['total']} runs.")


def _view_fields(args: argparse.Namespace) -> dict[str, Any]:
    """Query of the saved view for which the options have no value."""
    if not args.view:
        return {}
    rows = [row for row in args.client.pages("run-views/") if args.view in (row["name"], str(row["id"]))]
    if not rows:
        raise ClientError(f"View {args.view} not found. See: aip runs views")
    if len(rows) > 1:
        ids = ", ".join(str(row["id"]) for row in rows)
        raise ClientError(f"Several views are named {args.view}. Use one of their ids: {ids}.", USAGE)
    view = rows[0]["query"]
    query = {
        "filter": view["filter"], "archived": view["archived"] and "true", "column": view["columns"],
        "sort": view["sort"],
    }  # fmt: skip
    return {name: value for name, value in query.items() if value and not getattr(args, name)}


def _cell(index: int, kind: str) -> Callable[[Any], object]:
    def cell(row: Any) -> object:
        value = row["values"][index]
        if kind == "time":
            return output.ago(value)
        if kind == "duration":
            return output.duration(value)
        if kind == "tags":
            return ", ".join(value or ())
        return run_comparison.shorten(value)

    return cell


def _format_tag(key: str, value: str) -> str:
    return f"{key}={value}" if value else key


def _print_csv(heads: Sequence[Any], rows: Sequence[Any]) -> None:
    lines = ([row["run"]["id"], row["run"]["name"], *map(_plain, row["values"])] for row in rows)
    tables.write_csv(sys.stdout, ["id", "name", *(column["name"] for column in heads)], lines)


def _plain(value: Any) -> Any:
    return ", ".join(value) if isinstance(value, list) else value


def _show(args: argparse.Namespace) -> None:
    row = args.client.get(f"runs/{_number(args.client, args.number)}/")
    params = [(f"  {key}", _param(key)) for key in row["params"]]
    metrics = [(f"  {key}", _metric(key)) for key in row["figures"]]
    show_one(args, row, [*FIELDS, *params, *metrics])


def _param(key: str) -> Callable[[Any], object]:
    return lambda row: run_comparison.shorten(row["params"][key])


def _metric(key: str) -> Callable[[Any], object]:
    return lambda row: run_comparison.format_metric(row["figures"][key])


CHANGES = (
    repeated("--tag", metavar="TAG[=VALUE]", field="add_tags", help="add a tag; can be repeated"),
    repeated("--no-tag", metavar="TAG", field="drop_tags", help="remove a tag; can be repeated"),
    option("--star", action=argparse.BooleanOptionalAction, help="star or unstar them"),
    option("--archive", action=argparse.BooleanOptionalAction, field="archived",
           help="archive or unarchive them"),
    option("--visible", choices=["private", "group", "public"], field="visibility",
           help="visibility of metrics, parameters and notes"),
    option("--notes", help="Markdown; replaces the notes"),
    option("--experiment", metavar="NAME", help="experiment name"),
)  # fmt: skip


def _check_changes(args: argparse.Namespace) -> dict[str, Any]:
    if not fields(args, CHANGES):
        raise ClientError("Specify a change, for example --tag golden. See: aip runs change --help", USAGE)
    return {}


NOUNS = {
    "runs": (
        Verb("list", "List runs as the Experiments table does, newest first.", (
            *TABLE,
            option("--view", metavar="NAME", help="filter, columns and order of a saved view"),
            flag("--csv", help="as CSV, with all digits"),
            option("-n", "--limit", type=int, default=50,
                   help="maximum number of rows (50); 0: all, at most 1,000"),
        ), run=_list),
        Verb("columns", "List available columns: parameters, metrics and tags.", NARROWING,
             get="runs/table/", send={"column": ["state"]}, rows="known", table=PARAMETERS,
             empty="These runs have no parameters, metrics or tags."),
        Verb("views", "List saved views of the table.",
             get="run-views/", table=VIEWS, empty="No saved views. Save one on the Experiments page."),
        Verb("delete-view", "Delete a saved view.", (option("view", help="id"), YES), delete="run-views/{view}/",
             confirm="Delete view {args.view}?", done="Deleted view {args.view}."),
        Verb("show", "Show one run with its parameters and metrics.",
             (option("number", metavar="run", help="id"),), run=_show),
        Verb("compare", "Compare up to 20 runs.",
             (option("runs", nargs="+", metavar="run", field="run", find=_number, help="id"), run_comparison.ALL),
             get="training/comparison/", show=run_comparison.print_comparison),
        Verb("change", "Change runs: tags, notes, star, visibility.", (RUNS, *CHANGES),
             post="runs/bulk/", send=_check_changes,
             done=lambda args, row: f"Changed {row['changed']} run{'' if row['changed'] == 1 else 's'}."),
    ),
}  # fmt: skip
