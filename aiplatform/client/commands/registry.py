"""`aip model stage|alias|history …`: stages, aliases, promotion rules and history of models."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from aiplatform.client import output
from aiplatform.client.commands import lookup, run_comparison
from aiplatform.client.options import either, flag, option, repeated
from aiplatform.client.output import Column, columns
from aiplatform.client.verbs import Verb, done

STAGES = ("candidate", "approved", "archived")
VERSION = "version id, NAME, NAME:VERSION or NAME@ALIAS"
MODEL_VERSION = option("model", field="model_version", find=lookup.model_version, help=VERSION)
MODEL = option("model", find=lookup.model, help="id or name")

HISTORY = columns(
    "when=at|ago, who=actor|actor, act=verb, facts=facts|pairs",
    actor=lambda name: name or "platform",
    pairs=lambda facts: ", ".join(f"{name}={value}" for name, value in facts.items()),
)
RULES = columns(
    "id, condition=|condition, data=|data, better than=better_than, assigns=|gains, last result=verdicts|newest",
    condition=lambda row: f"{row['metric']} {'>=' if row['at_least'] else '<='} {row['bound']:g}",
    data=lambda row: f"{row['version_label']} {row['split']}".strip(),
    gains=lambda row: ", ".join(gain for gain in (row["gives_alias"], row["gives_stage"]) if gain),
    newest=lambda verdicts: verdicts[0]["sentence"] if verdicts else "",
)


def _set_alias(args: argparse.Namespace) -> None:
    if args.remove:
        model = lookup.model(args.client, args.model)
        args.client.delete(f"models/{model}/aliases/{args.alias}/")
        done(args, {}, f"Removed {args.alias}.")
        return
    version = lookup.model_version(args.client, args.model)
    model = args.client.get(f"model-versions/{version}/")["model"]
    row = args.client.post(f"models/{model}/aliases/", {"name": args.alias, "version": version}, once=True)
    done(args, row, f"{args.alias} is v{row['number']} now.")


def _compare(args: argparse.Namespace, comparison: Any) -> None:
    versions = comparison["versions"]
    heads: list[Column] = [("", "key"), *((f"v{number}", _cell(index)) for index, number in enumerate(versions))]
    rows = [row for row in comparison["rows"] if row["differs"] or args.all]
    output.table(rows, heads, empty="No differences.")


def _cell(index: int) -> Callable[[Any], object]:
    def cell(row: Any) -> object:
        value, difference = row["values"][index], row["differences"][index]
        text = run_comparison.shorten(output.text(value))
        return f"{text} ({difference:+.4g})" if difference else text

    return cell


def _bound(args: argparse.Namespace) -> dict[str, Any]:
    return {"at_least": args.at_least is not None, "gives_stage": "approved" if args.approve else ""}


VERBS = (
    Verb("stage", "Change the stage of a version: candidate, approved, archived.", (
        MODEL_VERSION,
        option("stage", choices=STAGES),
        option("--reason", required=True, help="reason, shown in the history"),
    ), post="model-versions/{model_version}/stage/", once=True,
         done="{row[model_name]} v{row[number]} is {row[stage]}."),
    Verb("alias", "Set or remove an alias of a version.", (
        option("model", help=VERSION),
        option("alias", help="such as champion; an existing alias is moved"),
        flag("--remove", help="remove it; MODEL is the id or name of the model"),
    ), run=_set_alias),
    Verb("rules", "Show the promotion rules of a model.", (MODEL,),
         get="models/{model}/rules/", table=RULES, empty="No rules."),
    Verb("promote-when", "Create a promotion rule: a metric on a dataset assigns an alias or a stage.", (
        MODEL,
        option("metric", help="such as ap50, see the page of an evaluation"),
        either(option("--at-least", type=float, field="bound", help="minimum value"),
               option("--at-most", type=float, field="bound", help="maximum value, for losses"),
               required=True),
        option("--data", required=True, field="version", find=lookup.version,
               help="dataset version: id, NAME, or NAME:VERSION"),
        option("--split", default="", help="evaluation split; default: all images"),
        option("--better-than", default="", metavar="ALIAS", help="and better than the version with this alias"),
        option("--alias", default="", field="gives_alias", help="alias to assign"),
        flag("--approve", field="", help="assign the stage approved"),
    ), post="models/{model}/rules/", send=_bound, once=True,
         done="Rule {row[id]} applies to evaluations that complete from now on."),
    Verb("forget-rule", "Delete a promotion rule; assigned aliases and stages are kept.",
         (MODEL, option("rule", type=int, help="number of the rule, see rules")),
         delete="models/{model}/rules/{rule}/", done="Deleted rule {args.rule}."),
    Verb("compare", "Compare versions of a model.", (
        MODEL,
        repeated("--version", type=int, metavar="N", help="can be repeated; default: the newest four"),
        option("--base", type=int, metavar="N", help="baseline of the comparison"),
        flag("--all", field="", help="include equal properties"),
    ), get="models/{model}/comparison/", show=_compare),
    Verb("history", "Show the history of a model.", (MODEL,), get="models/{model}/history/", table=HISTORY,
         empty="No changes recorded yet."),
)  # fmt: skip
