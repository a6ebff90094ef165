"""`aip run`: the current folder and a command become a job; its log, its outputs and its exit code come back."""

from __future__ import annotations

import argparse
import contextlib
import shlex
import sys
from pathlib import Path
from typing import Any

from aiplatform.client import output, tus, waiting, working_folder
from aiplatform.client.commands import following, lookup, outputs, resources, templates
from aiplatform.client.commands.submitting import seconds
from aiplatform.client.errors import INTERRUPTED, JOB_FAILED, OK, USAGE, ClientError
from aiplatform.client.http import Client
from aiplatform.client.options import fields, flag, option, repeated
from aiplatform.client.verbs import Verb, done

SHELLS = {"sh", "bash", "dash"}
STARTED = {"running", "paused", "finishing", "stopping"}
LAUNCHERS = ("once", "processes", "torchrun", "mpi", "first")
EXAMPLES = """\
  aip run -- python train.py --lr 0.1
  aip run --gpus 1 --data cells:2 -e WANDB_MODE=offline --secret WANDB_API_KEY -- python train.py
  aip run 'pip list && python train.py'
  aip run --script job.sh --detach
  aip run --array 0-99%8 -- sh -c 'python train.py --fold $AIP_ARRAY_INDEX'
  aip run --template nightly --set lr=0.1
  aip run --nodes 2 --gpus 4 --launcher torchrun -- python train.py
  aip run --nodes 2 --processes 2 --launcher mpi -- ./simulate
  aip run --nodes 2 --launcher first 'mpirun ./simulate && aip-rsh 1 uptime'

The files of the current folder go along, but for those that .gitignore names. What the command writes to
$AIP_OUTPUT_DIR (or to --output-path) comes back to ./aip-outputs/ID."""


def _run(args: argparse.Namespace) -> int:
    """Send, follow, fetch; the exit code is the command's own."""
    if args.template:
        if args.dry_run or args.code:
            option = "--dry-run" if args.dry_run else "--code"
            raise ClientError(f"{option} cannot be combined with --template. Remove one of them.", USAGE)
        return _finish(args, templates.submit(args, _fields(args, of_template=True)))
    body = _fields(args)
    if args.dry_run:
        verdict = args.client.post("commands/preview/", body)
        done(args, verdict, output.clean(verdict.get("sentence", "")))
        return OK
    if not args.no_code:
        source = working_folder.pack(_folder(args))
        if source is not None:
            body["code_upload"] = tus.upload(args.client, source, quiet=args.json)
    return _finish(args, args.client.post("commands/", body, once=True))


def _finish(args: argparse.Namespace, job: Any) -> int:
    """Follow the queued job, or print its id with --detach."""
    if job.get("array"):
        return _array_queued(args, job)
    if args.detach:
        if args.json:
            output.as_json(job)
        else:
            print(job["id"])
            output.say(f"Queued as job {job['id']}. Watch it: aip jobs logs -f {job['id']}")
        return OK
    output.say(f"Job {job['id']} {output.clean(job['name'])}: {args.client.config.url}{job['url']}")
    return _attached(args, job["id"])


def _array_queued(args: argparse.Namespace, job: Any) -> int:
    """Name the array; its jobs are many, so that none of them is followed."""
    array = args.client.get(f"arrays/{job['array']}/")
    if args.json:
        output.as_json(array)
    else:
        print(array["id"])
        where = f"{args.client.config.url}{array['url']}"
        output.say(f"Queued {array['size']} jobs as array {array['id']}: {where}")
    return OK


def _say_causes(client: Client, job: int) -> None:
    """Say why a job probably failed; an older platform cannot, and that changes nothing of how it ended."""
    with contextlib.suppress(ClientError):
        for cause in client.get(f"jobs/{job}/causes/"):
            output.say(f"Likely cause: {output.clean(cause['sentence'])}")


def _attached(args: argparse.Namespace, job: int) -> int:
    """Say why it waits, follow it until it ends or the person leaves it."""
    while True:
        try:
            waiting.until_over(args.client, f"jobs/{job}/", until=STARTED)
            waiting.follow_log(args.client, f"jobs/{job}/log/", follow=True, apart=True)
            row = waiting.until_over(args.client, f"jobs/{job}/", quiet=True)
            break
        except KeyboardInterrupt:
            left = _interrupted(args.client, job)
            if left is not None:
                return left
    if waiting.exit_code(row) != OK:
        _say_causes(args.client, job)
    if not args.no_outputs:
        output.say(outputs.bring_back(args.client, job, args.to or outputs.folder_of(job), quiet=args.json))
    if args.json:
        output.as_json(row)
    code = exit_code(row)
    if code:
        output.say(output.clean(row.get("sentence") or f"The job ended in state {row.get('state')}."))
    return code


