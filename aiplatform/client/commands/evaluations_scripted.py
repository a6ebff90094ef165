"""Custom scripts of `aip evaluate`: their options and results."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aiplatform.client import output
from aiplatform.client.commands import lookup
from aiplatform.client.commands.submitting import send_code
from aiplatform.client.errors import USAGE, ClientError
from aiplatform.client.options import fields, option, pairs
from aiplatform.client.output import columns

#: Which code evaluates in place of that of the platform.
OPTIONS = (
    option("--code", type=Path, field="", help="own script: a folder or an archive"),
    option("--home-code", metavar="PATH", field="home_path",
           help="own script: a folder in your home on the platform"),
    option("--snapshot", field="code", help="own script: id of code that came before; `show` tells it"),
    option("--start", metavar="FILE.py", field="start_file",
           help="own script: the file that judges; it writes metrics.json to AIP_OUTPUT_DIR"),
    option("--arguments", help="own script: words after it; {model} {data} {output} {params} become paths"),
    option("--output-path", metavar="FOLDER", help="own script: the folder in the code that it writes to"),
    option("--image", metavar="NAME[:TAG]", find=lookup.image,
           help="own script: where its programs come from: aip images list"),
)  # fmt: skip


def script_fields(args: argparse.Namespace) -> dict[str, Any]:
    """Fields of a request for the options; local code is uploaded.

    Raises:
        ClientError: several options name the code.
    """
    if sum(bool(code) for code in (args.code, args.home_code, args.snapshot)) > 1:
        raise ClientError("Give the code in one way: --code, --home-code or --snapshot.", USAGE)
    body = fields(args, OPTIONS) | ({"params": pairs(args.param)} if args.param else {})
    return body | ({"code_upload": send_code(args, args.code)} if args.code else {})


def _all_metrics(metrics: Mapping[str, Any] | None) -> str:
    numbers = [(name, value) for name, value in (metrics or {}).items() if isinstance(value, int | float)]
    return ", ".join(f"{name} {value:.4g}" for name, value in numbers)


#: Fields that `show` adds.
FIELDS = columns(
    "Split=split, Parameters=params, Script=script|script, Code=script.code, Figures=metrics|metrics, "
    "Problems=script.problems|words, Ended=sentence",
    script=lambda script: f"{script['start_file']} {script['arguments']}".strip() if script else "",
    metrics=_all_metrics,
    words=lambda problems: output.clean(" ".join(problems or [])),
)
