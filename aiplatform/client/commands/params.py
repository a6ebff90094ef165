"""`aip params`: saved parameter sets and their versions."""

from __future__ import annotations

import argparse
from typing import Any

from aiplatform.client import output
from aiplatform.client.commands import lookup
from aiplatform.client.errors import USAGE, ClientError
from aiplatform.client.options import LIMIT, fields, option, pairs, repeated
from aiplatform.client.output import columns, titled
from aiplatform.client.verbs import Verb, done

COLUMNS = columns("id, name, preset, version, parameters=params, owner, visible to=visibility, description")
VERSIONS = columns("version=number, parameters=params, created by=made_by, created=made_at|ago")
SET = option("set", find=lookup.parameter_set, help="id or name")
DESCRIPTION = (
    option("--description"),
    option("--visibility", choices=["private", "group", "public"],
           help="visibility: you, your groups, all users"),
)  # fmt: skip
PARAM = repeated("-p", "--param", metavar="NAME=VALUE", help="can be repeated")
CONTENT = (*DESCRIPTION, PARAM)


def _save(args: argparse.Namespace) -> None:
    if bool(args.preset) == bool(args.training):
        raise ClientError("Specify --preset with its name, or --training to use its parameters.", USAGE)
    body: dict[str, Any] = {"name": args.name, "preset": args.preset, "params": {}}
    if args.training:
        row = args.client.get(f"training/jobs/{lookup.training(args.client, args.training)}/")
        if not row["preset"]:
            raise ClientError("That training runs custom code; parameter sets are for presets.", USAGE)
        body |= {"preset": row["preset"], "params": row["params"]}
    body["params"] |= pairs(args.param)
    row = args.client.post("training/params/", body | fields(args, DESCRIPTION), once=True)
    done(args, row, f"Saved as parameter set {row['id']}.")


def _change(args: argparse.Namespace) -> None:
    route = f"training/params/{lookup.parameter_set(args.client, args.set)}/"
    row = args.client.get(route)
    body = {name: row[name] for name in ("name", "preset", "description", "params")} | fields(args, DESCRIPTION)
    body |= {"name": args.name} if args.name else {}
    body["params"] = row["params"] | pairs(args.param)
    row = args.client.call("PUT", route, body=body)
    done(args, row, f"{output.clean(row['name'])} is now at version {row['version']}.")


NOUNS = {
    "params": (
        Verb("list", "List parameter sets.", (
            option("-q", "--search", help="only those whose name, preset or description contains this text"), LIMIT,
        ), get="training/params/", table=COLUMNS,
             empty="No parameter sets. Save one: aip params save NAME --preset PRESET -p lr=0.01"),
        Verb("show", "Show one set.", (SET,), get="training/params/{set}/", record=titled(COLUMNS)),
        Verb("versions", "List the versions of a parameter set.", (SET,),
             get="training/params/{set}/versions/", table=VERSIONS),
        Verb("save", "Save parameters under a name.", (
            option("name"),
            option("--preset", help="a name listed by `aip train presets`"),
            option("--training", metavar="ID", help="use those of this training, by id or name"),
            *CONTENT,
        ), run=_save),
        Verb("change", "Change a set; changed parameters become a new version.",
             (SET, option("--name", help="new name"), *CONTENT), run=_change),
        Verb("delete", "Delete a parameter set.", (SET,),
             delete="training/params/{set}/", done="The parameter set is deleted."),
    ),
}  # fmt: skip
