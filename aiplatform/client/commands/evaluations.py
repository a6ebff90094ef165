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
    option("--code", type=Path, field="", help="custom script: a folder or an archive"),
    option("--home-code", metavar="PATH", field="home_path",
           help="custom script: a folder in your home on the platform"),
    option("--snapshot", field="code", help="custom script: id of an earlier code snapshot; see `show`"),
    option("--start", metavar="FILE.py", field="start_file",
           help="custom script: entry point; it writes metrics.json to AIP_OUTPUT_DIR"),
    option("--arguments", help="custom script: arguments; {model} {data} {output} {params} are replaced by paths"),
    option("--output-path", metavar="FOLDER", help="custom script: output folder in the code"),
    option("--image", metavar="NAME[:TAG]", find=lookup.image,
           help="custom script: image with its programs: aip images list"),
)  # fmt: skip


def script_fields(args: argparse.Namespace) -> dict[str, Any]:
    """Fields of a request for the options; local code is uploaded.

    Raises:
        ClientError: several options name the code.
    """
    if sum(bool(code) for code in (args.code, args.home_code, args.snapshot)) > 1:
        raise ClientError("Specify the code in one way: --code, --home-code or --snapshot.", USAGE)
    body = fields(args, SCRIPT) | ({"params": pairs(args.param)} if args.param else {})
    return body | ({"code_upload": send_code(args, args.code)} if args.code else {})


def _all_metrics(metrics: Mapping[str, Any] | None) -> str:
    numbers = [(name, value) for name, value in (metrics or {}).items() if isinstance(value, (int, float))]
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
    "id, name, task, dataset, split, script=start_file, parameters=params, GPUs=gpus_per_node, owner, visible "
    "to=visibility, description"
)


def _find_version(client: Client, name: str) -> int | None:
    return None if name == "none" else lookup.version(client, name)


