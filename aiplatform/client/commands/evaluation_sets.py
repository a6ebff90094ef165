"""`aip evaluate sets`: parameters of evaluations under a name."""

from __future__ import annotations

import argparse
from typing import Any

from aiplatform.client import output
from aiplatform.client.commands import evaluations_scripted, lookup
from aiplatform.client.commands.params import DESCRIPTION, PARAM
from aiplatform.client.http import Client
from aiplatform.client.options import LIMIT, fields, option, pairs
from aiplatform.client.output import columns, titled
from aiplatform.client.verbs import Group, Verb, done

COLUMNS = columns(
    "id, name, task, dataset, split, script=start_file, parameters=params, cards=gpus_per_node, owner, "
    "seen by=visibility, description"
)


def _find_version(client: Client, name: str) -> int | None:
    return None if name == "none" else lookup.version(client, name)


SET = option("set", find=lookup.evaluation_set, help="id or name")
RESOURCES = (
    option("--data", field="version", find=_find_version,
           help="dataset version: its id, NAME, or NAME:VERSION; none for no dataset"),
    option("--split", help="as `aip evaluate start` has it"),
    option("--gpus", type=int, field="gpus_per_node", help="cards; 0 evaluates on the processor"),
    option("--cpus", type=float, help="processor cores"),
)  # fmt: skip
CONTENT = (*DESCRIPTION, *RESOURCES, PARAM, *evaluations_scripted.OPTIONS)


def _save(args: argparse.Namespace) -> None:
    evaluation = args.client.get(f"evaluations/{args.evaluation}/")
    body = {"name": args.name, "evaluation": args.evaluation} | _content(args, evaluation["params"])
    row = args.client.post("evaluation-sets/", body, once=True)
    done(args, row, f"Saved as parameter set {row['id']}.")


def _change(args: argparse.Namespace) -> None:
    row = args.client.get(f"evaluation-sets/{lookup.evaluation_set(args.client, args.set)}/")
    body = _content(args, row["params"]) | ({"name": args.name} if args.name else {})
    row = args.client.call("PATCH", f"evaluation-sets/{row['id']}/", body=body)
    done(args, row, f"{output.clean(row['name'])} is changed.")


def _content(args: argparse.Namespace, params: dict[str, object]) -> dict[str, Any]:
    """Fields for the options; parameters are added to those of the set."""
    body = fields(args, (*DESCRIPTION, *RESOURCES)) | evaluations_scripted.script_fields(args)
    return body | ({"params": params | pairs(args.param)} if args.param else {})


SETS = Group("sets", "Parameter sets. Use one: aip evaluate start MODEL --set NAME", (
    Verb("list", "List evaluation parameter sets.", (
        option("-q", "--search", help="only those whose name, description, dataset or task contains this"), LIMIT,
    ), get="evaluation-sets/", table=COLUMNS,
         empty="No parameter sets. Save one: aip evaluate sets save NAME --evaluation ID"),
    Verb("show", "Show one set.", (SET,), get="evaluation-sets/{set}/", record=titled(COLUMNS)),
    Verb("save", "Save what an evaluation was begun with under a name.", (
        option("name"),
        option("--evaluation", required=True, type=int, metavar="ID", help="take those of this evaluation"),
        *CONTENT,
    ), run=_save),
    Verb("change", "Change a set; what is left out stays.",
         (SET, option("--name", help="a new name"), *CONTENT), run=_change),
    Verb("delete", "Remove a set.", (SET,),
         delete="evaluation-sets/{set}/", done="The parameter set is removed."),
))  # fmt: skip
