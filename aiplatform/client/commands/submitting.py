"""`aip train submit`: options of a training, and the upload of own code."""

from __future__ import annotations

import argparse
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aiplatform.client import output, tus, waiting
from aiplatform.client.commands import cross_validation, following, lookup, outputs, resources, uploading, variables
from aiplatform.client.commands.verbs import done, pairs
from aiplatform.client.errors import NOT_FOUND, USAGE, ClientError

LAUNCHERS = ["once", "processes", "torchrun", "mpi", "first"]
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "__pycache__", "*.pyc", ".DS_Store", "node_modules")


def options(verb: argparse.ArgumentParser) -> None:
    training_options(verb)
    verb.add_argument("--dry-run", action="store_true", help="say whether it fits, queue nothing")
    verb.add_argument("-f", "--follow", action="store_true", help="print the log until it ends")
    wait_option(verb)
    result_option(verb)


def training_options(verb: argparse.ArgumentParser) -> None:
    """What says which training it is, for `requested` and `data_fields`."""
    verb.add_argument("name", nargs="?", default="", help="made of data and preset when left out")
    verb.add_argument(
        "--data", action="append", metavar="NAME[:VERSION]",
        help="what it learns from: an id, NAME, NAME:VERSION, or ./PATH of an archive or folder to upload; "
        "own code may do without, or repeat it for more",
    )  # fmt: skip
    verb.add_argument("--eval-data", help="dataset version to evaluate on")
    verb.add_argument("--preset", help="a name from `aip train presets`")
    verb.add_argument("--code", type=Path, help="own code: a folder or an archive")
    verb.add_argument("--home-code", metavar="PATH", help="own code: a folder in your home on the platform")
    verb.add_argument("--start", metavar="FILE.py", help="the file of your own code that is run")
    verb.add_argument("--command", default="", metavar="LINE", help="own code: a shell line in place of a start file")
    verb.add_argument("--script", type=argparse.FileType("r"), metavar="FILE", help="own code: a script; - is stdin")
    verb.add_argument("--worker-command", metavar="LINE", help="own code: what the machines beside the first run")
    verb.add_argument("--launcher", choices=LAUNCHERS, help="own code: how each machine starts it")
    verb.add_argument("--image", metavar="NAME[:TAG]", help="own code: where its programs come from: aip images list")
    verb.add_argument("-e", "--env", action="append", metavar="NAME[=VALUE]", help="own code: a variable")
    verb.add_argument("--secret", action="append", metavar="NAME[=VALUE]", help="own code: a hidden variable")
    verb.add_argument("--stored", action="append", metavar="NAME", help="own code: your secret of this name")
    verb.add_argument("--snapshot", help="own code: id of a snapshot an earlier training made")
    verb.add_argument("--arguments", default="", help="own code: words after the start file")
    verb.add_argument("--writes-checkpoints", action="store_true", help="own code: it can go on from them")
    verb.add_argument("-p", "--param", action="append", metavar="NAME=VALUE", help="repeat for more")
    verb.add_argument(
        "--network-file", type=Path, metavar="NET.py", help="a network of your own: defines build(classes, channels)"
    )
    verb.add_argument("--params", metavar="NAME[:VERSION]", help="a saved parameter set to begin with")
    verb.add_argument(
        "--explicit", action="store_true", help="large-scale mode: refuse unless every parameter of the preset is given"
    )
    verb.add_argument("--extra", default="", help="additional parameters, e.g. '-gpu:0,1 -keep:100'")
    verb.add_argument("--output-path", default="", help="folder for results, beneath the job's own")
    following.options(verb)
    resources.options(verb)
    verb.add_argument("--nodes", type=int, default=1)
    verb.add_argument("--min-nodes", type=int, default=0, metavar="N", help="fewer machines will do, at least N")
    verb.add_argument(
        "--processes",
        type=int,
        help="processes per node: own code one unless you say so, presets one per card; more start by torchrun",
    )
    verb.add_argument("--max-runtime", metavar="2h30m", help="longest run time")
    verb.add_argument("--description", default="")


