"""Resource options, environment variables and secrets, which every submitting command has."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from typing import Any

from aiplatform.client.commands import lookup
from aiplatform.client.errors import USAGE, ClientError
from aiplatform.client.options import Option, flag, option, repeated


def variable_options(prefix: str = "") -> tuple[Option, ...]:
    """The variable_options; `prefix` begins their help."""
    kinds = ("a variable", "a secret variable", "your secret with this name") if prefix else (
        "a variable; without value that of your shell", "a variable that is hidden everywhere",
        "your secret with this name, see aip secret",
    )  # fmt: skip
    return (
        repeated("-e", "--env", metavar="NAME[=VALUE]", field="", help=f"{prefix}{kinds[0]}"),
        repeated("--secret", metavar="NAME[=VALUE]", field="", help=f"{prefix}{kinds[1]}"),
        repeated("--stored", metavar="NAME", field="", help=f"{prefix}{kinds[2]}"),
    )


def variable_fields(args: argparse.Namespace, option: str = "-e") -> dict[str, Any]:
    """Fields of a request; secrets that the platform stores have no value here."""
    secrets = dict.fromkeys(args.stored or (), "") | _parse(args.secret, "--secret")
    fields = {"variables": _parse(args.env, option), "secrets": secrets}
    return {name: value for name, value in fields.items() if value}


def _parse(items: Sequence[str] | None, option: str) -> dict[str, str]:
    """The variables of an option: `NAME=value`, or `NAME` for its value in this environment."""
    variables = {}
    for item in items or ():
        name, equals, value = item.partition("=")
        if not equals and name not in os.environ:
            raise ClientError(f"{option} {name}: not set in your shell. Write {name}=value.", USAGE)
        variables[name] = value if equals else os.environ[name]
    return variables


URGENT = 100
ROOT = flag("--root", default=None, field="root_inside", help="root in the sandbox; not for presets")
_SIZE = re.compile(r"(\d{1,16}(?:\.\d{1,6})?) ?([kmgtp]?)(ib|b|)", re.IGNORECASE)


def options(gpus: str = "GPUs per node; 0 runs on the CPU", *, root: bool = False) -> tuple[Option, ...]:
    """The options; `gpus` is the help of --gpus, `root` adds --root for kinds that support root in the sandbox."""
    return (
        option("--cluster", find=lookup.cluster, help="id or name; default: your current cluster"),
        option("--gpus", type=int, field="gpus_per_node", help=gpus),
        option("--device", metavar="KIND[:MODEL]", field="*", convert=_device,
               help="gpu, npu or cpu; the model if it matters"),
        option("--share", type=int, metavar="N", help="N eighths of one GPU instead of whole GPUs"),
        option("--cpus", type=float, help="CPU cores"),
        option("--memory", type=float, metavar="GIB", field="memory_mib", convert=lambda gib: round(gib * 1024),
               help="memory limit per node; the job is stopped above"),
        option("--max-disk", metavar="20GiB", field="max_disk_bytes", convert=lambda text: size(text, "--max-disk"),
               help="disk limit per node; the job is stopped above"),
        option("--priority", type=int, help="0 to 99, a higher priority starts first"),
        flag("--urgent", default=None, field="priority", convert=lambda _: URGENT,
             help="before all other jobs; requires a permission"),
        *((ROOT,) if root else ()),
        flag("--preemptible", default=None, help="can be preempted and continues later"),
    )  # fmt: skip


def _device(text: str) -> dict[str, str]:
    """Fields of a kind with an optional model: `gpu:A100`."""
    kind, _, model = text.partition(":")
    return {name: value for name, value in (("device_kind", kind), ("device_model", model)) if value}


def size(text: str, option: str) -> int:
    """ "20GiB", "1.5TB", "500m" or a number of bytes, in bytes; units of one letter count in powers of 1024."""
    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise ClientError(f"{option} {text}: write it as 20GiB, 500MB or 1TiB.", USAGE)
    number, letter, binary = float(match[1]), match[2].upper(), match[3].lower()
    base = 1000 if letter and binary == "b" else 1024
    return round(number * base ** ("KMGTP".index(letter) + 1 if letter else 0))


def priority(text: str) -> int:
    """`"0"` to `"99"`, or `"urgent"`, as the API takes it."""
    if text == "urgent":
        return URGENT
    if not text.isdigit():
        raise ClientError(f"{text}: use a number from 0 to 99, or urgent.", USAGE)
    return int(text)


def limited(value: Any, shape: str, unit: float = 1) -> str:
    """A limit in a unit, with the shape of `str.format`: "12 h", or "no limit" for None."""
    return "unlimited" if value is None else shape.format(value / unit)
