"""What the verbs of `aip images` share: columns, names of new images, the result of a build."""

from __future__ import annotations

import argparse
from typing import Any

from aiplatform.client import output, waiting
from aiplatform.client.commands import lookup
from aiplatform.client.errors import JOB_FAILED, OK
from aiplatform.client.options import flag, option
from aiplatform.client.output import columns
from aiplatform.client.verbs import done, show_one

VISIBILITIES = ("private", "group", "public")
COLUMNS = columns(
    "id, name=|name, kind, state, python=facts.python, torch=facts.torch, size=size_bytes|size, used by=used_by, "
    "owner, made=created_at|ago",
    name=lambda row: f"{row['name']}:{row['tag']}" if row.get("tag") else row["name"],
    size=lambda size: output.size(size) if size else "",
)
FIELDS = COLUMNS + columns(
    "message, visible to=visibility, sha256, reference, digest, packages=requirements|lines, left out=left_out|joined",
    lines=lambda text: ", ".join(text.split("\n")),
)
IMAGE = option("image", find=lookup.image, help="id, NAME, or NAME:TAG")
#: Options of a new image.
NAMING = (
    option("--tag", default="", help="a version, such as 2 or june"),
    option("--description", default=""),
    option("--visibility", choices=VISIBILITIES, default="private"),
)
WAIT = flag("--wait", help="wait until it is ready; 6 when it failed", field="")


def print_new(args: argparse.Namespace, row: Any, sentence: str) -> int:
    """Print the id of a new image; with `--wait`, wait for its build and print the image."""
    if not args.wait:
        if not args.json:
            print(row["id"])
        job = row["build_job"] if row["kind"] == "engine" else None
        log = f" Its log: aip jobs logs -f {job}" if job else ""
        done(args, row, "It is ready." if row["state"] == "ready" else f"{sentence} as image {row['id']}.{log}")
        return OK
    row = waiting.until_over(args.client, f"images/{row['id']}/", until={"ready", "failed"})
    show_one(args, row, FIELDS)
    return OK if waiting.state_of(row) == "ready" else JOB_FAILED
