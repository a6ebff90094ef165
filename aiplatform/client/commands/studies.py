"""`aip study`: hyperparameter search by many trainings of one request."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from typing import Any

from aiplatform.client import output, waiting
from aiplatform.client.commands import lookup, submitting
from aiplatform.client.errors import JOB_FAILED, OK, USAGE, ClientError
from aiplatform.client.options import LIMIT, WAIT, YES, fields, option, pairs, repeated
from aiplatform.client.output import Column, columns
from aiplatform.client.verbs import Verb, done, show_list

SAMPLERS = ["tpe", "random", "grid", "cmaes", "nsga2"]
FINAL = {"done", "stopped", "failed"}


def _range(row: Mapping[str, Any]) -> str:
    if row["type"] == "categorical":
        return f"{row['name']} = {', '.join(str(choice) for choice in row['choices'])}"
    return f"{row['name']} = {row['low']} .. {row['high']}{' log' if row.get('log') else ''}"


def _best(trial: Mapping[str, Any] | None) -> str:
    if not trial:
        return ""
    values = ", ".join(f"{value:.5g}" for value in trial["values"])
    params = ", ".join(f"{name}={_number(value)}" for name, value in trial["params"].items())
    return f"trial {trial['number']}: {values} with {params}"


def _number(value: object) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {state}" for state, count in counts.items() if count)


COLUMNS = columns(
    "id, name, state, preset=preset|program, dataset, sampler, trials=|trials, made=created_at|ago",
    program=lambda preset: preset or "custom code",
    trials=lambda row: f"{row['trials']} of {row['max_trials']}",
)
FIELDS = columns(
    "Id=id, Name=name, State=state, Reason=sentence, Preset=preset|program, Dataset=dataset, Search "
    "space=space|space, Objectives=objectives|objectives, Trials=counts|counts, Hours used=hours, Best=best|best",
    program=lambda preset: preset or "custom code",
    space=lambda rows: "; ".join(_range(row) for row in rows),
    objectives=lambda rows: ", ".join(f"{row['direction']} {row['key']}" for row in rows),
    counts=_counts,
    best=_best,
)


def _parse_objective(text: str) -> dict[str, str]:
    key, *settings = text.split(":")
    row = {"key": key}
    for setting in settings:
        if setting in ("min", "max"):
            row["direction"] = f"{setting}imize"
        elif setting in ("last", "best"):
            row["take"] = setting
        else:
            raise ClientError(
                f"--objective {text}: the key can be followed by :min or :max, and :last or :best.", USAGE
            )
    return row


def _parse_pruner(text: str) -> dict[str, object]:
    name, *counts = text.split(":")
    return {"name": name, **pairs(counts, option="--pruner")}


#: Options of the search; those of its trainings are in `submitting`.
SEARCH = (
    repeated("--search", metavar="RANGE", required=True, field="space",
             help="search space: 'lr = 1e-4 .. 0.1 log', 'layers = 1 .. 8', 'mode = a, b'; can be repeated"),
    repeated("--objective", metavar="KEY[:max|:min][:best|:last]", required=True, field="objectives",
             convert=lambda texts: [_parse_objective(text) for text in texts],
             help="objective metric, for example val/accuracy:max; can be repeated"),
    option("--sampler", choices=SAMPLERS, default="tpe", help="sampler (tpe)"),
    option("--pruner", metavar="median|asha[:warmup=N…]", default="none", convert=_parse_pruner,
           help="pruner: median, asha, or with counts of points, such as asha:warmup=2:factor=3"),
    option("--trials", type=int, default=20, field="max_trials", help="number of trials (20)"),
    option("--at-once", type=int, default=2, help="parallel trials (2)"),
    option("--time", metavar="8h", field="time_limit_s", convert=submitting.seconds, help=
        "maximum time; no new "
        "trial afterwards"),
    option("--hours", type=float, field="hours_limit",
           help="GPU hours, without GPUs core hours, of all trials"),
    option("--target", type=float, help="target value of the first objective"),
    option("--seed", type=int, help="random seed"),
    repeated("--warm-start", metavar="STUDY", default=[], find=lambda client, name: lookup.study(client, name)["id"],
             help="prior study"),
    repeated("--first", metavar="NAME=VALUE,…", default=[], field="enqueue",
             convert=lambda texts: [pairs(text.split(","), option="--first") for text in texts],
             help="parameters of the first trials; can be repeated"),
)  # fmt: skip


def _create(args: argparse.Namespace) -> int | None:
    training = submitting.requested(args)
    name = training.pop("name")
    if not name:
        raise ClientError("Specify a name for the study.", USAGE)
    custom = bool(training.get("command") or args.code or args.home_code or args.snapshot)
    training |= submitting.data_fields(args, custom=custom)
    if args.code:
        training["code_upload"] = submitting.send_code(args, args.code)
    body = {"name": name, "description": training.pop("description", ""), "training": training}
    row = args.client.post("studies/", body | fields(args, SEARCH), once=True)
    done(args, row, f"Started study {output.clean(row['name'])}, number {row['id']}. See: aip study show {row['id']}")
    return _until_final(args, row["id"]) if args.wait else None


def _print_trials(args: argparse.Namespace) -> None:
    study = lookup.study(args.client, args.study)
    heads: list[Column] = [
        *columns("trial=number, state, training"),
        *((objective["key"], _value_at(index)) for index, objective in enumerate(study["objectives"])),
        *((row["name"], _param(row["name"])) for row in study["space"]),
        *columns("=best|best", best=lambda best: "best" if best else ""),
    ]
    show_list(args, args.client.get(f"studies/{study['id']}/trials/"), heads, empty="No trial has started yet.")


def _value_at(index: int) -> Any:
    def value(row: Mapping[str, Any]) -> str:
        if index < len(row["values"]):
            return f"{row['values'][index]:.5g}"
        return f"({row['so_far']:.5g})" if index == 0 and row["so_far"] is not None else ""

    return value


def _param(name: str) -> Any:
    return lambda row: _number(row["params"].get(name, ""))


def _print_importance(args: argparse.Namespace, importance: Any) -> None:
    rows = [{"name": name, "share": f"{100 * share:.1f} %"} for name, share in importance["importance"].items()]
    output.table(rows, columns("parameter=name, share"), empty="Not enough completed trials.")


def _wait(args: argparse.Namespace) -> int:
    return _until_final(args, lookup.study(args.client, args.study)["id"])


def _until_final(args: argparse.Namespace, number: int, *, pause: Any = time.sleep) -> int:
    last = ""
    while True:
        row = waiting.read(args.client, f"studies/{number}/")
        line = _counts(row["counts"])
        if line != last and not args.json:
            output.say(f"{row['state']}: {line}" if line else row["state"])
        last = line
        if row["state"] in FINAL:
            if args.json:
                output.as_json(row)
            else:
                output.say(output.clean(row["sentence"]))
                output.say(_best(row["best"]))
            return OK if row["state"] == "done" else JOB_FAILED
        pause(2.0)


STUDY = option("study", find=lookup.study, help="name or id")


def _params(help: str) -> Any:
    return repeated("-p", "--param", metavar="NAME=VALUE", field="params", default=[], convert=pairs,
                    help=f"{help}; can be repeated")  # fmt: skip


NOUNS = {
    "study": (
        Verb("create", "Start a study. Training options are those of aip train submit.",
             (*submitting.TRAINING, *SEARCH, WAIT), run=_create,
             example="aip study create lr1 --preset detect --data cells --search 'lr = 1e-4 .. 0.1 log' "
                     "--objective val/ap50:max"),
        Verb("list", "List studies, newest first.", (
            option("--state", choices=["running", "paused", "done", "stopped", "failed"]),
            option("-q", "--search", help="only those whose name contains this text"),
            LIMIT,
        ), get="studies/", table=COLUMNS, empty="No studies yet. Start one: aip study create --help"),
        Verb("show", "Show one study and its best trial.", (STUDY,), get="studies/{study}/", record=FIELDS),
        Verb("trials", "List its trials.", (STUDY,), run=_print_trials),
        Verb("importance", "Show parameter importance.", (
            STUDY,
            option("--evaluator", choices=["ped-anova", "fanova"], default="ped-anova"),
            option("--objective", help="key of an objective; default: the first"),
        ), get="studies/{study}/importance/", show=_print_importance),
        Verb("wait", "Wait for the end; exit code 0 if it completed, otherwise 6.", (STUDY,), run=_wait),
        Verb("pause", "Start no new trials; running ones continue.", (STUDY,),
             post="studies/{study}/pause/", done="Study {row[name]} starts no new trials."),
        Verb("resume", "Resume a paused or ended study.", (STUDY,),
             post="studies/{study}/resume/", done="Study {row[name]} is resumed."),
        Verb("stop", "Stop a study with all its trials.", (STUDY,),
             post="studies/{study}/stop/", done="Study {row[name]} is stopped with all its trials."),
        Verb("delete", "Delete a finished study; its trainings are kept.", (STUDY, YES), delete="studies/{study}/",
             confirm="Delete the study {row[name]}?", done="Deleted study {row[name]}."),
        Verb("enqueue", "Add trials with these parameters.", (STUDY, _params("a value")),
             post="studies/{study}/enqueue/", once=True, done="These trials run next."),
        Verb("best", "Train with the best parameters, as a regular training.", (
            STUDY,
            _params("overrides a setting of the study, for example budget_minutes=60"),
            option("--trial", type=int, help="another trial than the best one"),
        ), post="studies/{study}/best/", once=True,
             done="Queued as training {row[id]}. Watch it: aip train logs -f {row[id]}"),
    ),
}  # fmt: skip
