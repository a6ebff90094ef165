"""Resource options, which every submitting command has."""

from __future__ import annotations

import re
from typing import Any

from aiplatform.client.commands import lookup
from aiplatform.client.errors import USAGE, ClientError
from aiplatform.client.options import Option, flag, option

URGENT = 100
_SIZE = re.compile(r"(\d{1,16}(?:\.\d{1,6})?) ?([kmgtp]?)(ib|b|)", re.IGNORECASE)


def options(gpus: str = "cards per node; 0 runs on the processor") -> tuple[Option, ...]:
    """The options; `gpus` is the help of --gpus."""
    return (
        option("--cluster", find=lookup.cluster, help="id or name; your current one when left out"),
        option("--gpus", type=int, field="gpus_per_node", help=gpus),
        option("--device", metavar="KIND[:MODEL]", field="*", convert=_device,
               help="gpu, npu or cpu; the model if it matters"),
        option("--share", type=int, metavar="N", help="N eighths of one card instead of whole cards"),
        option("--cpus", type=float, help="processor cores"),
        option("--memory", type=float, metavar="GIB", field="memory_mib", convert=lambda gib: round(gib * 1024),
               help="most memory on the machine; what takes more ends"),
        option("--max-disk", metavar="20GiB", field="max_disk_bytes", convert=lambda text: size(text, "--max-disk"),
               help="most disk space on each node; what takes more ends"),
        option("--priority", type=int, help="0 to 99, a higher one starts first"),
        flag("--urgent", default=None, field="priority", convert=lambda _: URGENT,
             help="before everybody else; needs a right of its own"),
        flag("--root", default=None, field="root_inside",
             help="be root inside; for those who may, and for no preset"),
        flag("--preemptible", default=None, help="may make room for others and go on later"),
    )  # fmt: skip


def _device(text: str) -> dict[str, str]:
    """Fields of a kind with an optional model: `gpu:A100`."""
    kind, _, model = text.partition(":")
    return {name: value for name, value in (("device_kind", kind), ("device_model", model)) if value}


def size(text: str, option: str) -> int:
    """ "20GiB", "1.5TB", "500m" or a number of bytes, in bytes; units of one letter count in powers of 1024."""
    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise ClientError(f"{option} {text}: write it like 20GiB, 500MB or 1TiB.", USAGE)
    number, letter, binary = float(match[1]), match[2].upper(), match[3].lower()
    base = 1000 if letter and binary == "b" else 1024
    return round(number * base ** ("KMGTP".index(letter) + 1 if letter else 0))


def priority(text: str) -> int:
    """`"0"` to `"99"`, or `"urgent"`, as the API takes it."""
    if text == "urgent":
        return URGENT
    if not text.isdigit():
        raise ClientError(f"{text}: give a number from 0 to 99, or urgent.", USAGE)
    return int(text)


def limited(value: Any, shape: str, unit: float = 1) -> str:
    """A limit in a unit, with the shape of `str.format`: "12 h", or "no limit" for None."""
    return "no limit" if value is None else shape.format(value / unit)
