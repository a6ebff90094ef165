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

FINAL = {"started", "failed", "cancelled"}
ARCHIVE = re.compile(r"\.(zip|tar|tgz|tbz2|txz|tar\.(gz|bz2|xz|zst))$", re.IGNORECASE)


def is_local(name: str) -> bool:
    """Whether data is a local path: ./photos, /data/cells.zip, or an archive that exists."""
    return name.startswith(("./", "../", "/", "~/")) or (bool(ARCHIVE.search(name)) and Path(name).is_file())


def train(args: argparse.Namespace, fields: Mapping[str, Any], data: list[Path], *, custom: bool) -> Any:
    """Send the data and plan the training, which starts when the data is imported, also without this process.

    Returns:
        The training, where it is waited for; else None.

    Raises:
        ClientError: a path that is not there, data beside other data, or custom code; or it could not begin.
    """
    if custom or args.dry_run:
        raise ClientError("Data is uploaded for presets. Send it first: aip upload NAME PATH --wait", USAGE)
    if len(args.data) > 1 or args.eval_data:
        raise ClientError("A preset learns from one dataset. Put everything into one folder or archive.", USAGE)
    path = data[0].expanduser()
    if not path.exists():
        raise ClientError(f"There is nothing at {path}.", NOT_FOUND)
    source = packed([path]) if path.is_dir() else path
    upload = tus.upload(args.client, source, quiet=args.json)
    body = {**fields, "upload": upload}  # what was sent is not to be sent again because the platform is away just now
    planned = args.client.post("training/planned/", body, once=True, patience_s=waiting.PATIENCE_S)
    if not (args.wait or args.follow or args.download):
        if args.json:
            output.as_json(planned)
        else:
            output.say(
                f"It begins by itself once {output.clean(planned['dataset'])} is imported: {_page(args, planned)}"
            )
        return None
    row = waiting.until_over(args.client, f"training/planned/{planned['id']}/", until=FINAL)
    if row["state"] != "started":
        raise ClientError(output.clean(row["sentence"]) or f"It is {row['state']}.", JOB_FAILED)
    return args.client.get(f"training/jobs/{row['training']}/")


def _page(args: argparse.Namespace, planned: Mapping[str, Any]) -> str:
    return f"{args.client.config.url}/training/planned/{planned['id']}/"
