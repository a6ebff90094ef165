"""An own script of `aip evaluate`: its options, and what became of it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aiplatform.client import output
from aiplatform.client.commands import lookup
from aiplatform.client.commands.submitting import send_code
from aiplatform.client.commands.verbs import pairs
from aiplatform.client.errors import USAGE, ClientError
from aiplatform.client.output import Column


def options(verb: argparse.ArgumentParser) -> None:
    """What says which code judges in place of ours."""
    verb.add_argument("--code", type=Path, help="own script: a folder or an archive")
    verb.add_argument("--home-code", metavar="PATH", help="own script: a folder in your home on the platform")
    verb.add_argument("--snapshot", help="own script: id of code that came before; `show` tells it")
    verb.add_argument(
        "--start", metavar="FILE.py", help="own script: the file that judges; it writes metrics.json to AIP_OUTPUT_DIR"
    )
    verb.add_argument("--arguments", help="own script: words after it; {model} {data} {output} {params} become paths")
    verb.add_argument("--output-path", metavar="FOLDER", help="own script: the folder in the code that it writes to")
    verb.add_argument("--image", metavar="NAME[:TAG]", help="own script: where its programs come from: aip images list")


def fields(args: argparse.Namespace) -> dict[str, Any]:
    """What the options ask for, as the API takes it; code that lies here is uploaded.

    Raises:
        ClientError: code is given in several ways.
    """
    if sum(bool(one) for one in (args.code, args.home_code, args.snapshot)) > 1:
        raise ClientError("Give the code in one way: --code, --home-code or --snapshot.", USAGE)
    given = {
        "home_path": args.home_code, "code": args.snapshot, "start_file": args.start, "arguments": args.arguments,
        "output_path": args.output_path,
        "image": lookup.image(args.client, args.image) if args.image else None,
        "params": pairs(args.param) if args.param else None,
    }  # fmt: skip
    found = {name: value for name, value in given.items() if value is not None}
    return found | ({"code_upload": send_code(args, args.code)} if args.code else {})


def _all_figures(row: Mapping[str, Any]) -> str:
    found = [(name, value) for name, value in (row.get("metrics") or {}).items() if isinstance(value, int | float)]
    return ", ".join(f"{name} {value:.4g}" for name, value in found)


def _script(row: Mapping[str, Any]) -> str:
    script = row.get("script") or {}
    return f"{script['start_file']} {script['arguments']}".strip() if script else ""


#: What `show` adds.
SHOWN: list[Column] = [
    ("Split", "split"),
    ("Parameters", "params"),
    ("Script", _script),
    ("Code", lambda row: (row.get("script") or {}).get("code", "")),
    ("Figures", _all_figures),
    ("Problems", lambda row: output.clean(" ".join((row.get("script") or {}).get("problems", [])))),
    ("Ended", "sentence"),
]
