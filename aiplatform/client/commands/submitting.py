"""`aip train submit`: options of a training, and the upload of its code and data."""

from __future__ import annotations

import argparse
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aiplatform.client import output, tus, waiting
from aiplatform.client.commands import cross_validation, following, lookup, outputs, resources
from aiplatform.client.errors import JOB_FAILED, NOT_FOUND, USAGE, ClientError
from aiplatform.client.options import fields, flag, option, pairs, read_text, repeated
from aiplatform.client.packing import packed
from aiplatform.client.verbs import done

FINAL = {"started", "failed", "cancelled"}
ARCHIVE = re.compile(r"\.(zip|tar|tgz|tbz2|txz|tar\.(gz|bz2|xz|zst))$", re.IGNORECASE)


def is_local(name: str) -> bool:
    """Whether data is a local path: ./photos, /data/cells.zip, or an archive that exists."""
    return name.startswith(("./", "../", "/", "~/")) or (bool(ARCHIVE.search(name)) and Path(name).is_file())


def plan_training(args: argparse.Namespace, fields: Mapping[str, Any], data: list[Path], *, custom: bool) -> Any:
    """Send the data and plan the training, which starts when the data is imported, also without this process.

    Returns:
        The training, where it is waited for; else None.

    Raises:
        ClientError: a path that is not there, data beside other data, or custom code; or it could not begin.
    """
    if custom or args.dry_run:
        raise ClientError(
            "Data upload is available for presets only. Upload it first: aip upload NAME PATH --wait", USAGE
        )
    if len(args.data) > 1 or args.eval_data:
        raise ClientError("A preset uses one dataset. Put all data into one folder or archive.", USAGE)
    path = data[0].expanduser()
    if not path.exists():
        raise ClientError(f"{path} not found.", NOT_FOUND)
    source = packed([path]) if path.is_dir() else path
    upload = tus.upload(args.client, source, quiet=args.json)
    body = {**fields, "upload": upload}  # what was sent is not to be sent again because the platform is away just now
    planned = args.client.post("training/planned/", body, once=True, patience_s=waiting.PATIENCE_S)
    if not (args.wait or args.follow or args.download):
        if args.json:
            output.as_json(planned)
        else:
            page = f"{args.client.config.url}/training/planned/{planned['id']}/"
            output.say(f"The training starts automatically when {output.clean(planned['dataset'])} is imported: {page}")
        return None
    row = waiting.until_over(args.client, f"training/planned/{planned['id']}/", until=FINAL)
    if row["state"] != "started":
        raise ClientError(output.clean(row["sentence"]) or f"State: {row['state']}.", JOB_FAILED)
    return args.client.get(f"training/jobs/{row['training']}/")


LAUNCHERS = ["once", "processes", "torchrun", "mpi", "first"]
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "__pycache__", "*.pyc", ".DS_Store", "node_modules")


WAIT = flag("--wait", field="", help="wait for the end; exit code 6 on failure")
DOWNLOAD = option(
    "--download", type=Path, metavar="FOLDER", field="",
    help="wait, then download all outputs to this folder, each fold to its own; interrupted downloads resume",
)  # fmt: skip


def seconds(text: str) -> int:
    """Parse `2h30m`, `90m`, `3600`, `1d` to seconds."""
    match = re.fullmatch(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s?)?", text.strip())
    if not match or not any(match.groups()):
        raise ClientError(f"--max-runtime {text}: write it as 2h30m.", USAGE)
    days, hours, minutes, rest = (int(part or 0) for part in match.groups())
    return days * 86400 + hours * 3600 + minutes * 60 + rest


#: Options of a training, of which `requested` and `data_fields` make a request.
TRAINING = (
    option("name", nargs="?", default="", help="default: from data and preset"),
    repeated("--data", metavar="NAME[:VERSION]", field="",
             help=("dataset: id, NAME, NAME:VERSION, or ./PATH of an archive or folder to upload; optional and "
                  "repeatable for custom code")),
    option("--eval-data", field="", help="dataset version to evaluate on"),
    option("--preset", help="a name listed by `aip train presets`"),
    option("--code", type=Path, field="", help="custom code: a folder or an archive"),
    option("--home-code", metavar="PATH", field="home_path", help="custom code: a folder in your home on the platform"),
    option("--start", metavar="FILE.py", field="start_file", help="entry point of the custom code"),
    option("--command", metavar="LINE", help="custom code: a shell line instead of an entry point"),
    option("--script", type=argparse.FileType("r"), metavar="FILE", field="", help=
        "custom code: a script; - "
        "reads standard input"),
    option("--worker-command", metavar="LINE", help="custom code: command on the nodes other than the first"),
    option("--launcher", choices=LAUNCHERS, help="custom code: launcher on each node"),
    option("--image", metavar="NAME[:TAG]", find=lookup.image,
           help="custom code: image with its programs: aip images list"),
    *resources.variable_options("custom code: "),
    option("--snapshot", field="code", help="custom code: id of a snapshot of an earlier training"),
    option("--arguments", help="custom code: arguments of the entry point"),
    flag("--writes-checkpoints", default=None, help="custom code: supports checkpoints"),
    repeated("-p", "--param", metavar="NAME=VALUE", field="params", default=[], convert=pairs, help="can be repeated"),
    option("--network-file", type=Path, metavar="NET.py", field="",
           help="a custom network: defines build(classes, channels)"),
    option("--params", metavar="NAME[:VERSION]", field="", help="a saved parameter set to start from"),
    flag("--explicit", default=None,
         help="explicit mode: reject unless every parameter of the preset is set"),
    option("--extra", help="additional parameters, e.g. '-gpu:0,1 -keep:100'"),
    option("--output-path", help="folder for results, below that of the job"),
    *following.OPTIONS,
    *resources.options(root=True),
    option("--nodes", type=int, default=1),
    option("--min-nodes", type=int, metavar="N", help="minimum number of nodes"),
    option("--processes", type=int,
           help="processes per node; default: custom code one, presets one per GPU; more use torchrun"),
    option("--max-runtime", metavar="2h30m", field="max_runtime_s", convert=seconds, help="maximum run time"),
    option("--description"),
)  # fmt: skip
SUBMIT = (
    *TRAINING,
    flag("--dry-run", help="check whether it can start, without submitting"),
    flag("-f", "--follow", help="print the log until it ends"),
    WAIT,
    DOWNLOAD,
)


