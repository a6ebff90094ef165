"""`aip model stage|alias|history …`: what the registry knows beyond files."""

from __future__ import annotations

import argparse

from aiplatform.cli.client import output
from aiplatform.cli.client.commands import lookup
from aiplatform.cli.client.commands.verbs import Noun, done, show_list
from aiplatform.cli.client.output import Column

STAGES = ("candidate", "approved", "archived")
VERSION = "version id, NAME, NAME:VERSION or NAME@ALIAS"

HISTORY: list[Column] = [
    ("when", lambda row: output.ago(row["at"])),
    ("who", lambda row: row["actor"] or "platform"),
    ("act", "verb"),
    ("facts", lambda row: ", ".join(f"{name}={value}" for name, value in row["facts"].items())),
]


def add(models: Noun) -> None:
    verb = models.verb("stage", stage, "Move a version to another stage: candidate, approved, archived.")
    verb.add_argument("model", help=VERSION)
    verb.add_argument("stage", choices=STAGES)
    verb.add_argument("--reason", required=True, help="why; others read it in the history")
    verb = models.verb("alias", alias, "Let an alias stand for a version, or take it away.")
    verb.add_argument("model", help=VERSION)
    verb.add_argument("alias", help="such as champion; one that is there moves")
    verb.add_argument("--remove", action="store_true", help="take it away; MODEL is the model's id or name")
    verb = models.verb("history", history, "Show who did what to a model.")
    verb.add_argument("model", help="id or name")


def stage(args: argparse.Namespace) -> None:
    version = lookup.model_version(args.client, args.model)
    fields = {"stage": args.stage, "reason": args.reason}
    row = args.client.post(f"model-versions/{version}/stage/", fields, once=True)
    done(args, row, f"{row['model_name']} v{row['number']} is {row['stage']}.")


def alias(args: argparse.Namespace) -> None:
    if args.remove:
        model = lookup.model(args.client, args.model)
        args.client.delete(f"models/{model}/aliases/{args.alias}/")
        done(args, {}, f"{args.alias} is removed.")
        return
    version = lookup.model_version(args.client, args.model)
    model = args.client.get(f"model-versions/{version}/")["model"]
    row = args.client.post(f"models/{model}/aliases/", {"name": args.alias, "version": version}, once=True)
    done(args, row, f"{args.alias} is v{row['number']} now.")


def history(args: argparse.Namespace) -> None:
    rows = args.client.get(f"models/{lookup.model(args.client, args.model)}/history/")
    show_list(args, rows, HISTORY, empty="Nothing was changed since the history is kept.")
