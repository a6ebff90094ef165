"""`aip pipeline`: pipelines as files, their runs, and questions that they put."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aiplatform.client import output, waiting
from aiplatform.client.commands import lookup, pipeline_files, pipeline_triggers
from aiplatform.client.commands.verbs import Noun, Nouns, Parent, done, paging, pairs, show_list, show_one
from aiplatform.client.errors import FAILURE, JOB_FAILED, NOT_FOUND, OK, USAGE, ClientError
from aiplatform.client.output import Column

OVER = {"ok", "failed", "cancelled"}
EVERY_S = 2.0  # between looks at a run that is waited for
NAMED = "id, NAME, or NAME:VERSION"
LISTED: list[Column] = [
    ("id", "id"),
    ("name", "name"),
    ("owner", "owner"),
    ("version", "version"),
    ("runs", "runs"),
    ("last", "last_state"),
    ("changed", lambda row: output.ago(row.get("updated_at"))),
]
SHOWN: list[Column] = [
    *((name.capitalize(), key) for name, key in LISTED),
    ("Visibility", "visibility"),
    ("Steps", lambda row: ", ".join((row.get("spec") or {}).get("steps") or {})),
    ("Parameters", lambda row: ", ".join((row.get("spec") or {}).get("parameters") or {})),
    ("Description", "description"),
]
RUNS: list[Column] = [
    ("id", "id"),
    ("pipeline", "pipeline_name"),
    ("run", "number"),
    ("version", "version"),
    ("state", "state"),
    ("owner", "owner"),
    ("began", lambda row: output.ago(row.get("started"))),
    ("what", "sentence"),
]
STEPS: list[Column] = [
    ("step", "step"),
    ("state", "state"),
    ("attempt", "attempt"),
    ("items", lambda row: ", ".join(f"{count} {state}" for state, count in sorted((row.get("items") or {}).items()))),
    ("job", "job"),
    ("took", lambda row: output.duration(row.get("elapsed_s"))),
    ("what", "message"),
]
QUESTIONS: list[Column] = [
    ("id", "id"),
    ("run", "run"),
    ("step", "step"),
    ("question", "question"),
    ("people", lambda row: ", ".join(row.get("people") or [])),
    ("until", lambda row: output.ago(row.get("expires_at"))),
]


def add(nouns: Nouns, parent: Parent) -> None:
    pipeline = Noun(nouns, parent, "pipeline", "Pipelines: steps on data and models.", also=("pipelines",))
    _files(pipeline)
    _runs(pipeline)
    pipeline_triggers.add(pipeline)


def _files(pipeline: Noun) -> None:
    verb = pipeline.verb("list", listed, "List pipelines you can see.")
    verb.add_argument("--search", help="only names that contain this")
    paging(verb)
    pipeline.verb("show", show, "Show a pipeline and its steps.").add_argument("pipeline", help="id or name")
    verb = pipeline.verb("pull", pull, "Write a pipeline to a file: .yaml, .py or .json. Comments in YAML stay.")
    verb.add_argument("file")
    _whose(verb)
    verb = pipeline.verb("push", push, "Save a file as the newest version; a pipeline that is not there is made.")
    verb.add_argument("file", help="YAML, JSON, or Python, which runs here")
    _whose(verb)
    verb.add_argument("--note", default="", help="what is new, in a few words")
    verb.add_argument("--anyway", action="store_true", help="also where it could not run yet")
    pipeline.verb("check", check, "Tell what keeps a file from running; 1 where something does.").add_argument("file")
    verb = pipeline.verb("diff", diff, "Tell what differs between a file or version and another, step by step.")
    verb.add_argument("old", help=f"file, or pipeline as {NAMED}")
    verb.add_argument("new", nargs="?", help="left out: OLD is a file, and is compared with its pipeline")


def _runs(pipeline: Noun) -> None:
    verb = pipeline.verb("run", run, "Begin a run.")
    verb.add_argument("pipeline", help=NAMED)
    verb.add_argument("-p", "--param", action="append", metavar="NAME=VALUE", help="a parameter of this run")
    verb.add_argument("--limit", type=int, help="steps and items at once")
    verb.add_argument("--fail-fast", action="store_true", help="begin nothing more once a step has failed")
    verb.add_argument("--fresh", action="store_true", help="take no results of earlier runs")
    verb.add_argument("--wait", action="store_true", help="wait for the end; 6 when it failed")
    verb = pipeline.verb("runs", runs, "List runs.")
    verb.add_argument("pipeline", nargs="?", help="only of this one: id or name")
    verb.add_argument("--state", choices=["running", *sorted(OVER)])
    paging(verb)
    pipeline.verb("status", status, "Show the steps of a run.").add_argument("number", metavar="RUN", help="its id")
    pipeline.verb("cancel", cancel, "Begin nothing more, and stop what is under way.").add_argument(
        "number", metavar="RUN", help="its id"
    )
    verb = pipeline.verb("retry", retry, "Do a step of a run again, and all that comes after it.")
    verb.add_argument("number", metavar="RUN", help="its id")
    verb.add_argument("step")
    verb.add_argument("--fresh", action="store_true", help="take no results of earlier runs")
    verb = pipeline.verb("skip", skip, "Leave out a step that waits, and with it what needs it.")
    verb.add_argument("number", metavar="RUN", help="its id")
    verb.add_argument("step")
    pipeline.verb("questions", questions, "List open questions that are put to you.")
    verb = pipeline.verb("approve", approve, "Answer a question with yes, or with no.")
    verb.add_argument("question", help="its id")
    verb.add_argument("--refuse", action="store_true", help="answer no")
    verb.add_argument("--comment", default="", help="why")


def _whose(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--pipeline", help=f"{NAMED}; left out: as the file is called")


def listed(args: argparse.Namespace) -> None:
    rows = args.client.pages("pipelines/", limit=args.limit, search=args.search)
    show_list(args, rows, LISTED, empty="No pipelines yet. aip pipeline push FILE makes one.")


def show(args: argparse.Namespace) -> None:
    show_one(args, args.client.get(f"pipelines/{lookup.pipeline(args.client, args.pipeline)}/"), SHOWN)


def pull(args: argparse.Namespace) -> None:
    given = args.pipeline or Path(args.file).stem
    pipeline_files.path(args.file)
    row, number = _version(args, given)
    pipeline_files.write(args.client, args.file, row["spec"], row["layout"], row["name"])
    done(args, {"file": args.file, "version": number}, f"Version {number} of {row['name']} is in {args.file}.")


def push(args: argparse.Namespace) -> int:
    given = pipeline_files.read(args.client, args.file)
    found = args.client.post("pipelines/check/", {"spec": given.spec})["problems"]
    if _stops(found) and not args.anyway:
        _tell(args, found)
        output.say("Nothing was saved. Mend this, or add --anyway.")
        return FAILURE
    name, body = args.pipeline or Path(args.file).stem, {"spec": given.spec, "layout": given.layout}
    try:
        number = lookup.pipeline(args.client, name)
    except ClientError as exc:
        if name.isdigit() or exc.exit_code != NOT_FOUND:
            raise
        made = args.client.post("pipelines/", {"name": name, **body}, once=True)
        done(args, made, f"Pipeline {name} was made.")
        return OK
    version = args.client.post(f"pipelines/{number}/versions/", {**body, "note": args.note})
    done(args, version, f"This is version {version['number']} of {name}.")
    return OK


def check(args: argparse.Namespace) -> int:
    spec = pipeline_files.read(args.client, args.file).spec
    found = args.client.post("pipelines/check/", {"spec": spec})["problems"]
    _tell(args, found)
    if not _stops(found):
        output.say("It can run.")
    return FAILURE if _stops(found) else OK


def _stops(problems: list[Any]) -> bool:
    """Whether one of them keeps the pipeline from running."""
    return any(one.get("level") != "warning" for one in problems)


def _tell(args: argparse.Namespace, problems: list[Any]) -> None:
    if args.json:
        output.as_json(problems)
        return
    for one in problems:
        where = ".".join(part for part in (one["step"], one["field"]) if part)
        said = f"{where}: {one['message']}" if where else one["message"]
        print(output.clean(f"Warning: {said}" if one.get("level") == "warning" else said))


def diff(args: argparse.Namespace) -> None:
    if args.new is None and not pipeline_files.is_file(args.old):
        raise ClientError("Give two, or a file, which is compared with its pipeline.", USAGE)
    old, new = (args.old, args.new) if args.new else (Path(args.old).stem, args.old)
    body = {"old": _spec(args, old), "new": _spec(args, new)}
    changes = args.client.post(f"{pipeline_files.TEXTS}compare/", body)["changes"]
    if args.json:
        output.as_json(changes)
        return
    for change in changes:
        print(output.clean(change["sentence"]))
    if not changes:
        output.say("They are the same.")


def _spec(args: argparse.Namespace, given: str) -> Any:
    return (
        pipeline_files.read(args.client, given).spec
        if pipeline_files.is_file(given)
        else _version(args, given)[0]["spec"]
    )


def _version(args: argparse.Namespace, given: str) -> tuple[Any, int]:
    """A pipeline with the specification of the version that was named, else of its newest, and its number."""
    name, number = _split(given)
    row = args.client.get(f"pipelines/{lookup.pipeline(args.client, name)}/")
    if number is None:
        if row["spec"] is None:
            raise ClientError(f"{name} has no version yet.", NOT_FOUND)
        return row, row["version"]
    for version in args.client.get(f"pipelines/{row['id']}/versions/"):
        if version["number"] == number:
            return row | {"spec": version["spec"]}, number
    raise ClientError(f"{name} has no version {number}.", NOT_FOUND)


def _split(given: str) -> tuple[str, int | None]:
    """ "cells:3" is ("cells", 3)."""
    name, colon, number = given.rpartition(":")
    return (name, int(number)) if colon and number.isascii() and number.isdigit() else (given, None)


def run(args: argparse.Namespace) -> int:
    name, version = _split(args.pipeline)
    body: dict[str, Any] = {"version": version, "parameters": pairs(args.param), "fail_fast": args.fail_fast}
    body |= {"use_cache": not args.fresh} | ({"limit": args.limit} if args.limit else {})
    row = args.client.post(f"pipelines/{lookup.pipeline(args.client, name)}/runs/", body, once=True)
    if args.wait:
        row = until_over(args, row["id"])
        _show_steps(args, row)
        return OK if row["state"] == "ok" else JOB_FAILED
    if not args.json:
        print(row["id"])
    done(args, row, f"{_run(row)} began: {args.client.config.url}{row['url']}")
    return OK


def until_over(args: argparse.Namespace, number: int, *, pause: Callable[[float], None] = time.sleep) -> Any:
    """Wait for the end of a run; each step that asks a person is told once."""
    told: set[str] = set()
    while True:
        row = waiting.read(args.client, f"pipeline-runs/{number}/")
        asking = {name for name, step in row["steps"].items() if step["state"] == "asking"}
        for name in sorted(asking - told):
            output.say(f"{name} asks a person: {args.client.config.url}{row['url']}")
        told |= asking
        if row["state"] in OVER:
            return row
        pause(EVERY_S)


def runs(args: argparse.Namespace) -> None:
    number = lookup.pipeline(args.client, args.pipeline) if args.pipeline else None
    rows = args.client.pages("pipeline-runs/", limit=args.limit, pipeline=number, state=args.state)
    show_list(args, rows, RUNS, empty="No runs. aip pipeline run NAME begins one.")


def status(args: argparse.Namespace) -> None:
    _show_steps(args, args.client.get(f"pipeline-runs/{args.number}/"))


def _show_steps(args: argparse.Namespace, row: Any) -> None:
    if args.json:
        output.as_json(row)
        return
    waits = [{"step": name, "state": "waiting"} for name in row["spec"]["steps"] if name not in row["steps"]]
    output.table([{"step": name, **step} for name, step in row["steps"].items()] + waits, STEPS)
    output.say(f"{_run(row)}: {row['state']}. {output.clean(row.get('sentence') or '')}".rstrip())


def _run(row: Any) -> str:
    """How people call a run; commands take its id."""
    return output.clean(f"Run {row['number']} of {row['pipeline_name']} (id {row['id']})")


def cancel(args: argparse.Namespace) -> None:
    row = args.client.post(f"pipeline-runs/{args.number}/cancel/")
    done(args, row, f"Run {args.number} is asked to end.")


def retry(args: argparse.Namespace) -> None:
    row = args.client.post(f"pipeline-runs/{args.number}/retry/", {"step": args.step, "use_cache": not args.fresh})
    done(args, row, f"{args.step} and what comes after it are done again.")


def skip(args: argparse.Namespace) -> None:
    row = args.client.post(f"pipeline-runs/{args.number}/skip/", {"step": args.step})
    done(args, row, f"{args.step} is left out.")


def questions(args: argparse.Namespace) -> None:
    show_list(args, args.client.pages("pipeline-approvals/"), QUESTIONS, empty="Nothing is asked of you.")


def approve(args: argparse.Namespace) -> None:
    answer = "refused" if args.refuse else "passed"
    body = {"answer": answer, "comment": args.comment}
    row = args.client.post(f"pipeline-approvals/{args.question}/answer/", body)
    done(args, row, f"Question {args.question}: {answer}.")
