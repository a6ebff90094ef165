"""`aip model stage|alias|history …`: what the registry knows beyond files."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from aiplatform.client import output
from aiplatform.client.commands import lookup, run_comparison
from aiplatform.client.commands.verbs import Noun, done, show_list
from aiplatform.client.output import Column

STAGES = ("candidate", "approved", "archived")
VERSION = "version id, NAME, NAME:VERSION or NAME@ALIAS"

HISTORY: list[Column] = [
    ("when", lambda row: output.ago(row["at"])),
    ("who", lambda row: row["actor"] or "platform"),
    ("act", "verb"),
    ("facts", lambda row: ", ".join(f"{name}={value}" for name, value in row["facts"].items())),
]

RULES: list[Column] = [
    ("id", "id"),
    ("when", lambda row: f"{row['metric']} {'>=' if row['at_least'] else '<='} {row['bound']:g}"),
    ("data", lambda row: f"{row['version_label']} {row['split']}".strip()),
    ("better than", "better_than"),
    ("gives", lambda row: ", ".join(word for word in (row["gives_alias"], row["gives_stage"]) if word)),
    ("last said", lambda row: row["verdicts"][0]["sentence"] if row["verdicts"] else ""),
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
    verb = models.verb("rules", rules, "Show the promotion rules of a model.")
    verb.add_argument("model", help="id or name")
    verb = models.verb("promote-when", promote_when, "Make a promotion rule: a figure on data gives alias or stage.")
    verb.add_argument("model", help="id or name")
    verb.add_argument("metric", help="such as ap50, see the page of an evaluation")
    bound = verb.add_mutually_exclusive_group(required=True)
    bound.add_argument("--at-least", type=float, help="lowest value that is enough")
    bound.add_argument("--at-most", type=float, help="highest value that is enough, for losses")
    verb.add_argument("--data", required=True, help="dataset version: its id, NAME, or NAME:VERSION")
    verb.add_argument("--split", default="", help="split that is measured on; all images when left out")
    verb.add_argument("--better-than", default="", metavar="ALIAS", help="and better than the version of this alias")
    verb.add_argument("--alias", default="", help="alias that the version gets")
    verb.add_argument("--approve", action="store_true", help="the version gets the stage approved")
    verb = models.verb("forget-rule", forget_rule, "Remove a promotion rule; what it gave stays.")
    verb.add_argument("model", help="id or name")
    verb.add_argument("rule", type=int, help="number of the rule, see rules")
    verb = models.verb("compare", compare, "Compare versions of a model: what they are, cost, reached.")
    verb.add_argument("model", help="id or name")
    verb.add_argument("--version", type=int, action="append", metavar="N", help="repeat for more; the newest four")
    verb.add_argument("--base", type=int, metavar="N", help="measure the others against this one")
    verb.add_argument("--all", action="store_true", help="also what does not differ")
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


def rules(args: argparse.Namespace) -> None:
    rows = args.client.get(f"models/{lookup.model(args.client, args.model)}/rules/")
    show_list(args, rows, RULES, empty="No rules.")


def promote_when(args: argparse.Namespace) -> None:
    at_least = args.at_least is not None
    fields = {
        "metric": args.metric,
        "bound": args.at_least if at_least else args.at_most,
        "at_least": at_least,
        "version": lookup.version(args.client, args.data),
        "split": args.split,
        "better_than": args.better_than,
        "gives_alias": args.alias,
        "gives_stage": "approved" if args.approve else "",
    }
    model = lookup.model(args.client, args.model)
    row = args.client.post(f"models/{model}/rules/", fields, once=True)
    done(args, row, f"Rule {row['id']} judges evaluations that end from now on.")


def forget_rule(args: argparse.Namespace) -> None:
    args.client.delete(f"models/{lookup.model(args.client, args.model)}/rules/{args.rule}/")
    done(args, {}, f"Rule {args.rule} is removed.")


def history(args: argparse.Namespace) -> None:
    rows = args.client.get(f"models/{lookup.model(args.client, args.model)}/history/")
    show_list(args, rows, HISTORY, empty="Nothing was changed since the history is kept.")


def compare(args: argparse.Namespace) -> None:
    route = f"models/{lookup.model(args.client, args.model)}/comparison/"
    found = args.client.get(route, version=args.version, base=args.base)
    if args.json:
        output.as_json(found)
        return
    heads: list[Column] = [("", "key"), *((f"v{number}", _cell(at)) for at, number in enumerate(found["versions"]))]
    rows = [row for row in found["rows"] if row["differs"] or args.all]
    output.table(rows, heads, empty="They differ in nothing.")


def _cell(at: int) -> Callable[[Any], object]:
    def told(row: Any) -> object:
        value, off = row["values"][at], row["differences"][at]
        text = run_comparison.short(output.text(value))
        return f"{text} ({off:+.4g})" if off else text

    return told
