"""`aip train submit --data photos.zip`: upload, import and train in one act."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aiplatform.client import output, tus, waiting
from aiplatform.client.errors import JOB_FAILED, NOT_FOUND, USAGE, ClientError
from aiplatform.client.packing import packed

OVER = {"started", "failed", "cancelled"}
ARCHIVE = re.compile(r"\.(zip|tar|tgz|tbz2|txz|tar\.(gz|bz2|xz|zst))$", re.IGNORECASE)


def is_place(given: str) -> bool:
    """Whether data is named by its place on this machine: ./photos, /data/cells.zip, or an archive that lies here."""
    return given.startswith(("./", "../", "/", "~/")) or (bool(ARCHIVE.search(given)) and Path(given).is_file())


def train(args: argparse.Namespace, fields: Mapping[str, Any], data: list[Path], *, own: bool) -> Any:
    """Send the data, plan the training; it begins by itself once the data is imported, also when we are gone.

    Returns:
        The training, where it is waited for; else None.

    Raises:
        ClientError: a path that is not there, data beside other data, or own code; or it could not begin.
    """
    if own or args.dry_run:
        raise ClientError("Data is uploaded for presets. Send it first: aip upload NAME PATH --wait", USAGE)
    if len(args.data) > 1 or args.eval_data:
        raise ClientError("A preset learns from one dataset. Put everything into one folder or archive.", USAGE)
    place = data[0].expanduser()
    if not place.exists():
        raise ClientError(f"There is nothing at {place}.", NOT_FOUND)
    source = packed([place]) if place.is_dir() else place
    upload = tus.upload(args.client, source, quiet=args.json)
    body = {**fields, "upload": upload}  # what was sent is not to be sent again because the platform is away just now
    made = args.client.post("training/planned/", body, once=True, patience_s=waiting.PATIENCE_S)
    if not (args.wait or args.follow or args.download):
        if args.json:
            output.as_json(made)
        else:
            output.say(f"It begins by itself once {output.clean(made['dataset'])} is imported: {_page(args, made)}")
        return None
    row = waiting.until_over(args.client, f"training/planned/{made['id']}/", until=OVER)
    if row["state"] != "started":
        raise ClientError(output.clean(row["sentence"]) or f"It is {row['state']}.", JOB_FAILED)
    return args.client.get(f"training/jobs/{row['training']}/")


def _page(args: argparse.Namespace, made: Mapping[str, Any]) -> str:
    return f"{args.client.config.url}/training/planned/{made['id']}/"
