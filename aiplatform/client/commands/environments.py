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
FIELDS = COLUMNS + columns("opens=opens|joined, last used=alive_at|ago, activity=alive_by, stops=stops_at, url")
WAIT = flag("--wait", field="", help="wait until JupyterLab responds")
REQUEST = (
    option("name", nargs="?", help="default: generated"),
    option("--description"),
    option("--folder", help="start folder of JupyterLab in your home; created if missing"),
    option("--code", type=Path, metavar="FOLDER", field="", help="a local folder to copy there"),
    repeated("--data", metavar="NAME[:VERSION]", field="datasets", find=lookup.any_version,
             help="a dataset to mount; can be repeated"),
    option("--image", metavar="NAME[:TAG]", find=lookup.image, help="image with JupyterLab: aip images list"),
    *resources.variable_options(),
    option("--idle-hours", type=float, help="stop after this time without activity"),
    option("--nodes", type=int, metavar="N", help="number of nodes of a distributed workspace"),
    *resources.options(root=True),
    option("--max-runtime", metavar="8h", field="max_runtime_s", convert=seconds, help="maximum run time"),
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
    output.say(f"Workspace {row['id']} {output.clean(row['name'])}: {args.client.config.url}{row['url']}")
    _wait(args, row)
    return OK


def _open(args: argparse.Namespace) -> None:
    row = args.client.post(f"jobs/{args.id}/ports/{'vscode' if args.vscode else 'jupyter'}/open/")
    if args.json or args.print:
        output.as_json(row) if args.json else print(row["url"])
    elif not webbrowser.open(row["url"]):
        raise ClientError(f"No browser found. Open this within half a minute: {row['url']}")


def _restore(args: argparse.Namespace) -> None:
    row = args.client.post(f"jobs/{args.id}/restore/")
    output.say(f"Workspace {args.id} was requeued.")
    _wait(args, {**row, "id": args.id})


def _describe_extension(args: argparse.Namespace, row: Any) -> str:
    if row["granted"]:
        return f"Workspace {args.id} can run {args.hours:g} h longer."
    return f"The cluster administrators were asked for {args.hours:g} h more."


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
        Verb("list", "List workspaces.", (option("--state", help="only in this state, such as running"), LIMIT),
             get="environments/", table=COLUMNS, empty="No workspaces yet. Start one: aip env create"),
        Verb("show", "Show one workspace.", (ID,), get="environments/{id}/", record=FIELDS),
        Verb("create", "Start a workspace.",
             (*REQUEST, flag("--dry-run", help="check whether it can start, without submitting"), WAIT), run=_create),
        Verb("open", "Open JupyterLab, or VS Code if available, in your browser.", (
            ID,
            flag("--vscode", help="VS Code; started if it is not running"),
            flag("--print", help="print the address, valid once within half a minute"),
        ), run=_open),
        Verb("stop", "Stop a workspace; its files and packages are kept.", (ID,),
             post="jobs/{id}/stop/", done="Requested a stop of workspace {args.id}."),
        Verb("restore", "Restart a stopped workspace, with its files and packages.", (ID, WAIT), run=_restore),
        Verb("extend", "Extend the run time of a workspace.", (
            ID, option("--hours", type=float, default=2.0, help="additional hours (2)"),
        ), post="environments/{id}/extend/", once=True, done=_describe_extension),
        Verb("keep", "Keep an inactive workspace running.", (ID,),
             post="environments/{id}/keep/", done="Workspace {args.id} is kept running."),
        Verb("delete", "Delete a stopped workspace with its installed packages.", (
            option("id", find=lambda client, number: client.get(f"environments/{number}/")), YES,
        ), delete="environments/{id}/", done="Deleted workspace {args.id}. Your home folder is kept.",
             confirm="Delete workspace {args.id} {row[name]} with its installed packages?"),
    ),
}  # fmt: skip
