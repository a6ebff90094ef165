"""Resource options, which every submitting command has."""

from __future__ import annotations

import argparse
import re
from typing import Any

from aiplatform.client.commands import lookup
from aiplatform.client.errors import USAGE, ClientError

URGENT = 100
_SIZE = re.compile(r"(\d{1,16}(?:\.\d{1,6})?) ?([kmgtp]?)(ib|b|)", re.IGNORECASE)


def options(verb: argparse.ArgumentParser, *, gpus: str = "cards per node; 0 runs on the processor") -> None:
    """Add them; `gpus` is the help of --gpus."""
    verb.add_argument("--cluster", help="id or name; your current one when left out")
    verb.add_argument("--gpus", type=int, help=gpus)
    verb.add_argument("--device", metavar="KIND[:MODEL]", help="gpu, npu or cpu; the model if it matters")
    verb.add_argument("--share", type=int, metavar="N", help="N eighths of one card instead of whole cards")
    verb.add_argument("--cpus", type=float, help="processor cores")
    verb.add_argument("--memory", type=float, metavar="GIB", help="most memory on the machine; what takes more ends")
    verb.add_argument("--max-disk", metavar="20GiB", help="most disk space on each node; what takes more ends")
    verb.add_argument("--priority", type=int, help="0 to 99, a higher one starts first")
    verb.add_argument("--urgent", action="store_true", help="before everybody else; needs a right of its own")
    verb.add_argument("--root", action="store_true", help="be root inside; for those who may, and for no preset")
    verb.add_argument("--preemptible", action="store_true", help="may make room for others and go on later")


def fields(args: argparse.Namespace) -> dict[str, Any]:
    """The fields of a request for what was given."""
    given = {
        "cluster": args.cluster and lookup.cluster(args.client, args.cluster),
        "gpus_per_node": args.gpus,
        "device_kind": (args.device or "").partition(":")[0] or None,
        "device_model": (args.device or "").partition(":")[2] or None,
        "share": args.share,
        "cpus": args.cpus,
        "memory_mib": args.memory and round(args.memory * 1024),
        "max_disk_bytes": args.max_disk and size(args.max_disk, "--max-disk"),
        "priority": URGENT if args.urgent else args.priority,
        "preemptible": args.preemptible or None,
        "root_inside": args.root or None,
    }
    return {name: value for name, value in given.items() if value is not None}


def size(text: str, option: str) -> int:
    """ "20GiB", "1.5TB", "500m" or a number of bytes, in bytes; units of one letter count in powers of 1024."""
    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise ClientError(f"{option} {text}: write it like 20GiB, 500MB or 1TiB.", USAGE)
    number, letter, binary = float(match[1]), match[2].upper(), match[3].lower()
    base = 1000 if letter and binary == "b" else 1024
    return round(number * base ** ("KMGTP".index(letter) + 1 if letter else 0))


def priority(given: str) -> int:
    """`"0"` to `"99"`, or `"urgent"`, as the API takes it."""
    if given == "urgent":
        return URGENT
    if not given.isdigit():
        raise ClientError(f"{given}: give a number from 0 to 99, or urgent.", USAGE)
    return int(given)
