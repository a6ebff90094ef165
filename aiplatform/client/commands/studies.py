"""`aip study`: search for good parameters by many trainings of one request."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from typing import Any

from aiplatform.client import output, waiting
from aiplatform.client.commands import lookup, submitting
from aiplatform.client.commands.verbs import Noun, Nouns, Parent, confirm, done, paging, pairs, show_list
from aiplatform.client.errors import JOB_FAILED, NOT_FOUND, OK, USAGE, ClientError
from aiplatform.client.http import Client
from aiplatform.client.output import Column

SAMPLERS = ["tpe", "random", "grid", "cmaes", "nsga2"]
OVER = {"done", "stopped", "failed"}


def _range(row: Mapping[str, Any]) -> str:
    if row["type"] == "categorical":
        return f"{row['name']} = {', '.join(str(one) for one in row['choices'])}"
    return f"{row['name']} = {row['low']} .. {row['high']}{' log' if row.get('log') else ''}"


def _best(row: Mapping[str, Any]) -> str:
    if not row["best"]:
        return ""
    values = ", ".join(f"{value:.5g}" for value in row["best"]["values"])
    params = ", ".join(f"{name}={_figure(value)}" for name, value in row["best"]["params"].items())
    return f"trial {row['best']['number']}: {values} with {params}"


def _figure(value: object) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)


COLUMNS: list[Column] = [
    ("id", "id"),
    ("name", "name"),
    ("state", "state"),
    ("preset", lambda row: row.get("preset") or "own code"),
    ("dataset", "dataset"),
    ("sampler", "sampler"),
    ("trials", lambda row: f"{row['trials']} of {row['max_trials']}"),
    ("made", lambda row: output.ago(row.get("created_at"))),
]
FIELDS: list[Column] = [
    ("Id", "id"),
    ("Name", "name"),
    ("State", "state"),
    ("Why", "sentence"),
    ("Preset", lambda row: row.get("preset") or "own code"),
    ("Dataset", "dataset"),
    ("Searched", lambda row: "; ".join(_range(one) for one in row["space"])),
    ("Objectives", lambda row: ", ".join(f"{one['direction']} {one['key']}" for one in row["objectives"])),
    ("Trials", lambda row: ", ".join(f"{count} {state}" for state, count in row["counts"].items() if count)),
    ("Hours used", "hours"),
    ("Best", _best),
]


def add(nouns: Nouns, parent: Parent) -> None:
    study = Noun(nouns, parent, "study", "Studies: search for good parameters by many trainings.")
    verb = study.verb("create", create, "Begin a study. Options of the training are those of aip train submit.")
    submitting.training_options(verb)
    verb.add_argument(
        "--search", action="append", metavar="RANGE", required=True,
        help="what is searched: 'lr = 1e-4 .. 0.1 log', 'layers = 1 .. 8', 'mode = a, b'; repeat for more",
    )  # fmt: skip
    verb.add_argument(
        "--objective", action="append", metavar="KEY[:max|:min][:best|:last]", required=True,
        help="a curve, for instance val/accuracy:max; repeat for several goals",
    )  # fmt: skip
    verb.add_argument("--sampler", choices=SAMPLERS, default="tpe", help="who chooses (tpe)")
    verb.add_argument(
        "--pruner", metavar="median|asha[:warmup=N…]", default="none",
        help="end bad trials early: median, asha, or with counts of points, as in asha:warmup=2:factor=3",
    )  # fmt: skip
    verb.add_argument("--trials", type=int, default=20, help="so many in all (20)")
    verb.add_argument("--at-once", type=int, default=2, help="so many beside each other (2)")
    verb.add_argument("--time", metavar="8h", help="no new trial after this")
    verb.add_argument("--hours", type=float, help="card-hours, without cards core-hours, of all trials")
    verb.add_argument("--target", type=float, help="a value of the first objective that is good enough")
    verb.add_argument("--seed", type=int, help="the same parameters for the same outcomes")
    verb.add_argument("--warm-start", action="append", metavar="STUDY", help="begin with the trials of this one")
    verb.add_argument("--first", action="append", metavar="NAME=VALUE,…", help="parameters to try first; repeat")
    verb.add_argument("--wait", action="store_true", help="wait for the end; 6 when it failed")
    verb = study.verb("list", study_list, "List studies, newest first.")
    verb.add_argument("--state", choices=["running", "paused", "done", "stopped", "failed"])
    verb.add_argument("-q", "--search", help="only those whose name contains this")
    paging(verb)
    for name, run, sentence in (
        ("show", show, "Show one study and its best trial."),
        ("trials", trials, "List its trials."),
        ("importance", importance, "Say how much each parameter mattered."),
        ("wait", wait, "Wait for its end; leaves with 0 when it completed and 6 when not."),
        ("pause", steer, "Begin no new trials; those that go on do so."),
        ("resume", steer, "Go on after a pause, or after it ended."),
        ("stop", steer, "End it with all of its trials."),
        ("delete", delete, "Delete it once it is over; its trainings stay."),
        ("enqueue", enqueue, "Try these parameters next."),
        ("best", best, "Train once more with the best parameters, as an ordinary training."),
    ):
        verb = study.verb(name, run, sentence)
        verb.add_argument("study", help="name or id")
        if name == "delete":
            verb.add_argument("-y", "--yes", action="store_true", help="do not ask")
        if name == "importance":
            verb.add_argument("--evaluator", choices=["ped-anova", "fanova"], default="ped-anova")
            verb.add_argument("--objective", help="key of one; the first when left out")
        if name in ("enqueue", "best"):
            about = "a value" if name == "enqueue" else "in place of the study's own, for instance budget_minutes=60"
            verb.add_argument("-p", "--param", action="append", metavar="NAME=VALUE", help=f"{about}; repeat for more")
        if name == "best":
            verb.add_argument("--trial", type=int, help="another trial than the best one")


def create(args: argparse.Namespace) -> int | None:
    fields = submitting.requested(args)
    name = fields.pop("name")
    if not name:
        raise ClientError("Give the study a name.", USAGE)
    own = bool(fields.get("command") or args.code or args.home_code or args.snapshot)
    fields |= submitting.data_fields(args, own=own)
    if args.code:
        fields["code_upload"] = submitting.send_code(args, args.code)
    body: dict[str, Any] = {
        "name": name,
        "description": fields.pop("description", ""),
        "training": fields,
        "space": args.search,
        "objectives": [_objective(one) for one in args.objective],
        "sampler": args.sampler,
        "pruner": _pruner(args.pruner),
        "max_trials": args.trials,
        "at_once": args.at_once,
        "time_limit_s": submitting.seconds(args.time) if args.time else None,
        "hours_limit": args.hours,
        "target": args.target,
        "seed": args.seed,
        "warm_start": [find(args.client, one)["id"] for one in args.warm_start or ()],
        "enqueue": [pairs(one.split(","), what="--first") for one in args.first or ()],
    }
    row = args.client.post("studies/", body, once=True)
    done(args, row, f"Study {output.clean(row['name'])} is begun, number {row['id']}. See: aip study show {row['id']}")
    return _until_over(args, row["id"]) if args.wait else None


def _objective(given: str) -> dict[str, str]:
    key, *words = given.split(":")
    row = {"key": key}
    for word in words:
        if word in ("min", "max"):
            row["direction"] = f"{word}imize"
        elif word in ("last", "best"):
            row["take"] = word
        else:
            raise ClientError(f"--objective {given}: behind the key stand :min or :max, and :last or :best.", USAGE)
    return row


def _pruner(given: str) -> dict[str, object]:
    name, *counts = given.split(":")
    return {"name": name, **pairs(counts, what="--pruner")}


def find(client: Client, given: str) -> Any:
    """The study of a name, or of an id; refuses a name that several people gave."""
    rows = list(client.pages("studies/", name=given))
    if len(rows) > 1:
        raise lookup.ambiguous(given, rows)
    if rows:
        return rows[0]
    if given.isdigit():
        return client.get(f"studies/{given}/")
    raise ClientError(f"There is no study {given}. See: aip study list", NOT_FOUND)


def study_list(args: argparse.Namespace) -> None:
    rows = args.client.pages("studies/", limit=args.limit, state=args.state, search=args.search)
    show_list(args, rows, COLUMNS, empty="No studies yet. Begin one: aip study create --help")


def show(args: argparse.Namespace) -> None:
    row = args.client.get(f"studies/{find(args.client, args.study)['id']}/")
    if args.json:
        output.as_json(row)
    else:
        output.record(row, FIELDS)


def trials(args: argparse.Namespace) -> None:
    row = find(args.client, args.study)
    rows = args.client.get(f"studies/{row['id']}/trials/")
    columns: list[Column] = [
        ("trial", "number"),
        ("state", "state"),
        ("training", "training"),
        *((one["key"], _value_at(place)) for place, one in enumerate(row["objectives"])),
        *((one["name"], _param(one["name"])) for one in row["space"]),
        ("", lambda one: "best" if one["best"] else ""),
    ]
    if args.json:
        output.as_json(rows)
    else:
        output.table(rows, columns, empty="No trial has begun yet.")


def _value_at(place: int) -> Any:
    def value(row: Mapping[str, Any]) -> str:
        if place < len(row["values"]):
            return f"{row['values'][place]:.5g}"
        return f"({row['so_far']:.5g})" if place == 0 and row["so_far"] is not None else ""

    return value


def _param(name: str) -> Any:
    return lambda row: _figure(row["params"].get(name, ""))


def importance(args: argparse.Namespace) -> None:
    number = find(args.client, args.study)["id"]
    found = args.client.get(f"studies/{number}/importance/", evaluator=args.evaluator, objective=args.objective)
    if args.json:
        output.as_json(found)
        return
    rows = [{"name": name, "share": f"{100 * share:.1f} %"} for name, share in found["importance"].items()]
    columns: list[Column] = [("parameter", "name"), ("share", "share")]
    output.table(rows, columns, empty="Too few trials have completed to say so.")


def wait(args: argparse.Namespace) -> int:
    return _until_over(args, find(args.client, args.study)["id"])


def _until_over(args: argparse.Namespace, number: int, *, pause: Any = time.sleep) -> int:
    last = ""
    while True:
        row = waiting.read(args.client, f"studies/{number}/")
        line = ", ".join(f"{count} {state}" for state, count in row["counts"].items() if count)
        if line != last and not args.json:
            output.say(f"{row['state']}: {line}" if line else row["state"])
        last = line
        if row["state"] in OVER:
            if args.json:
                output.as_json(row)
            else:
                output.say(output.clean(row["sentence"]))
                output.say(_best(row))
            return OK if row["state"] == "done" else JOB_FAILED
        pause(2.0)


def steer(args: argparse.Namespace) -> None:
    row = args.client.post(f"studies/{find(args.client, args.study)['id']}/{args.verb}/")
    words = {"pause": "begins no new trials", "resume": "goes on", "stop": "ends with all of its trials"}
    done(args, row, f"Study {output.clean(row['name'])} {words[args.verb]}.")


def delete(args: argparse.Namespace) -> None:
    row = find(args.client, args.study)
    confirm(args, f"Delete the study {row['name']}?")
    args.client.call("DELETE", f"studies/{row['id']}/")
    done(args, {"id": row["id"]}, f"Study {output.clean(row['name'])} is deleted.")


def enqueue(args: argparse.Namespace) -> None:
    number = find(args.client, args.study)["id"]
    row = args.client.post(f"studies/{number}/enqueue/", {"params": pairs(args.param)}, once=True)
    done(args, row, "They are tried next.")


def best(args: argparse.Namespace) -> None:
    number = find(args.client, args.study)["id"]
    body = {"trial": args.trial, "params": pairs(args.param)}
    row = args.client.post(f"studies/{number}/best/", body, once=True)
    done(args, row, f"Queued as training {row['id']}. Watch it: aip train logs -f {row['id']}")
