"""`aip env`: development environments."""

from __future__ import annotations

import argparse
import webbrowser
from pathlib import Path
from typing import Any

from aiplatform.client import output, tus, waiting, working_folder
from aiplatform.client.commands import lookup, resources, variables
from aiplatform.client.commands.submitting import seconds
from aiplatform.client.commands.verbs import Noun, Nouns, Parent, confirm, done, paging, show_list, show_one
from aiplatform.client.errors import OK, ClientError
from aiplatform.client.output import Column


def _stands(row: Any) -> str:
    """What it is doing, or the state of its job while it does not run."""
    return str(row.get("condition") or waiting.state_of(row))


COLUMNS: list[Column] = [
    ("id", "id"),
    ("name", "name"),
    ("state", _stands),
    ("image", "image"),
    ("folder", lambda row: f"~/{row.get('folder') or ''}"),
    ("left", lambda row: output.duration(row.get("left_s"))),
    ("owner", "owner"),
]
FACTS: list[Column] = [
    *COLUMNS,
    ("opens", lambda row: ", ".join(row.get("opens") or ())),
    ("last used", lambda row: output.ago(row.get("alive_at"))),
    ("used by", "alive_by"),
    ("stops", "stops_at"),
    ("url", "url"),
]


def add(nouns: Nouns, parent: Parent) -> None:
    env = Noun(nouns, parent, "env", "Development environments: JupyterLab with your home folder.")
    verb = env.verb("list", environment_list, "List environments.")
    verb.add_argument("--state", help="only in this state, such as running")
    paging(verb)
    env.verb("show", show, "Show one environment.").add_argument("id")
    _create(env.verb("create", create, "Start an environment."))
    verb = env.verb("open", open_it, "Open JupyterLab, or VS Code where there is one, in your browser.")
    verb.add_argument("id")
    verb.add_argument("--vscode", action="store_true", help="VS Code, started where it does not run yet")
    verb.add_argument("--print", action="store_true", help="print the address, good once and for half a minute")
    verb = env.verb("stop", stop, "Stop one; its files and packages stay.")
    verb.add_argument("id")
    verb = env.verb("restore", restore, "Start a stopped one again, with its files and packages.")
    verb.add_argument("id")
    verb.add_argument("--wait", action="store_true", help="wait until JupyterLab answers")
    verb = env.verb("extend", extend, "Let one run longer.")
    verb.add_argument("id")
    verb.add_argument("--hours", type=float, default=2.0, help="how much longer (2)")
    env.verb("keep", keep, "Say that you still need an idle one.").add_argument("id")
    verb = env.verb("delete", delete, "Delete one that has ended, with the packages installed in it.")
    verb.add_argument("id")
    verb.add_argument("-y", "--yes", action="store_true", help="do not ask")


def _create(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("name", nargs="?", default="", help="made of yours when left out")
    verb.add_argument("--description", default="")
    verb.add_argument("--folder", default="", help="in your home, where JupyterLab opens; made where it is missing")
    verb.add_argument("--code", type=Path, metavar="FOLDER", help="a folder of this machine to copy there")
    verb.add_argument("--data", action="append", metavar="NAME[:VERSION]", help="a dataset to read; repeat for more")
    verb.add_argument("-e", "--env", action="append", metavar="NAME[=VALUE]", help="a variable; without value your own")
    verb.add_argument("--secret", action="append", metavar="NAME[=VALUE]", help="a variable that is hidden everywhere")
    verb.add_argument("--stored", action="append", metavar="NAME", help="your secret of this name, see aip secret")
    verb.add_argument("--idle-hours", type=float, help="stop it when unused for so long")
    verb.add_argument("--nodes", type=int, metavar="N", help="a distributed one on so many machines")
    resources.options(verb)
    verb.add_argument("--max-runtime", metavar="8h", help="longest run time")
    verb.add_argument("--dry-run", action="store_true", help="say whether it fits, queue nothing")
    verb.add_argument("--wait", action="store_true", help="wait until JupyterLab answers")


def environment_list(args: argparse.Namespace) -> None:
    rows = args.client.pages("environments/", limit=args.limit, state=args.state)
    show_list(args, rows, COLUMNS, empty="No environments yet. Start one: aip env create")


def show(args: argparse.Namespace) -> None:
    show_one(args, args.client.get(f"environments/{args.id}/"), FACTS)


def create(args: argparse.Namespace) -> int:
    fields = _fields(args)
    if args.dry_run:
        verdict = args.client.post("environments/preview/", fields)
        done(args, verdict, output.clean(verdict.get("sentence", "")))
        return OK
    if args.code and (source := working_folder.pack(args.code)) is not None:
        fields["code_upload"] = tus.upload(args.client, source, quiet=args.json)
    row = args.client.post("environments/", fields, once=True)
    if not args.json and not args.wait:
        print(row["id"])
    output.say(f"Environment {row['id']} {output.clean(row['name'])}: {args.client.config.url}{row['url']}")
    _ready(args, row)
    return OK


def open_it(args: argparse.Namespace) -> None:
    row = args.client.post(f"jobs/{args.id}/ports/{'vscode' if args.vscode else 'jupyter'}/open/")
    if args.json or args.print:
        output.as_json(row) if args.json else print(row["url"])
    elif not webbrowser.open(row["url"]):
        raise ClientError(f"There is no browser here. Open this within half a minute: {row['url']}")


def stop(args: argparse.Namespace) -> None:
    done(args, args.client.post(f"jobs/{args.id}/stop/"), f"Asked to stop environment {args.id}.")


def restore(args: argparse.Namespace) -> None:
    row = args.client.post(f"jobs/{args.id}/restore/")
    output.say(f"Environment {args.id} was queued again.")
    _ready(args, {**row, "id": args.id})


def extend(args: argparse.Namespace) -> None:
    row = args.client.post(f"environments/{args.id}/extend/", {"hours": args.hours}, once=True)
    asked = f"Those in charge of its cluster were asked for {args.hours:g} h more."
    done(args, row, f"Environment {args.id} may run {args.hours:g} h longer." if row["granted"] else asked)


def keep(args: argparse.Namespace) -> None:
    done(args, args.client.post(f"environments/{args.id}/keep/"), f"Noted: environment {args.id} is still needed.")


def delete(args: argparse.Namespace) -> None:
    row = args.client.get(f"environments/{args.id}/")
    confirm(args, f"Delete environment {args.id} {row['name']} with the packages installed in it?")
    args.client.delete(f"environments/{args.id}/")
    done(args, None, f"Deleted environment {args.id}. Your home folder stays.")


def _ready(args: argparse.Namespace, row: Any) -> None:
    if not args.wait:
        if args.json:
            output.as_json(row)
        return
    route = f"environments/{row['id']}/"
    row = waiting.until_over(args.client, route, until={"ready", "idle"}, word=_stands)
    if _stands(row) not in ("ready", "idle"):
        raise waiting.ended_early(row)
    show_one(args, row, FACTS)


def _fields(args: argparse.Namespace) -> dict[str, Any]:
    optional = {
        "name": args.name,
        "description": args.description,
        "folder": args.folder,
        "nodes": args.nodes,
        "idle_hours": args.idle_hours,
        "max_runtime_s": args.max_runtime and seconds(args.max_runtime),
        "variables": variables.given(args.env, "-e"),
        "secrets": variables.secrets(args),
        "datasets": [lookup.any_version(args.client, given) for given in args.data or ()],
    }
    return resources.fields(args) | {name: value for name, value in optional.items() if value}