def _interrupted(client: Client, job: int) -> int | None:
    """After Ctrl-C: stop the job, leave it running, or go on watching (None)."""
    answer = "d"
    if sys.stdin.isatty():
        print("\nStop the job, detach and leave it running, or continue watching? [s/D/w] ", end="", file=sys.stderr)
        try:
            answer = sys.stdin.readline().strip().lower()[:1] or "d"
        except KeyboardInterrupt:
            answer = "d"
    if answer == "s":
        client.post(f"jobs/{job}/stop/")
        output.say(f"Requested a stop of job {job}.")
        return INTERRUPTED
    if answer == "w":
        return None
    output.say(f"Job {job} continues. Watch it: aip jobs logs -f {job} · outputs: aip jobs download {job}")
    return INTERRUPTED


def exit_code(row: Any) -> int:
    """The command's own exit code, 128 and the signal's number where one ended it."""
    if waiting.state_of(row) in waiting.GOOD:
        return OK
    code = row.get("exit_code")
    if not code:
        return JOB_FAILED
    return int(code) if code > 0 else 128 - int(code)


def _fields(args: argparse.Namespace, *, of_template: bool = False) -> dict[str, Any]:
    """Fields of a request; with a template, only those that replace fields of the template."""
    command = {} if of_template and not args.words and not args.script else {"command": _command(args)}
    name = {"name": args.name} if args.name or not of_template else {}
    return command | name | fields(args, REQUEST) | resources.variable_fields(args)


def _command(args: argparse.Namespace) -> str:
    command = args.words[1:] if args.words[:1] == ["--"] else args.words
    if bool(command) == bool(args.script):
        raise ClientError("Specify a command, such as: aip run -- python train.py, or --script FILE.", USAGE)
    if args.script:
        with args.script as file:
            return _script(str(file.name), str(file.read()))
    return command[0] if len(command) == 1 else shlex.join(command)


def _script(name: str, text: str) -> str:
    """Return a script as a shell command: of another language, its file written and given to its interpreter."""
    first = text.partition("\n")[0]
    interpreter = first[2:].strip() if first.startswith("#!") else "python" if name.endswith(".py") else ""
    programs = {Path(word).name for word in interpreter.split()[:2]}
    if not programs or programs & SHELLS:
        return text
    mark = "AIP_SCRIPT"
    while mark in text:
        mark += "_"
    end = "" if text.endswith("\n") else "\n"
    return (
        f"file=$(mktemp) && cat > \"$file\" <<'{mark}'\n{text}{end}{mark}\n"
        f'export PYTHONPATH="$PWD${{PYTHONPATH:+:$PYTHONPATH}}"\nexec {interpreter} "$file"\n'
    )


def _folder(args: argparse.Namespace) -> Path:
    """The folder whose files go along; a whole home or disk only where it is named."""
    if args.code:
        return Path(args.code)
    here = Path.cwd()
    if here in (Path.home(), Path(here.anchor)):
        raise ClientError(
            f"This would upload all of {here}. Change to your project folder, name it with --code, or use --no-code.",
            USAGE,
        )
    return here


REQUEST = (
    repeated("--data", metavar="NAME[:VERSION]", field="datasets", find=lookup.any_version,
             help="a dataset to mount; can be repeated"),
    option("--image", metavar="NAME[:TAG]", find=lookup.image, help="image with its programs: aip images list"),
    *resources.variable_options(),
    option("--output-path", help="output folder of the command, relative to its own"),
    option("--nodes", type=int, help="nodes; each runs the command"),
    option("--launcher", choices=LAUNCHERS, help="launcher on the nodes"),
    option("--processes", type=int, metavar="N", help="processes per node; default: one per GPU"),
    option("--worker-command", metavar="LINE", help="command on the nodes other than the first"),
    *following.OPTIONS,
    option("--array", metavar="0-99%%8", help="one job per index; with %%8 eight at a time"),
    *resources.options(root=True),
    option("--max-runtime", metavar="2h30m", field="max_runtime_s", convert=seconds, help="maximum run time"),
)  # fmt: skip
NOUNS = {
    "run": Verb("run", "Run a command on the platform with the files of this folder.", (
        option("words", nargs=argparse.REMAINDER, metavar="-- COMMAND …", help="several words, or one shell line"),
        option("--script", type=argparse.FileType("r"), metavar="FILE", help=
            "a script instead; - reads "
            "standard input"),
        *templates.OPTIONS,
        option("--name", default="", help="default: from the command"),
        option("--code", type=Path, metavar="FOLDER", help="this folder instead of the current one"),
        flag("--no-code", help="start in an empty folder"),
        *REQUEST,
        flag("--dry-run", help="check whether it can start, without submitting"),
        flag("-d", "--detach", help="print the job id and exit"),
        option("--to", type=Path, metavar="FOLDER", help="target folder of the outputs"),
        flag("--no-outputs", help="do not download outputs"),
    ), run=_run, epilog=EXAMPLES),
}  # fmt: skip
