"""`aip evaluate sets`: parameters of evaluations under a name."""

from __future__ import annotations

import argparse
from typing import Any

from aiplatform.client import output
from aiplatform.client.commands import evaluations_scripted, lookup
from aiplatform.client.commands.verbs import Noun, Parent, done, paging, pairs, show_list, show_one
from aiplatform.client.output import Column

SEEN_BY = ["private", "group", "public"]
COLUMNS: list[Column] = [
    ("id", "id"),
    ("name", "name"),
    ("task", "task"),
    ("dataset", "dataset"),
    ("split", "split"),
    ("script", "start_file"),
    ("parameters", "params"),
    ("cards", "gpus_per_node"),
    ("owner", "owner"),
    ("seen by", "visibility"),
    ("description", "description"),
]


def add(evaluate: Noun, parent: Parent) -> None:
    sets = Noun(evaluate.verbs, parent, "sets", "Parameter sets. Use one: aip evaluate start MODEL --set NAME")
    verb = sets.verb("list", sets_list, "List evaluation parameter sets.")
    verb.add_argument("-q", "--search", help="only those whose name, description, dataset or task contains this")
    paging(verb)
    sets.verb("show", show, "Show one set.").add_argument("set", help="id or name")
    verb = sets.verb("save", save, "Save what an evaluation was begun with under a name.")
    verb.add_argument("name")
    verb.add_argument("--evaluation", required=True, type=int, metavar="ID", help="take those of this evaluation")
    _content(verb)
    verb = sets.verb("change", change, "Change a set; what is left out stays.")
    verb.add_argument("set", help="id or name")
    verb.add_argument("--name", help="a new name")
    _content(verb)
    sets.verb("delete", delete, "Remove a set.").add_argument("set", help="id or name")


def _content(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--description")
    verb.add_argument("--visibility", choices=SEEN_BY, help="who sees and uses it: you, your groups, everybody")
    verb.add_argument("--data", help="dataset version: its id, NAME, or NAME:VERSION; none for no dataset")
    verb.add_argument("--split", help="as `aip evaluate start` has it")
    verb.add_argument("--gpus", type=int, help="cards; 0 evaluates on the processor")
    verb.add_argument("--cpus", type=float, help="processor cores")
    verb.add_argument("-p", "--param", action="append", metavar="NAME=VALUE", help="repeat for more")
    evaluations_scripted.options(verb)


def sets_list(args: argparse.Namespace) -> None:
    rows = args.client.pages("evaluation-sets/", limit=args.limit, search=args.search)
    show_list(args, rows, COLUMNS, empty="No parameter sets. Save one: aip evaluate sets save NAME --evaluation ID")


def show(args: argparse.Namespace) -> None:
    fields: list[Column] = [(heading.capitalize(), source) for heading, source in COLUMNS]
    show_one(args, _row(args), fields)


def save(args: argparse.Namespace) -> None:
    begun = args.client.get(f"evaluations/{args.evaluation}/")
    body = {"name": args.name, "evaluation": args.evaluation} | _given(args, begun["params"])
    made = args.client.post("evaluation-sets/", body, once=True)
    done(args, made, f"Saved as parameter set {made['id']}.")


def change(args: argparse.Namespace) -> None:
    row = _row(args)
    body = _given(args, row["params"]) | ({"name": args.name} if args.name else {})
    changed = args.client.call("PATCH", f"evaluation-sets/{row['id']}/", body=body)
    done(args, changed, f"{output.clean(changed['name'])} is changed.")


def delete(args: argparse.Namespace) -> None:
    args.client.delete(f"evaluation-sets/{lookup.evaluation_set(args.client, args.set)}/")
    done(args, {}, "The parameter set is removed.")


def _row(args: argparse.Namespace) -> Any:
    return args.client.get(f"evaluation-sets/{lookup.evaluation_set(args.client, args.set)}/")


def _given(args: argparse.Namespace, params: dict[str, object]) -> dict[str, Any]:
    """What the options say; a parameter is put beside those that are there already."""
    named = {"gpus": "gpus_per_node"}
    options = ("description", "visibility", "split", "gpus", "cpus")
    body = {named.get(name, name): getattr(args, name) for name in options if getattr(args, name) is not None}
    if args.data is not None:
        body["version"] = None if args.data == "none" else lookup.version(args.client, args.data)
    body |= evaluations_scripted.fields(args)
    if args.param:
        body["params"] = params | pairs(args.param)
    return body