def wait_option(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--wait", action="store_true", help="wait for the end; 6 when it failed")


def result_option(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--download",
        type=Path,
        metavar="FOLDER",
        help="wait, then fetch all it left into this folder, each fold into its own inside; a cut one goes on",
    )


def seconds(text: str) -> int:
    """Parse `2h30m`, `90m`, `3600`, `1d` to seconds."""
    match = re.fullmatch(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s?)?", text.strip())
    if not match or not any(match.groups()):
        raise ClientError(f"--max-runtime {text}: write it like 2h30m.", USAGE)
    days, hours, minutes, rest = (int(part or 0) for part in match.groups())
    return days * 86400 + hours * 3600 + minutes * 60 + rest


def requested(args: argparse.Namespace) -> dict[str, Any]:
    """What the options ask for, data left out, as the API takes it; own code that is a folder here is not sent yet.

    Raises:
        ClientError: options that exclude each other, or something is missing.
    """
    command = args.script.read() if args.script else args.command
    own = _is_own(args, command)
    if args.preset and own:
        raise ClientError("Give either --preset or your own code, not both.", USAGE)
    if not args.preset and not own and not args.params:
        raise ClientError("Give --preset, or --code and --start, or --command. See: aip train submit --help", USAGE)
    if own and bool(args.start) == bool(command):
        raise ClientError("Own code needs --start with the file to run, or --command with a shell line.", USAGE)
    if not own and not args.data:
        raise ClientError("A preset needs --data with what it learns from.", USAGE)
    fields: dict[str, Any] = {"name": args.name, "params": pairs(args.param), "nodes": args.nodes}
    if args.network_file:
        fields["params"] = {"architecture": "own", **fields["params"], "network": _network(args.network_file)}
    fields |= {"min_nodes": args.min_nodes} if args.min_nodes else {}
    fields |= resources.fields(args) | following.fields(args)
    fields |= _set(args) if args.params else {}
    fields |= {name: True for name in ("writes_checkpoints", "explicit") if getattr(args, name)}
    optional = {
        "preset": args.preset,
        "code": args.snapshot,
        "start_file": args.start,
        "command": command,
        "worker_command": args.worker_command,
        "launcher": args.launcher,
        "image": args.image and lookup.image(args.client, args.image),
        "variables": variables.given(args.env, "--env") or None,
        "secrets": variables.secrets(args) or None,
        "arguments": args.arguments,
        "home_path": args.home_code,
        "extra": args.extra,
        "output_path": args.output_path,
        "processes": args.processes,
        "max_runtime_s": args.max_runtime and seconds(args.max_runtime),
        "description": args.description,
    }
    fields |= {name: value for name, value in optional.items() if value not in (None, "")}
    return fields


def data_fields(args: argparse.Namespace, *, own: bool) -> dict[str, Any]:
    """The dataset versions that `--data` and `--eval-data` name."""
    find = lookup.any_version if own else lookup.version
    versions = [find(args.client, given) for given in args.data or ()]
    fields: dict[str, Any] = {"version": versions[0]} if versions else {}
    fields |= {"datasets": versions[1:]} if versions[1:] else {}
    return fields | ({"eval_version": find(args.client, args.eval_data)} if args.eval_data else {})


def _is_own(args: argparse.Namespace, command: str) -> bool:
    return bool(args.code or args.home_code or args.snapshot or command)


def submit(args: argparse.Namespace) -> int | None:
    fields = requested(args)
    own = _is_own(args, fields.get("command", ""))
    coming = [Path(given) for given in args.data or () if uploading.is_place(given)]
    if coming:
        begun = uploading.train(args, fields, coming, own=own)
        return queued(args, begun) if begun else None
    fields |= data_fields(args, own=own)
    if args.dry_run:
        verdict = args.client.post("training/jobs/preview/", fields)
        done(args, verdict, output.clean(verdict.get("sentence", "")))
        return None
    if args.code:
        fields["code_upload"] = send_code(args, args.code)
    return queued(args, args.client.post("training/jobs/", fields, once=True))


def queued(args: argparse.Namespace, made: Any) -> int | None:
    """Say what was queued; follow it and wait where that was requested, all of its folds where it has some."""
    folds = cross_validation.of(args.client, made)
    if not args.json:
        print(made["id"])
        output.say(_queued_words(made, folds))
    if args.follow and folds:
        cross_validation.follow(args.client, folds)
    elif args.follow:
        waiting.follow_log(args.client, f"training/jobs/{made['id']}/log/", follow=True, apart=True)
    if args.wait or args.follow or args.download:
        return cross_validation.end(args, folds) if folds else end(args, made["id"])
    if args.json:
        output.as_json(made)
    return None


def _queued_words(made: Any, folds: Sequence[Mapping[str, Any]]) -> str:
    if not folds:
        return f"Queued as training {made['id']}. Watch it: aip train logs -f {made['id']}"
    return f"Queued {len(folds)} folds, the first as training {made['id']}. Wait for all: aip train wait {made['id']}"


def _set(args: argparse.Namespace) -> dict[str, Any]:
    """The parameter set of `--params NAME[:VERSION]`."""
    name, _, number = args.params.rpartition(":") if args.params.rpartition(":")[2].isdigit() else (args.params, "", "")
    if not name:  # an id alone
        return {"parameter_set": int(number)}
    chosen = {"parameter_set": lookup.parameter_set(args.client, name)}
    return chosen | ({"parameter_set_version": int(number)} if number else {})


def send_code(args: argparse.Namespace, code: Path) -> str:
    """Upload an archive, or a folder packed into one without caches and version control."""
    if code.is_file():
        return tus.upload(args.client, code, quiet=args.json)
    if not code.is_dir():
        raise ClientError(f"{code} is neither a folder nor an archive.", NOT_FOUND)
    with tempfile.TemporaryDirectory() as scratch:
        inside = Path(scratch) / "code"
        shutil.copytree(code, inside, ignore=LEFT_OUT)
        packed = shutil.make_archive(str(Path(scratch) / "packed"), "gztar", root_dir=inside)
        return tus.upload(args.client, Path(packed), name=f"{code.resolve().name}.tar.gz", quiet=args.json)


def end(args: argparse.Namespace, training: object) -> int:
    row = waiting.until_over(args.client, f"training/jobs/{training}/")
    if args.json:
        output.as_json(row)
    elif waiting.exit_code(row):
        output.say(output.clean(row.get("sentence") or f"It ended as {row.get('state')}."))
    if getattr(args, "download", None):
        output.say(outputs.bring_back(args.client, row["job"], args.download, quiet=args.json))
    return waiting.exit_code(row)


def _network(path: Path) -> str:
    """The text of a network of one's own."""
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as exc:
        raise ClientError(f"{path} cannot be read as text: {exc}", USAGE) from exc
