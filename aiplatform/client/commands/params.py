"""`aip params`: saved parameter sets and their versions."""

from __future__ import annotations

import argparse
from typing import Any

from aiplatform.client import output
from aiplatform.client.commands import lookup
from aiplatform.client.commands.verbs import Noun, Nouns, Parent, done, paging, pairs, show_list, show_one
from aiplatform.client.errors import USAGE, ClientError
from aiplatform.client.output import Column

SEEN_BY = ["private", "group", "public"]
COLUMNS: list[Column] = [
    ("id", "id"),
    ("name", "name"),
    ("preset", "preset"),
    ("version", "version"),
    ("parameters", "params"),
    ("owner", "owner"),
    ("seen by", "visibility"),
    ("description", "description"),
]
VERSIONS: list[Column] = [
    ("version", "number"),
    ("parameters", "params"),
    ("made by", "made_by"),
    ("made", lambda row: output.ago(row.get("made_at"))),
]


def add(nouns: Nouns, parent: Parent) -> None:
    params = Noun(nouns, parent, "params", "Parameter sets. Train with one: aip train submit --params NAME")
    verb = params.verb("list", params_list, "List parameter sets.")
    verb.add_argument("-q", "--search", help="only those whose name, preset or description contains this")
    paging(verb)
    params.verb("show", show, "Show one set.").add_argument("set", help="id or name")
    params.verb("versions", versions, "List what a set said at each time.").add_argument("set", help="id or name")
    verb = params.verb("save", save, "Save parameters under a name.")
    verb.add_argument("name")
    verb.add_argument("--preset", help="a name from `aip train presets`")
    verb.add_argument("--training", metavar="ID", help="take those of this training, by id or name")
    _content(verb)
    verb = params.verb("change", change, "Change a set; other parameters become a new version.")
    verb.add_argument("set", help="id or name")
    verb.add_argument("--name", help="a new name")
    _content(verb)
    params.verb("delete", delete, "Remove a parameter set.").add_argument("set", help="id or name")


def _content(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--description")
    verb.add_argument("--visibility", choices=SEEN_BY, help="who sees and uses it: you, your groups, everybody")
    verb.add_argument("-p", "--param", action="append", metavar="NAME=VALUE", help="repeat for more")


def params_list(args: argparse.Namespace) -> None:
    rows = args.client.pages("training/params/", limit=args.limit, search=args.search)
    show_list(args, rows, COLUMNS, empty="No parameter sets. Save one: aip params save NAME --preset PRESET -p lr=0.01")


def show(args: argparse.Namespace) -> None:
    fields: list[Column] = [(heading.capitalize(), source) for heading, source in COLUMNS]
    show_one(args, _row(args), fields)


def versions(args: argparse.Namespace) -> None:
    rows = args.client.get(f"training/params/{lookup.parameter_set(args.client, args.set)}/versions/")
    show_list(args, rows, VERSIONS)


def save(args: argparse.Namespace) -> None:
    if bool(args.preset) == bool(args.training):
        raise ClientError("Give --preset with its name, or --training whose parameters are taken.", USAGE)
    body: dict[str, Any] = {"name": args.name, "preset": args.preset, "params": {}}
    if args.training:
        row = args.client.get(f"training/jobs/{lookup.training(args.client, args.training)}/")
        if not row["preset"]:
            raise ClientError("That training runs own code; a parameter set is for a preset.", USAGE)
        body |= {"preset": row["preset"], "params": row["params"]}
    body["params"] |= pairs(args.param)
    made = args.client.post("training/params/", body | _given(args), once=True)
    done(args, made, f"Saved as parameter set {made['id']}.")


def change(args: argparse.Namespace) -> None:
    row = _row(args)
    body = {name: row[name] for name in ("name", "preset", "description", "params")} | _given(args)
    body |= {"name": args.name} if args.name else {}
    body["params"] = row["params"] | pairs(args.param)
    changed = args.client.call("PUT", f"training/params/{row['id']}/", body=body)
    done(args, changed, f"{output.clean(changed['name'])} is now at version {changed['version']}.")


def delete(args: argparse.Namespace) -> None:
    args.client.delete(f"training/params/{lookup.parameter_set(args.client, args.set)}/")
    done(args, {}, "The parameter set is removed.")


def _row(args: argparse.Namespace) -> Any:
    return args.client.get(f"training/params/{lookup.parameter_set(args.client, args.set)}/")


def _given(args: argparse.Namespace) -> dict[str, Any]:
    return {name: getattr(args, name) for name in ("description", "visibility") if getattr(args, name) is not None}