def requested(args: argparse.Namespace) -> dict[str, Any]:
    """Fields of a request for the options, without its data; custom code in a local folder is not sent yet.

    Raises:
        ClientError: options exclude each other, or an option is missing.
    """
    if args.script:
        args.command = args.script.read()
    custom = _is_custom(args)
    if args.preset and custom:
        raise ClientError("Specify either --preset or custom code, not both.", USAGE)
    if not args.preset and not custom and not args.params:
        raise ClientError("Specify --preset, or --code and --start, or --command. See: aip train submit --help", USAGE)
    if custom and bool(args.start) == bool(args.command):
        raise ClientError("Custom code requires --start with the entry point, or --command with a shell line.", USAGE)
    if not custom and not args.data:
        raise ClientError("A preset requires --data with its dataset.", USAGE)
    body = fields(args, TRAINING) | resources.variable_fields(args, "--env")
    if args.network_file:
        body["params"] = {"architecture": "own", **body["params"], "network": read_text(args.network_file)}
    return body | (_parameter_set(args) if args.params else {})


def data_fields(args: argparse.Namespace, *, custom: bool) -> dict[str, Any]:
    """The dataset versions that `--data` and `--eval-data` name."""
    find = lookup.any_version if custom else lookup.version
    versions = [find(args.client, name) for name in args.data or ()]
    body: dict[str, Any] = {"version": versions[0]} if versions else {}
    body |= {"datasets": versions[1:]} if versions[1:] else {}
    return body | ({"eval_version": find(args.client, args.eval_data)} if args.eval_data else {})


def _is_custom(args: argparse.Namespace) -> bool:
    return bool(args.code or args.home_code or args.snapshot or args.command)


def submit(args: argparse.Namespace) -> int | None:
    body = requested(args)
    custom = _is_custom(args)
    local = [Path(name) for name in args.data or () if is_local(name)]
    if local:
        training = plan_training(args, body, local, custom=custom)
        return queued(args, training) if training else None
    body |= data_fields(args, custom=custom)
    if args.dry_run:
        verdict = args.client.post("training/jobs/preview/", body)
        done(args, verdict, output.clean(verdict.get("sentence", "")))
        return None
    if args.code:
        body["code_upload"] = send_code(args, args.code)
    return queued(args, args.client.post("training/jobs/", body, once=True))


def queued(args: argparse.Namespace, training: Any) -> int | None:
    """Say what was queued; follow it and wait where that was requested, all of its folds where it has some."""
    folds = cross_validation.list_folds(args.client, training)
    if not args.json:
        print(training["id"])
        output.say(_describe_queued(training, folds))
    if args.follow and folds:
        cross_validation.follow(args.client, folds)
    elif args.follow:
        waiting.follow_log(args.client, f"training/jobs/{training['id']}/log/", follow=True, apart=True)
    if args.wait or args.follow or args.download:
        return cross_validation.end(args, folds) if folds else end(args, training["id"])
    if args.json:
        output.as_json(training)
    return None


def _describe_queued(training: Any, folds: Sequence[Mapping[str, Any]]) -> str:
    if not folds:
        return f"Queued as training {training['id']}. Watch it: aip train logs -f {training['id']}"
    number = training["id"]
    return f"Queued {len(folds)} folds, the first as training {number}. Wait for all: aip train wait {number}"


def _parameter_set(args: argparse.Namespace) -> dict[str, Any]:
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
        output.say(output.clean(row.get("sentence") or f"The job ended in state {row.get('state')}."))
    if getattr(args, "download", None):
        output.say(outputs.bring_back(args.client, row["job"], args.download, quiet=args.json))
    return waiting.exit_code(row)
