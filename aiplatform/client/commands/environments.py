"""`aip env`: development environments."""

from __future__ import annotations

import argparse
import webbrowser
from pathlib import Path
from typing import Any

from aiplatform.client import output, tus, waiting, working_folder
from aiplatform.client.commands import lookup, resources
from aiplatform.client.commands.submitting import seconds
from aiplatform.client.errors import OK, ClientError
from aiplatform.client.options import ID, LIMIT, YES, fields, flag, option, repeated
from aiplatform.client.output import columns
from aiplatform.client.verbs import Verb, done, show_one


def _condition(row: Any) -> str:
    """What it is doing, or the state of its job while it does not run."""
    return str(row.get("condition") or waiting.state_of(row))


COLUMNS = columns(
    "id, name, state=|condition, image, folder=folder|home, left=left_s|duration, owner",
    condition=_condition,
    home=lambda folder: f"~/{folder or ''}",
)
FIELDS = COLUMNS + columns("opens=opens|joined, last used=alive_at|ago, used by=alive_by, stops=stops_at, url")
WAIT = flag("--wait", field="", help="wait until JupyterLab answers")
REQUEST = (
    option("name", nargs="?", help="made of yours when left out"),
    option("--description"),
    option("--folder", help="in your home, where JupyterLab opens; made where it is missing"),
    option("--code", type=Path, metavar="FOLDER", field="", help="a folder of this machine to copy there"),
    repeated("--data", metavar="NAME[:VERSION]", field="datasets", find=lookup.any_version,
             help="a dataset to read; repeat for more"),
    *resources.variable_options(),
    option("--idle-hours", type=float, help="stop it when unused for so long"),
    option("--nodes", type=int, metavar="N", help="a distributed one on so many machines"),
    *resources.options(),
    option("--max-runtime", metavar="8h", field="max_runtime_s", convert=seconds, help="longest run time"),
)  # fmt: skip


def _create(args: argparse.Namespace) -> int:
    body = fields(args, REQUEST) | resources.variable_fields(args)
    if args.dry_run:
        verdict = args.client.post("environments/preview/", body)
        done(args, verdict, output.clean(verdict.get("sentence", "")))
        return OK
    if args.code and (source := working_folder.pack(args.code)) is not None:
        body["code_upload"] = tus.upload(args.client, source, quiet=args.json)
    row = args.client.post("environments/", body, once=True)
    if not args.json and not args.wait:
        print(row["id"])
    output.say(f"Environment {row['id']} {output.clean(row['name'])}: {args.client.config.url}{row['url']}")
    _wait(args, row)
    return OK


def _open(args: argparse.Namespace) -> None:
    row = args.client.post(f"jobs/{args.id}/ports/{'vscode' if args.vscode else 'jupyter'}/open/")
    if args.json or args.print:
        output.as_json(row) if args.json else print(row["url"])
    elif not webbrowser.open(row["url"]):
        raise ClientError(f"There is no browser here. Open this within half a minute: {row['url']}")


def _restore(args: argparse.Namespace) -> None:
    row = args.client.post(f"jobs/{args.id}/restore/")
    output.say(f"Environment {args.id} was queued again.")
    _wait(args, {**row, "id": args.id})


def _describe_extension(args: argparse.Namespace, row: Any) -> str:
    if row["granted"]:
        return f"Environment {args.id} may run {args.hours:g} h longer."
    return f"Those in charge of its cluster were asked for {args.hours:g} h more."


def _wait(args: argparse.Namespace, row: Any) -> None:
    if not args.wait:
        if args.json:
            output.as_json(row)
        return
    row = waiting.until_over(args.client, f"environments/{row['id']}/", until={"ready", "idle"}, word=_condition)
    if _condition(row) not in ("ready", "idle"):
        raise waiting.ended_early(row)
    show_one(args, row, FIELDS)


NOUNS = {
    "env": (
        Verb("list", "List environments.", (option("--state", help="only in this state, such as running"), LIMIT),
             get="environments/", table=COLUMNS, empty="No environments yet. Start one: aip env create"),
        Verb("show", "Show one environment.", (ID,), get="environments/{id}/", record=FIELDS),
        Verb("create", "Start an environment.",
             (*REQUEST, flag("--dry-run", help="say whether it fits, queue nothing"), WAIT), run=_create),
        Verb("open", "Open JupyterLab, or VS Code where there is one, in your browser.", (
            ID,
            flag("--vscode", help="VS Code, started where it does not run yet"),
            flag("--print", help="print the address, good once and for half a minute"),
        ), run=_open),
        Verb("stop", "Stop one; its files and packages stay.", (ID,),
             post="jobs/{id}/stop/", done="Asked to stop environment {args.id}."),
        Verb("restore", "Start a stopped one again, with its files and packages.", (ID, WAIT), run=_restore),
        Verb("extend", "Let one run longer.", (
            ID, option("--hours", type=float, default=2.0, help="how much longer (2)"),
        ), post="environments/{id}/extend/", once=True, done=_describe_extension),
        Verb("keep", "Say that you still need an idle one.", (ID,),
             post="environments/{id}/keep/", done="Noted: environment {args.id} is still needed."),
        Verb("delete", "Delete one that has ended, with the packages installed in it.", (
            option("id", find=lambda client, number: client.get(f"environments/{number}/")), YES,
        ), delete="environments/{id}/", done="Deleted environment {args.id}. Your home folder stays.",
             confirm="Delete environment {args.id} {row[name]} with the packages installed in it?"),
    ),
}  # fmt: skip
