"""`aip pipeline`: pipelines as files, their runs, triggers and approvals."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aiplatform.client import output, waiting
from aiplatform.client.commands import lookup, pipeline_files
from aiplatform.client.errors import FAILURE, JOB_FAILED, NOT_FOUND, OK, USAGE, ClientError
from aiplatform.client.options import LIMIT, YES, either, flag, option, pairs, repeated
from aiplatform.client.output import ago, columns, titled
from aiplatform.client.verbs import Verb, done

TRIGGERS = columns(
    "id, pipeline, kind, on=|on, schedule=|schedule, next=next_times|next, owner, what=sentence",
    on=lambda row: "yes" if row["is_on"] else "no",
    schedule=lambda row: f"{row['schedule']} ({row['zone']})" if row["schedule"] else "",
    next=lambda times: ago((times or [""])[0]),
)
FIRINGS = columns("at=at|ago, run, answered=key, what=sentence")
TRIGGER = option("trigger", help="its id")


def _trigger_kind(args: argparse.Namespace) -> dict[str, str]:
    """Kind of the trigger; a schedule has further fields."""
    if args.schedule is not None:
        return {"kind": "cron", "zone": args.zone, "missed": args.missed}
    kinds = ("dataset", "drift", "alarm")
    return {"kind": next((kind for kind in kinds if getattr(args, kind) is not None), "webhook")}


def _next_step(args: argparse.Namespace, row: Any) -> str:
    if row["url"]:
        return f" Deliver to {args.client.config.url}{row['url']}, signed with the secret, which is shown only once."
    times = [f"{time[:16]}" for time in row["next_times"]]
    return f" Next (UTC): {', '.join(times)}." if times else ""


def _describe_rotation(args: argparse.Namespace, row: Any) -> str:
    until = f" The previous secret is valid until {row['older_until'][:16]} (UTC)." if row["older_until"] else ""
    return f"Secret of trigger {args.trigger}, shown only once.{until}"


def _find_service(client: Any, name: str) -> int:
    return int(lookup.service(client, name)["id"])


TRIGGER_VERBS = (
    Verb("triggers", "List triggers.",
         (option("pipeline", nargs="?", find=lookup.pipeline, help="only of this one: id or name"),),
         get="pipeline-triggers/", table=TRIGGERS,
         empty="No triggers. Create one: aip pipeline trigger"),
    Verb("trigger", "Create a trigger; its runs use your permissions.", (
        option("pipeline", find=lookup.pipeline, help="id or name"),
        either(
            option("--schedule", metavar="CRON", help="by schedule, such as \"30 2 * * SUN\""),
            option("--dataset", find=lookup.dataset, help="with each new version of a dataset: id or name"),
            option("--drift", metavar="SERVICE", field="service", find=_find_service,
                   help="on data drift at an endpoint of yours: id or name"),
            option("--alarm", metavar="RULE", nargs="?", const="", field="rule",
                   help="on an alert of the platform; default: any"),
            flag("--webhook", field="", help="on a signed request; prints the secret once"),
            required=True,
        ),
        option("--zone", default="", field="",
               help="time zone of the schedule, such as Europe/Berlin; default: yours"),
        option("--missed", choices=["latest", "all", "none"], default="latest", field="",
               help="missed times (latest)"),
        option("--busy", choices=["skip", "allow", "cancel"], default="skip", help="while a run is in progress (skip)"),
        repeated("-p", "--param", metavar="NAME=VALUE", field="parameters", convert=pairs, default=[],
                 help="a parameter of its runs"),
    ), post="pipeline-triggers/", send=_trigger_kind, once=True, prints="secret",
         done=lambda args, row: f"Trigger {row['id']} is on.{_next_step(args, row)}"),
    Verb("switch", "Enable or disable a trigger.", (
        TRIGGER,
        option("to", choices=["on", "off"], field="is_on", convert=lambda state: state == "on"),
        option("--version", type=int, help="the version saved by another user that it runs from now on"),
    ), patch="pipeline-triggers/{trigger}/",
         done="Trigger {args.trigger} is {args.to}. It runs version {row[version]}."),
    Verb("rotate", "Create a new webhook secret, printed once; the previous one remains valid for a day.", (
        TRIGGER, flag("--at-once", help="revoke older secrets now: they may be known to others"),
    ), post="pipeline-triggers/{trigger}/rotate/", prints="secret", done=_describe_rotation),
    Verb("firings", "List the history of a trigger.", (TRIGGER,),
         get="pipeline-triggers/{trigger}/firings/", table=FIRINGS, empty="The trigger has not fired yet."),
    Verb("untrigger", "Delete a trigger; its runs are kept.", (TRIGGER,),
         delete="pipeline-triggers/{trigger}/", done="Deleted trigger {args.trigger}."),
)  # fmt: skip


FINAL = {"ok", "failed", "cancelled"}
POLL_S = 2.0  # between reads of a run that is waited for
NAMED = "id, NAME, or NAME:VERSION"
COLUMNS = columns("id, name, owner, version, runs, last=last_state, changed=updated_at|ago")
FIELDS = titled(COLUMNS) + columns(
    "Visibility=visibility, Steps=spec.steps|joined, Parameters=spec.parameters|joined, Description=description"
)
RUNS = columns("id, pipeline=pipeline_name, run=number, version, state, owner, began=started|ago, what=sentence")
STEPS = columns(
    "step, state, attempt, items=items|counts, job, took=elapsed_s|duration, what=message",
    counts=lambda items: ", ".join(f"{count} {state}" for state, count in sorted((items or {}).items())),
)
QUESTIONS = columns("id, run, step, question, people=people|joined, until=expires_at|ago")


def _pull(args: argparse.Namespace) -> None:
    pipeline_files.path(args.file)
    row, number = _version(args, args.pipeline or Path(args.file).stem)
    pipeline_files.write(args.client, args.file, row["spec"], row["layout"], row["name"])
    done(args, {"file": args.file, "version": number}, f"Version {number} of {row['name']} is in {args.file}.")


def _push(args: argparse.Namespace) -> int:
    source = pipeline_files.read(args.client, args.file)
    problems = args.client.post("pipelines/check/", {"spec": source.spec})["problems"]
    if _has_errors(problems) and not args.anyway:
        _print_problems(args, problems)
        output.say("Nothing was saved. Fix this, or add --anyway.")
        return FAILURE
    name, body = args.pipeline or Path(args.file).stem, {"spec": source.spec, "layout": source.layout}
    try:
        number = lookup.pipeline(args.client, name)
    except ClientError as exc:
        if name.isdigit() or exc.exit_code != NOT_FOUND:
            raise
        row = args.client.post("pipelines/", {"name": name, **body}, once=True)
        done(args, row, f"Created pipeline {name}.")
        return OK
    version = args.client.post(f"pipelines/{number}/versions/", {**body, "note": args.note})
    done(args, version, f"This is version {version['number']} of {name}.")
    return OK


def _check(args: argparse.Namespace) -> int:
    spec = pipeline_files.read(args.client, args.file).spec
    problems = args.client.post("pipelines/check/", {"spec": spec})["problems"]
    _print_problems(args, problems)
    if not _has_errors(problems):
        output.say("The pipeline can run.")
    return FAILURE if _has_errors(problems) else OK


def _has_errors(problems: list[Any]) -> bool:
    """Whether one of them keeps the pipeline from running."""
    return any(problem.get("level") != "warning" for problem in problems)


def _print_problems(args: argparse.Namespace, problems: list[Any]) -> None:
    if args.json:
        output.as_json(problems)
        return
    for problem in problems:
        where = ".".join(part for part in (problem["step"], problem["field"]) if part)
        line = f"{where}: {problem['message']}" if where else problem["message"]
        print(output.clean(f"Warning: {line}" if problem.get("level") == "warning" else line))


def _diff(args: argparse.Namespace) -> None:
    if args.new is None and not pipeline_files.is_file(args.old):
        raise ClientError("Specify two, or a file, which is compared with its pipeline.", USAGE)
    old, new = (args.old, args.new) if args.new else (Path(args.old).stem, args.old)
    body = {"old": _spec(args, old), "new": _spec(args, new)}
    changes = args.client.post(f"{pipeline_files.TEXTS}compare/", body)["changes"]
    if args.json:
        output.as_json(changes)
        return
    for change in changes:
        print(output.clean(change["sentence"]))
    if not changes:
        output.say("Both are identical.")


def _spec(args: argparse.Namespace, text: str) -> Any:
    return (
        pipeline_files.read(args.client, text).spec if pipeline_files.is_file(text) else _version(args, text)[0]["spec"]
    )


def _version(args: argparse.Namespace, text: str) -> tuple[Any, int]:
    """A pipeline with the specification of the version that was named, else of its newest, and its number."""
    name, number = _split(text)
    row = args.client.get(f"pipelines/{lookup.pipeline(args.client, name)}/")
    if number is None:
        if row["spec"] is None:
            raise ClientError(f"{name} has no version yet.", NOT_FOUND)
        return row, row["version"]
    for version in args.client.get(f"pipelines/{row['id']}/versions/"):
        if version["number"] == number:
            return row | {"spec": version["spec"]}, number
    raise ClientError(f"{name} has no version {number}.", NOT_FOUND)


def _split(text: str) -> tuple[str, int | None]:
    """ "cells:3" is ("cells", 3)."""
    name, colon, number = text.rpartition(":")
    return (name, int(number)) if colon and number.isascii() and number.isdigit() else (text, None)


def _run(args: argparse.Namespace) -> int:
    name, version = _split(args.pipeline)
    body: dict[str, Any] = {"version": version, "parameters": pairs(args.param), "fail_fast": args.fail_fast}
    body |= {"use_cache": not args.fresh} | ({"limit": args.limit} if args.limit else {})
    row = args.client.post(f"pipelines/{lookup.pipeline(args.client, name)}/runs/", body, once=True)
    if args.wait:
        row = until_over(args, row["id"])
        output.as_json(row) if args.json else _print_steps(args, row)
        return OK if row["state"] == "ok" else JOB_FAILED
    if not args.json:
        print(row["id"])
    done(args, row, f"{_describe_run(row)} began: {args.client.config.url}{row['url']}")
    return OK


def until_over(args: argparse.Namespace, number: int, *, pause: Callable[[float], None] = time.sleep) -> Any:
    """Wait for the end of a run; each step that asks a person is told once."""
    announced: set[str] = set()
    while True:
        row = waiting.read(args.client, f"pipeline-runs/{number}/")
        asking = {name for name, step in row["steps"].items() if step["state"] == "asking"}
        for name in sorted(asking - announced):
            output.say(f"{name} requests approval: {args.client.config.url}{row['url']}")
        announced |= asking
        if row["state"] in FINAL:
            return row
        pause(POLL_S)


def _print_steps(args: argparse.Namespace, row: Any) -> None:
    waits = [{"step": name, "state": "waiting"} for name in row["spec"]["steps"] if name not in row["steps"]]
    output.table([{"step": name, **step} for name, step in row["steps"].items()] + waits, STEPS)
    output.say(f"{_describe_run(row)}: {row['state']}. {output.clean(row.get('sentence') or '')}".rstrip())


def _describe_run(row: Any) -> str:
    """How users name a run; commands take its id."""
    return output.clean(f"Run {row['number']} of {row['pipeline_name']} (id {row['id']})")


RUN = option("number", metavar="RUN", help="its id")
STEP = option("step")
PARAM = repeated("-p", "--param", metavar="NAME=VALUE", help="a parameter of this run")
FRESH = flag("--fresh", field="use_cache", convert=lambda fresh: not fresh, help="do not reuse results of earlier runs")
FILE = option("file")
NAME = option("--pipeline", help=f"{NAMED}; default: the file name")
STORED = option("pipeline", find=lookup.pipeline, help="id or name")
PIPELINE = option("pipeline", nargs="?", find=lookup.pipeline, help="only of this one: id or name")

NOUNS = {
    "pipeline": (
        Verb("list", "List pipelines.",
             (option("--search", help="only names that contain this text"), LIMIT),
             get="pipelines/", table=COLUMNS, empty="No pipelines yet. Create one: aip pipeline push FILE"),
        Verb("show", "Show a pipeline and its steps.", (STORED,), get="pipelines/{pipeline}/", record=FIELDS),
        Verb("pull", "Write a pipeline to a file: .yaml, .py or .json. Comments in YAML are kept.", (FILE, NAME),
             run=_pull),
        Verb("push", "Save a file as the newest version; a new pipeline is created if needed.", (
            option("file", help="YAML, JSON, or Python, which runs locally"),
            NAME,
            option("--note", default="", help="description of the changes"),
            flag("--anyway", help="even if it cannot run yet"),
        ), run=_push),
        Verb("check", "Check whether a file can run; exit code 1 if not.", (FILE,), run=_check),
        Verb("diff", "Show differences between files or versions, step by step.", (
            option("old", help=f"file, or pipeline as {NAMED}"),
            option("new", nargs="?", help="default: OLD is a file, and is compared with its pipeline"),
        ), run=_diff),
        Verb("versions", "List the versions of a pipeline.", (STORED,), get="pipelines/{pipeline}/versions/",
             table=columns("version=number, note, saved by=created_by, saved=created_at|ago")),
        Verb("delete", "Delete a pipeline with its versions.", (STORED, YES), delete="pipelines/{pipeline}/",
             confirm="Delete pipeline {args.pipeline}?", done="Deleted pipeline {args.pipeline}."),
        Verb("run", "Start a run.", (
            option("pipeline", help=NAMED),
            PARAM,
            option("--limit", type=int, help="steps and items at once"),
            flag("--fail-fast", help="start no more steps after a failure"),
            FRESH,
            flag("--wait", help="wait for the end; exit code 6 on failure"),
        ), run=_run),
        Verb("runs", "List runs.", (PIPELINE, option("--state", choices=["running", *sorted(FINAL)]), LIMIT),
             get="pipeline-runs/", table=RUNS, empty="No runs. Start one: aip pipeline run NAME"),
        Verb("status", "Show the steps of a run.", (RUN,), get="pipeline-runs/{number}/", show=_print_steps),
        Verb("cancel", "Start no more steps, and stop running ones.", (RUN,),
             post="pipeline-runs/{number}/cancel/", done="Requested a cancellation of run {args.number}."),
        Verb("retry", "Run a step again, with all later steps.", (RUN, STEP, FRESH),
             post="pipeline-runs/{number}/retry/", done="{args.step} and all later steps run again."),
        Verb("skip", "Skip a waiting step, with the steps that need it.", (RUN, STEP),
             post="pipeline-runs/{number}/skip/", done="{args.step} is skipped."),
        Verb("questions", "List approval requests for you.",
             get="pipeline-approvals/", table=QUESTIONS, empty="No approval requests for you."),
        Verb("approve", "Answer an approval request.", (
            option("question", help="its id"),
            flag("--refuse", field="answer", convert=lambda refuse: "refused" if refuse else "passed",
                 help="answer no"),
            option("--comment", default="", help="why"),
        ), post="pipeline-approvals/{question}/answer/",
             done=lambda args, row: f"Question {args.question}: {'refused' if args.refuse else 'passed'}."),
        *TRIGGER_VERBS,
    ),
}  # fmt: skip