SET = option("set", find=lookup.evaluation_set, help="id or name")
RESOURCES = (
    option("--data", field="version", find=_find_version,
           help="dataset version: id, NAME, or NAME:VERSION; none for no dataset"),
    option("--split", help="as in `aip evaluate start`"),
    option("--gpus", type=int, field="gpus_per_node", help="GPUs; 0 evaluates on the CPU"),
    option("--cpus", type=float, help="CPU cores"),
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
    done(args, row, f"{output.clean(row['name'])} was changed.")


def _content(args: argparse.Namespace, params: dict[str, object]) -> dict[str, Any]:
    """Fields for the options; parameters are added to those of the set."""
    body = fields(args, (*DESCRIPTION, *RESOURCES)) | script_fields(args)
    return body | ({"params": params | pairs(args.param)} if args.param else {})


SETS = Group("sets", "Parameter sets. Use one: aip evaluate start MODEL --set NAME", (
    Verb("list", "List evaluation parameter sets.", (
        option("-q", "--search", help="only those whose name, description, dataset or task contains this text"), LIMIT,
    ), get="evaluation-sets/", table=SET_COLUMNS,
         empty="No parameter sets. Save one: aip evaluate sets save NAME --evaluation ID"),
    Verb("show", "Show one set.", (SET,), get="evaluation-sets/{set}/", record=titled(SET_COLUMNS)),
    Verb("save", "Save the parameters of an evaluation under a name.", (
        option("name"),
        option("--evaluation", required=True, type=int, metavar="ID", help="use those of this evaluation"),
        *CONTENT,
    ), run=_save_set),
    Verb("change", "Change a set; omitted values are kept.",
         (SET, option("--name", help="new name"), *CONTENT), run=_change_set),
    Verb("delete", "Delete a set.", (SET,),
         delete="evaluation-sets/{set}/", done="The parameter set is deleted."),
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
    output.table(comparison["slices"], heads, empty="All images have the same known properties.")


def _compare(args: argparse.Namespace, comparison: Any) -> None:
    """Print a row for each metric, a column for each evaluation; then which one is right where."""
    rows = comparison["evaluations"]
    heads: list[Column] = [("", "key"), *((_head(row), _compared_cell(index)) for index, row in enumerate(rows))]
    summary = [
        {"key": key, "values": [{"value": row["summary"].get(key)} for row in rows]} for key in comparison["only_told"]
    ]
    output.table([*comparison["figures"], *summary], heads, empty="The evaluations have no results per image.")
    names = {row["id"]: row["name"] for row in rows}
    for test in comparison["mcnemar"]:
        output.say(
            f"{output.clean(names[test['evaluation']])}: of {comparison['images']} images {test['only_other']} "
            f"correct that {output.clean(names[comparison['base']])} has wrong, {test['only_base']} the other way "
            f"round; McNemar p {test['p']:.3g}: {VERDICTS[test['verdict']]}"
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
        raise ClientError("Specify numbers of evaluations. See: aip evaluate list", USAGE)
    return text


IDS = option("ids", nargs="+", metavar="id", field="evaluation", find=lambda _, text: _number(text))
BASE = option("--base", type=int, metavar="ID", help="baseline of the comparison (the first)")
SLICE = (
    option("-q", "--search", help="slice of images: text in their path"),
    option("--class-id", type=int, metavar="ID", help="slice of images: with this class"),
    option("--split", help="slice of images: a split"),
)
COMPARISON = (
    Verb("compare", "Compare two to six evaluations of the same images.", (IDS, BASE),
         get="evaluations/comparison/", show=_compare),
    Verb("slices", "Metrics of slices of the images, of one or of two to six evaluations.", (IDS, BASE, *SLICE),
         run=_slices),
)  # fmt: skip


KINDS = ["class", "location", "both", "duplicate", "background", "missed"]
MISTAKES = columns(
    "kind, errors=count, images, AP50 gain if fixed=gain|gain",
    gain=lambda gain: "" if gain is None else f"+{gain:.4f}",
)
BINS = columns(
    "confidence=range, predictions=count, mean confidence=score|.3f, correct=right|.3f",
    range=lambda row: f"{row['low']:.2f} to {row['high']:.2f}",
)
NUMBER = option("id", type=int)


def _report(args: argparse.Namespace) -> None:
    html_files.save(args, f"evaluations/{args.id}/report/", f"evaluation-{args.id}")


def _mistakes(args: argparse.Namespace) -> None:
    kinds = args.client.get(f"evaluations/{args.id}/results/").get("mistakes", {}).get("kinds", {})
    rows: list[Any] = [{"kind": kind, **kinds[kind]} for kind in KINDS if kind in kinds]
    show_list(args, rows, MISTAKES, empty="No error types are available. Evaluate a detector again.")


def _calibration(args: argparse.Namespace, calibration: Any) -> None:
    if reliability := calibration["reliability"]:
        output.table([row for row in reliability["bins"] if row["count"]], BINS)
        output.say(f"Expected calibration error {reliability['ece']:.4f}")
    if costs := calibration["costs"]:
        output.say(f"Lowest cost at confidence {costs['threshold']:.2f}: {costs['cost']:g}")


RESULTS = (
    Verb("mistakes", "Error types of a detector, and the gain of fixing them.", (NUMBER,), run=_mistakes),
    Verb("annotate", "Create a dataset from the images with an error.", (
        NUMBER,
        option("--name", required=True, help="name of the new dataset"),
        either(option("--mistake", choices=KINDS),
               option("--cell", metavar="TRUTH,ANSWER", help="indices in the confusion matrix, from 0"),
               required=True),
    ), post="evaluations/{id}/annotate/", once=True,
         done="Dataset {row[dataset]} is being made. See: aip datasets show {row[dataset]}"),
    Verb("calibration", "Calibration of the confidence, and the threshold with the lowest cost.", (
        NUMBER,
        option("--wrong", type=float, help="cost of a wrong prediction (1)"),
        option("--missed", type=float, help="cost of a missed object (1)"),
    ), get="evaluations/{id}/calibration/", show=_calibration),
    Verb("report", "Save a complete report as one "
                   "HTML file, or as PDF.", (NUMBER, *html_files.options("evaluation-ID")),
         run=_report),
    Verb("threshold", "Store a threshold as the default of a version.", (
        NUMBER,
        option("score", field="threshold", convert=lambda score: None if score == "none" else score,
               help="between 0 and 1, or none for the threshold with the best F1"),
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
           help="dataset version: id, NAME, or NAME:VERSION; default: that of the set"),
    option("--set", metavar="SET", field="parameter_set", find=lookup.evaluation_set,
           help="a parameter set by id or name; other options override it"),
    option("--split", field="",
           help="auto (default: test, else val, else unseen), train, val, test, unseen (not trained on), or all"),
    option("--name", help="name of the evaluation"),
    repeated("-p", "--param", metavar="NAME=VALUE", field="", help="can be repeated"),
    *SCRIPT,
    *resources.options("GPUs; 0 evaluates on the CPU"),
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
        Verb("show", "Show the metrics of one evaluation.", (ID,), get="evaluations/{id}/", record=EVALUATION_FIELDS),
        Verb("stop", "Stop an evaluation.", (ID,),
             post="evaluations/{id}/stop/", done="Requested a stop of evaluation {args.id}."),
        *COMPARISON,
        SETS,
        *RESULTS,
    ),
}  # fmt: skip
