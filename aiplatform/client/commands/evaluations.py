"""`aip evaluate`: evaluations of models, their parameter sets, comparison and errors."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from aiplatform.client import output, waiting
from aiplatform.client.commands import html_files, lookup, resources
from aiplatform.client.commands.models import first_metrics
from aiplatform.client.commands.params import DESCRIPTION, PARAM
from aiplatform.client.commands.registry import MODEL_VERSION
from aiplatform.client.commands.submitting import send_code
from aiplatform.client.errors import JOB_FAILED, USAGE, ClientError
from aiplatform.client.http import Client
from aiplatform.client.options import ID, LIMIT, WAIT, either, fields, option, pairs, repeated
from aiplatform.client.output import Column, columns, titled
from aiplatform.client.verbs import Group, Verb, done, show_list, show_one

#: Which code evaluates in place of that of the platform.
SCRIPT = (
    option("--code", type=Path, field="", help="own script: a folder or an archive"),
    option("--home-code", metavar="PATH", field="home_path",
           help="own script: a folder in your home on the platform"),
    option("--snapshot", field="code", help="own script: id of code that came before; `show` tells it"),
    option("--start", metavar="FILE.py", field="start_file",
           help="own script: the file that judges; it writes metrics.json to AIP_OUTPUT_DIR"),
    option("--arguments", help="own script: words after it; {model} {data} {output} {params} become paths"),
    option("--output-path", metavar="FOLDER", help="own script: the folder in the code that it writes to"),
    option("--image", metavar="NAME[:TAG]", find=lookup.image,
           help="own script: where its programs come from: aip images list"),
)  # fmt: skip


def script_fields(args: argparse.Namespace) -> dict[str, Any]:
    """Fields of a request for the options; local code is uploaded.

    Raises:
        ClientError: several options name the code.
    """
    if sum(bool(code) for code in (args.code, args.home_code, args.snapshot)) > 1:
        raise ClientError("Give the code in one way: --code, --home-code or --snapshot.", USAGE)
    body = fields(args, SCRIPT) | ({"params": pairs(args.param)} if args.param else {})
    return body | ({"code_upload": send_code(args, args.code)} if args.code else {})


def _all_metrics(metrics: Mapping[str, Any] | None) -> str:
    numbers = [(name, value) for name, value in (metrics or {}).items() if isinstance(value, int | float)]
    return ", ".join(f"{name} {value:.4g}" for name, value in numbers)


#: Fields that `show` adds.
SCRIPT_FIELDS = columns(
    "Split=split, Parameters=params, Script=script|script, Code=script.code, Figures=metrics|metrics, "
    "Problems=script.problems|words, Ended=sentence",
    script=lambda script: f"{script['start_file']} {script['arguments']}".strip() if script else "",
    metrics=_all_metrics,
    words=lambda problems: output.clean(" ".join(problems or [])),
)


SET_COLUMNS = columns(
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
CONTENT = (*DESCRIPTION, *RESOURCES, PARAM, *SCRIPT)


def _save_set(args: argparse.Namespace) -> None:
    evaluation = args.client.get(f"evaluations/{args.evaluation}/")
    body = {"name": args.name, "evaluation": args.evaluation} | _content(args, evaluation["params"])
    row = args.client.post("evaluation-sets/", body, once=True)
    done(args, row, f"Saved as parameter set {row['id']}.")


def _change_set(args: argparse.Namespace) -> None:
    row = args.client.get(f"evaluation-sets/{lookup.evaluation_set(args.client, args.set)}/")
    body = _content(args, row["params"]) | ({"name": args.name} if args.name else {})
    row = args.client.call("PATCH", f"evaluation-sets/{row['id']}/", body=body)
    done(args, row, f"{output.clean(row['name'])} is changed.")


def _content(args: argparse.Namespace, params: dict[str, object]) -> dict[str, Any]:
    """Fields for the options; parameters are added to those of the set."""
    body = fields(args, (*DESCRIPTION, *RESOURCES)) | script_fields(args)
    return body | ({"params": params | pairs(args.param)} if args.param else {})


SETS = Group("sets", "Parameter sets. Use one: aip evaluate start MODEL --set NAME", (
    Verb("list", "List evaluation parameter sets.", (
        option("-q", "--search", help="only those whose name, description, dataset or task contains this"), LIMIT,
    ), get="evaluation-sets/", table=SET_COLUMNS,
         empty="No parameter sets. Save one: aip evaluate sets save NAME --evaluation ID"),
    Verb("show", "Show one set.", (SET,), get="evaluation-sets/{set}/", record=titled(SET_COLUMNS)),
    Verb("save", "Save what an evaluation was begun with under a name.", (
        option("name"),
        option("--evaluation", required=True, type=int, metavar="ID", help="take those of this evaluation"),
        *CONTENT,
    ), run=_save_set),
    Verb("change", "Change a set; what is left out stays.",
         (SET, option("--name", help="a new name"), *CONTENT), run=_change_set),
    Verb("delete", "Remove a set.", (SET,),
         delete="evaluation-sets/{set}/", done="The parameter set is removed."),
))  # fmt: skip


VERDICTS = {"better": "better", "worse": "worse", "no_difference": "not significant"}


def _slices(args: argparse.Namespace) -> None:
    """Print a row for each part, worst first, a column for each evaluation."""
    query = fields(args, SLICE)
    [ids] = fields(args, (IDS,)).values()
    if len(ids) == 1:
        comparison = args.client.get(f"evaluations/{ids[0]}/slices/", **query)
    else:
        comparison = args.client.get("evaluations/comparison/slices/", evaluation=ids, base=args.base, **query)
    if args.json:
        output.as_json(comparison)
        return
    heads: list[Column] = [
        ("by", "by"), ("part", "name"), ("images", lambda row: f"{row['images']}{' (few)' if row['few'] else ''}"),
        ("figure", "figure"), *((number, _compared_cell(index)) for index, number in enumerate(ids)),
    ]  # fmt: skip
    output.table(comparison["slices"], heads, empty="All images are alike in what is known of them.")


def _compare(args: argparse.Namespace, comparison: Any) -> None:
    """Print a row for each metric, a column for each evaluation; then which one is right where."""
    rows = comparison["evaluations"]
    heads: list[Column] = [("", "key"), *((_head(row), _compared_cell(index)) for index, row in enumerate(rows))]
    summary = [
        {"key": key, "values": [{"value": row["summary"].get(key)} for row in rows]} for key in comparison["only_told"]
    ]
    output.table([*comparison["figures"], *summary], heads, empty="They judged no images.")
    names = {row["id"]: row["name"] for row in rows}
    for test in comparison["mcnemar"]:
        output.say(
            f"{output.clean(names[test['evaluation']])}: of {comparison['images']} images {test['only_other']} right "
            f"that {output.clean(names[comparison['base']])} has wrong, {test['only_base']} the other way round; "
            f"McNemar p {test['p']:.3g}: {VERDICTS[test['verdict']]}"
        )


def _head(row: Mapping[str, Any]) -> str:
    return f"{row['id']} {row['name']}"


def _compared_cell(index: int) -> Callable[[Any], object]:
    def value(row: Any) -> object:
        if not row["values"]:
            return ""
        own = row["values"][index]
        if own["value"] is None:
            return ""
        difference = own.get("difference")
        if difference is None and own.get("low") is not None and "images" in row:
            return f"{own['value']:.4f} ({own['low']:.4f} … {own['high']:.4f})"
        if difference is None:
            return f"{own['value']:.4f}"
        half = (difference["high"] - difference["low"]) / 2
        return f"{own['value']:.4f} ({difference['value']:+.4f} ± {half:.4f}: {VERDICTS[difference['verdict']]})"

    return value


def _number(text: str) -> str:
    if not text.isdecimal():
        raise ClientError("Give numbers of evaluations. See: aip evaluate list", USAGE)
    return text


IDS = option("ids", nargs="+", metavar="id", field="evaluation", find=lambda _, text: _number(text))
BASE = option("--base", type=int, metavar="ID", help="measure the others against this one (the first)")
SLICE = (
    option("-q", "--search", help="ask for images of your own: words in their path"),
    option("--class-id", type=int, metavar="ID", help="ask for images of your own: a class on them"),
    option("--split", help="ask for images of your own: a split"),
)
COMPARISON = (
    Verb("compare", "Compare two to six evaluations of the same images.", (IDS, BASE),
         get="evaluations/comparison/", show=_compare),
    Verb("slices", "Figures of parts of the images, of one evaluation or of two to six.", (IDS, BASE, *SLICE),
         run=_slices),
)  # fmt: skip


KINDS = ["class", "location", "both", "duplicate", "background", "missed"]
MISTAKES = columns(
    "kind, mistakes=count, images, AP50 gained if mended=gain|gain",
    gain=lambda gain: "" if gain is None else f"+{gain:.4f}",
)
BINS = columns(
    "scores=|range, answers=count, mean score=score|.3f, right=right|.3f",
    range=lambda row: f"{row['low']:.2f} to {row['high']:.2f}",
)
NUMBER = option("id", type=int)


def _report(args: argparse.Namespace) -> None:
    html_files.save(args, f"evaluations/{args.id}/report/", f"evaluation-{args.id}")


def _mistakes(args: argparse.Namespace) -> None:
    kinds = args.client.get(f"evaluations/{args.id}/results/").get("mistakes", {}).get("kinds", {})
    rows: list[Any] = [{"kind": kind, **kinds[kind]} for kind in KINDS if kind in kinds]
    show_list(args, rows, MISTAKES, empty="No kinds of mistakes are known of it. Evaluate a detector anew.")


def _calibration(args: argparse.Namespace, calibration: Any) -> None:
    if reliability := calibration["reliability"]:
        output.table([row for row in reliability["bins"] if row["count"]], BINS)
        output.say(f"Expected calibration error {reliability['ece']:.4f}")
    if costs := calibration["costs"]:
        output.say(f"Cheapest from score {costs['threshold']:.2f} on: {costs['cost']:g}")


RESULTS = (
    Verb("mistakes", "Kinds of a detector's mistakes, and what mending them would be worth.", (NUMBER,), run=_mistakes),
    Verb("annotate", "Make a dataset of the images with a mistake, to mend them.", (
        NUMBER,
        option("--name", required=True, help="name of the new dataset"),
        either(option("--mistake", choices=KINDS),
               option("--cell", metavar="TRUTH,ANSWER", help="places in the confusion matrix, from 0"),
               required=True),
    ), post="evaluations/{id}/annotate/", once=True,
         done="Dataset {row[dataset]} is being made. See: aip data show {row[dataset]}"),
    Verb("calibration", "Whether scores are what they say, and the cheapest threshold.", (
        NUMBER,
        option("--wrong", type=float, help="what a wrong answer costs (1)"),
        option("--missed", type=float, help="what a missed object costs (1)"),
    ), get="evaluations/{id}/calibration/", show=_calibration),
    Verb("report", "Save all of it as one HTML file, or as PDF.", (NUMBER, *html_files.options("evaluation-ID")),
         run=_report),
    Verb("threshold", "Keep a threshold as the best score of an evaluation.", (
        NUMBER,
        option("score", field="threshold", convert=lambda score: None if score == "none" else score,
               help="above 0 and below 1, or none for the one with the best F1"),
    ), post="evaluations/{id}/threshold/",
         done="Default threshold for endpoints with this version, unless a request sets one."),
)  # fmt: skip


EVALUATIONS = columns(
    "id, name, model, dataset, split=split|split, state, metrics=metrics|metrics, made=created_at|ago",
    split=lambda split: split or "all",
    metrics=first_metrics,
)
EVALUATION_FIELDS = [
    *titled(column for column in EVALUATIONS if column[0] != "metrics"),
    *output.PROGRESS,
    *SCRIPT_FIELDS,
    ("Conditions", "conditions"),
]


EVALUATION = (
    MODEL_VERSION,
    option("--data", field="version", find=lookup.version,
           help="dataset version: its id, NAME, or NAME:VERSION; that of the set when left out"),
    option("--set", metavar="SET", field="parameter_set", find=lookup.evaluation_set,
           help="a parameter set by id or name; what you give goes before it"),
    option("--split", field="",
           help="auto (default: test, else val, else unseen), train, val, test, unseen (not trained on), or all"),
    option("--name", help="a name for the evaluation"),
    repeated("-p", "--param", metavar="NAME=VALUE", field="", help="repeat for more"),
    *SCRIPT,
    *resources.options("cards; 0 evaluates on the processor"),
)  # fmt: skip


def _evaluate(args: argparse.Namespace) -> int | None:
    body = fields(args, EVALUATION) | script_fields(args)
    if args.split is not None or not args.set:  # a parameter set has a split
        body["split"] = "" if args.split == "all" else args.split or "auto"
    row = args.client.post("evaluations/", body, once=True)
    if args.wait:
        row = waiting.until_over(args.client, f"evaluations/{row['id']}/")
        show_one(args, row, EVALUATION_FIELDS)
        return waiting.exit_code(row) or (JOB_FAILED if (row.get("script") or {}).get("problems") else None)
    if not args.json:
        print(row["id"])
    done(args, row, f"Queued as evaluation {row['id']}.")
    return None


NOUNS = {
    "evaluate": (
        Verb("start", "Evaluate a model version on a dataset version.", (*EVALUATION, WAIT), run=_evaluate),
        Verb("list", "List evaluations.", (LIMIT,), get="evaluations/", table=EVALUATIONS, empty="No evaluations."),
        Verb("show", "Show the figures of one evaluation.", (ID,), get="evaluations/{id}/", record=EVALUATION_FIELDS),
        Verb("stop", "Stop an evaluation.", (ID,),
             post="evaluations/{id}/stop/", done="Requested a stop of evaluation {args.id}."),
        *COMPARISON,
        SETS,
        *RESULTS,
    ),
}  # fmt: skip
