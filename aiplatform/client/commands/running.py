"""`aip run`: the current folder and a command become a job; its log, its outputs and its exit code come back."""

from __future__ import annotations

import argparse
import contextlib
import shlex
import sys
from pathlib import Path
from typing import Any

from aiplatform.client import output, tus, waiting, working_folder
from aiplatform.client.commands import following, lookup, outputs, resources, templates, variables
from aiplatform.client.commands.submitting import seconds
from aiplatform.client.commands.verbs import Nouns, Parent, command, done
from aiplatform.client.errors import INTERRUPTED, JOB_FAILED, OK, USAGE, ClientError
from aiplatform.client.http import Client

BEGUN = {"running", "paused", "finishing", "stopping"}
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


def add(nouns: Nouns, parent: Parent) -> None:
    verb = command(nouns, parent, "run", run, "Run a command on the platform with the files of this folder.")
    verb.epilog, verb.formatter_class = EXAMPLES, argparse.RawDescriptionHelpFormatter
    verb.add_argument(
        "words", nargs=argparse.REMAINDER, metavar="-- COMMAND …", help="several words, or one shell line"
    )
    verb.add_argument("--script", type=argparse.FileType("r"), metavar="FILE", help="a script instead; - is stdin")
    templates.options(verb)
    verb.add_argument("--name", default="", help="made of the command when left out")
    verb.add_argument("--code", type=Path, metavar="FOLDER", help="this folder instead of the current one")
    verb.add_argument("--no-code", action="store_true", help="begin in an empty folder")
    verb.add_argument("--data", action="append", metavar="NAME[:VERSION]", help="a dataset to read; repeat for more")
    verb.add_argument("--image", metavar="NAME[:TAG]", help="where its programs come from: aip images list")
    verb.add_argument("-e", "--env", action="append", metavar="NAME[=VALUE]", help="a variable; without value your own")
    verb.add_argument("--secret", action="append", metavar="NAME[=VALUE]", help="a variable that is hidden everywhere")
    verb.add_argument("--stored", action="append", metavar="NAME", help="your secret of this name, see aip secret")
    verb.add_argument("--output-path", default="", help="folder the command writes to, relative to its own")
    verb.add_argument("--nodes", type=int, help="machines; each runs the command")
    verb.add_argument("--launcher", choices=LAUNCHERS, help="how it is started on the machines")
    verb.add_argument("--processes", type=int, metavar="N", help="processes per machine; one for each card if left out")
    verb.add_argument("--worker-command", metavar="LINE", help="what the machines beside the first run instead")
    following.options(verb)
    verb.add_argument("--array", metavar="0-99%%8", help="one job for each index; with %%8 eight at a time")
    resources.options(verb)
    verb.add_argument("--max-runtime", metavar="2h30m", help="longest run time")
    verb.add_argument("--dry-run", action="store_true", help="say whether it fits, queue nothing")
    verb.add_argument("-d", "--detach", action="store_true", help="print the job's id and leave")
    verb.add_argument("--to", type=Path, metavar="FOLDER", help="where the outputs go instead")
    verb.add_argument("--no-outputs", action="store_true", help="bring nothing back")


def run(args: argparse.Namespace) -> int:
    """Send, follow, fetch; the exit code is the command's own."""
    if args.template:
        if args.dry_run or args.code:
            option = "--dry-run" if args.dry_run else "--code"
            raise ClientError(f"{option} does not go with --template. Leave one of them out.", USAGE)
        return _finish(args, templates.use(args, _fields(args, of_template=True)))
    fields = _fields(args)
    if args.dry_run:
        verdict = args.client.post("commands/preview/", fields)
        done(args, verdict, output.clean(verdict.get("sentence", "")))
        return OK
    if not args.no_code:
        source = working_folder.pack(_folder(args))
        if source is not None:
            fields["code_upload"] = tus.upload(args.client, source, quiet=args.json)
    return _finish(args, args.client.post("commands/", fields, once=True))


def _finish(args: argparse.Namespace, made: Any) -> int:
    """Follow what was queued, or name it where nobody waits for it."""
    if made.get("array"):
        return _array_queued(args, made)
    if args.detach:
        if args.json:
            output.as_json(made)
        else:
            print(made["id"])
            output.say(f"Queued as job {made['id']}. Watch it: aip jobs logs -f {made['id']}")
        return OK
    output.say(f"Job {made['id']} {output.clean(made['name'])}: {args.client.config.url}{made['url']}")
    return _attached(args, made["id"])


def _array_queued(args: argparse.Namespace, made: Any) -> int:
    """Name the array; its jobs are many, so that none of them is followed."""
    array = args.client.get(f"arrays/{made['array']}/")
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
            waiting.until_over(args.client, f"jobs/{job}/", until=BEGUN)
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
        output.say(output.clean(row.get("sentence") or f"It ended as {row.get('state')}."))
    return code


def _interrupted(client: Client, job: int) -> int | None:
    """After Ctrl-C: stop the job, leave it running, or go on watching (None)."""
    answer = "d"
    if sys.stdin.isatty():
        print("\nStop the job, detach and leave it running, or go on watching? [s/D/w] ", end="", file=sys.stderr)
        try:
            answer = sys.stdin.readline().strip().lower()[:1] or "d"
        except KeyboardInterrupt:
            answer = "d"
    if answer == "s":
        client.post(f"jobs/{job}/stop/")
        output.say(f"Asked to stop job {job}.")
        return INTERRUPTED
    if answer == "w":
        return None
    output.say(f"Job {job} goes on. Watch it: aip jobs logs -f {job} · outputs: aip jobs download {job}")
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
    """The fields of a request; of a template only those that stand in place of its own."""
    named = {"name": args.name} if args.name or not of_template else {}
    own = {} if of_template and not args.words and not args.script else {"command": _command(args)}
    fields = {**own, **named, **resources.fields(args), **following.fields(args)}
    optional = {
        "output_path": args.output_path,
        "image": args.image and lookup.image(args.client, args.image),
        "nodes": args.nodes,
        "launcher": args.launcher,
        "processes": args.processes,
        "worker_command": args.worker_command,
        "array": args.array,
        "max_runtime_s": args.max_runtime and seconds(args.max_runtime),
        "variables": variables.given(args.env, "-e"),
        "secrets": variables.secrets(args),
        "datasets": [lookup.any_version(args.client, given) for given in args.data or ()],
    }
    return fields | {name: value for name, value in optional.items() if value}


def _command(args: argparse.Namespace) -> str:
    words = args.words[1:] if args.words[:1] == ["--"] else args.words
    if bool(words) == bool(args.script):
        raise ClientError("Give a command, as in: aip run -- python train.py, or --script FILE.", USAGE)
    if args.script:
        with args.script as file:
            return str(file.read())
    return words[0] if len(words) == 1 else shlex.join(words)


def _folder(args: argparse.Namespace) -> Path:
    """The folder whose files go along; a whole home or disk only where it is named."""
    if args.code:
        return Path(args.code)
    here = Path.cwd()
    if here in (Path.home(), Path(here.anchor)):
        raise ClientError(
            f"This would send all of {here}. Go into your project's folder, name it with --code, or give --no-code.",
            USAGE,
        )
    return here
