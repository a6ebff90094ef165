"""`aip runs`: find, compare and mark runs by what they were given and what they reached."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

from aiplatform.client import output
from aiplatform.client.commands import run_comparison
from aiplatform.client.commands.verbs import Noun, Nouns, Parent, done, show_one
from aiplatform.client.errors import USAGE, ClientError
from aiplatform.client.output import Column
from aiplatform.lib import tables

VISIBLE = ["private", "group", "public"]
FIELDS: list[Column] = [
    ("Id", "id"),
    ("Name", "name"),
    ("State", "state"),
    ("Owner", "owner"),
    ("Training", "training"),
    ("Part of run", "parent"),
    ("Experiment", "experiment"),
    ("Visible to", "visibility"),
    ("Archived", lambda row: "yes" if row["archived"] else ""),
    ("Starred", lambda row: "yes" if row["starred"] else ""),
    ("Tags", lambda row: ", ".join(_tag(*pair) for pair in row["tags"].items())),
    ("Made", lambda row: output.ago(row["created_at"])),
    ("Notes", "notes"),
]


def add(nouns: Nouns, parent: Parent) -> None:
    runs = Noun(nouns, parent, "runs", "Runs: trainings, commands and what scripts report, to find and to compare.")
    verb = runs.verb("list", listed, "List runs as the table of the page Experiments does, newest first.")
    narrowing(verb)
    verb.add_argument(
        "--column", action="append", metavar="NAME",
        help="state, params.lr, best(val/accuracy), tags.x …; repeat for more; without it those that tell most",
    )  # fmt: skip
    verb.add_argument("--sort", metavar="COLUMN", help="by this column, upwards; downwards as --sort=-COLUMN")
    verb.add_argument("--view", metavar="NAME", help="filter, columns and order of a saved view")
    verb.add_argument("--csv", action="store_true", help="as CSV, with all digits")
    verb.add_argument("-n", "--limit", type=int, default=50, help="at most this many rows (50); 0: all, at most 1,000")
    verb = runs.verb("columns", columns, "List what could be a column: parameters, figures and tags.")
    narrowing(verb)
    verb = runs.verb("views", views, "List saved views of the table.")
    verb = runs.verb("show", show, "Show one run: what it was given, and what it reached.")
    verb.add_argument("number", metavar="run", help="id")
    verb = runs.verb("compare", compare, "Compare up to 20 runs.")
    verb.add_argument("runs", nargs="+", metavar="run", help="id")
    verb.add_argument("--all", action="store_true", help="also parameters that do not differ, and what they used")
    verb = runs.verb("change", change, "Say something of runs: tags, notes, a star, who sees them.")
    verb.add_argument("runs", nargs="+", metavar="run", help="id")
    verb.add_argument("--tag", action="append", metavar="TAG[=VALUE]", help="add a tag; repeat for more")
    verb.add_argument("--no-tag", action="append", metavar="TAG", help="take a tag away; repeat for more")
    verb.add_argument("--star", action=argparse.BooleanOptionalAction, help="mark them for yourself, or no longer")
    verb.add_argument("--archive", action=argparse.BooleanOptionalAction, help="leave them out of the table, or not")
    verb.add_argument("--visible", choices=VISIBLE, help="who sees figures, parameters and notes besides you")
    verb.add_argument("--notes", help="Markdown; replaces the notes")
    verb.add_argument("--experiment", metavar="NAME", help="by whose name runs belong together")


def narrowing(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("filter", nargs="?", default="", help="as 'params.lr < 0.01 and best(val/accuracy) > 0.9'")
    verb.add_argument("--archived", action="store_true", help="also archived ones")


def listed(args: argparse.Namespace) -> None:
    found = _table(args)
    rows = [
        {"run": run, "values": [column["values"][place] for column in found["columns"]]}
        for place, run in enumerate(found["runs"])
    ]
    rows = rows[: args.limit] if args.limit > 0 else rows
    if args.json:
        names = [column["name"] for column in found["columns"]]
        output.as_json([{**row["run"], "values": dict(zip(names, row["values"], strict=True))} for row in rows])
        return
    if args.csv:
        _as_csv(found["columns"], rows)
        return
    heads: list[Column] = [("id", "run.id"), ("name", "run.name")]
    heads += [(column["label"], _cell(place, column["kind"])) for place, column in enumerate(found["columns"])]
    output.table(rows, heads, empty="No such runs. A training, a command or a script that reports makes one.")
    if len(rows) < found["total"]:
        output.say(f"{len(rows)} of {found['total']} runs.")


def _table(args: argparse.Namespace) -> Any:
    asked: dict[str, Any] = {
        "filter": args.filter or None, "archived": "true" if args.archived else None,
        "column": args.column or None, "sort": args.sort,
    }  # fmt: skip
    if args.view:
        kept = _view(args)["query"]
        asked = {
            "filter": asked["filter"] or kept["filter"] or None,
            "archived": "true" if args.archived or kept["archived"] else None,
            "column": asked["column"] or kept["columns"] or None,
            "sort": asked["sort"] or kept["sort"] or None,
        }
    return args.client.get("runs/table/", **asked)


def _view(args: argparse.Namespace) -> Any:
    found = [row for row in args.client.pages("run-views/") if args.view in (row["name"], str(row["id"]))]
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(str(row["id"]) for row in found)
        raise ClientError(f"Several views are called {args.view}. Give one of their ids: {ids}.", USAGE)
    raise ClientError(f"There is no view {args.view}. See: aip runs views")


def _cell(place: int, kind: str) -> Callable[[Any], object]:
    def value(row: Any) -> object:
        given = row["values"][place]
        if kind == "time":
            return output.ago(given)
        if kind == "duration":
            return output.duration(given)
        if kind == "tags":
            return ", ".join(given or ())
        return run_comparison.short(given)

    return value


def _tag(key: str, value: str) -> str:
    return f"{key}={value}" if value else key


def _as_csv(heads: Sequence[Any], rows: Sequence[Any]) -> None:
    lines = ([row["run"]["id"], row["run"]["name"], *map(_plain, row["values"])] for row in rows)
    tables.write_csv(sys.stdout, ["id", "name", *(column["name"] for column in heads)], lines)


def _plain(value: Any) -> Any:
    return ", ".join(value) if isinstance(value, list) else value


def columns(args: argparse.Namespace) -> None:
    found = args.client.get(
        "runs/table/", filter=args.filter or None, archived="true" if args.archived else None, column=["state"]
    )
    if args.json:
        output.as_json(found["known"])
        return
    heads: list[Column] = [("name", "name"), ("runs", "runs"), ("differs", "differs")]
    output.table(found["known"], heads, empty="These runs have no parameters, figures or tags.")


def views(args: argparse.Namespace) -> None:
    rows = list(args.client.pages("run-views/"))
    if args.json:
        output.as_json(rows)
        return
    heads: list[Column] = [
        ("id", "id"), ("name", "name"), ("owner", "owner"), ("visible to", "visibility"), ("filter", "query.filter"),
    ]  # fmt: skip
    output.table(rows, heads, empty="No saved views. The page Experiments keeps them.")


def show(args: argparse.Namespace) -> None:
    row = args.client.get(f"runs/{_number(args.number)}/")
    fields: list[Column] = [*FIELDS]
    fields += [(f"  {key}", _given(key)) for key in row["params"]]
    fields += [(f"  {key}", _reached(key)) for key in row["figures"]]
    show_one(args, row, fields)


def _given(key: str) -> Callable[[Any], object]:
    return lambda row: run_comparison.short(row["params"][key])


def _reached(key: str) -> Callable[[Any], object]:
    return lambda row: run_comparison.told(row["figures"][key])


def compare(args: argparse.Namespace) -> None:
    run_comparison.beside(args, args.client.get("training/comparison/", run=[_number(word) for word in args.runs]))


def change(args: argparse.Namespace) -> None:
    said = {
        "add_tags": args.tag, "drop_tags": args.no_tag, "star": args.star, "archived": args.archive,
        "visibility": args.visible, "notes": args.notes, "experiment": args.experiment,
    }  # fmt: skip
    said = {name: value for name, value in said.items() if value is not None}
    if not said:
        raise ClientError("Say what is to change, for instance --tag golden. See: aip runs change --help", USAGE)
    numbers = [_number(word) for word in args.runs]
    answer = args.client.post("runs/bulk/", {"runs": numbers, **said})
    done(args, answer, f"Changed {answer['changed']} run{'' if answer['changed'] == 1 else 's'}.")


def _number(word: str) -> int:
    if not word.isdecimal():
        raise ClientError(f"{word} is no number of a run. See: aip runs list 'name = {word}'", USAGE)
    return int(word)
