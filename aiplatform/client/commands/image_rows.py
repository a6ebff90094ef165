"""What the verbs of `aip images` share: columns, names of new images, what became of one."""

from __future__ import annotations

import argparse
from typing import Any

from aiplatform.client import output, waiting
from aiplatform.client.commands.verbs import done, show_one
from aiplatform.client.errors import JOB_FAILED, OK
from aiplatform.client.output import Column

VISIBILITIES = ("private", "group", "public")
COLUMNS: list[Column] = [
    ("id", "id"),
    ("name", lambda row: f"{row['name']}:{row['tag']}" if row.get("tag") else row["name"]),
    ("kind", "kind"),
    ("state", "state"),
    ("python", lambda row: row["facts"].get("python", "")),
    ("torch", lambda row: row["facts"].get("torch", "")),
    ("size", lambda row: output.size(row["size_bytes"]) if row.get("size_bytes") else ""),
    ("used by", "used_by"),
    ("owner", "owner"),
    ("made", lambda row: output.ago(row.get("created_at"))),
]
MORE: list[Column] = [
    *COLUMNS, ("message", "message"), ("visible to", "visibility"), ("sha256", "sha256"),
    ("reference", "reference"), ("digest", "digest"),
    ("packages", lambda row: ", ".join(row["requirements"].split("\n"))),
    ("left out", lambda row: ", ".join(row["left_out"])),
]  # fmt: skip


def named(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--tag", default="", help="a version, such as 2 or june")
    verb.add_argument("--description", default="")
    verb.add_argument("--visibility", choices=VISIBILITIES, default="private")
    verb.add_argument("--wait", action="store_true", help="wait until it is ready; 6 when it failed")


def fields(args: argparse.Namespace) -> dict[str, Any]:
    return {"name": args.name, "tag": args.tag, "description": args.description, "visibility": args.visibility}


def made(args: argparse.Namespace, row: Any, sentence: str) -> int:
    """Print the id; with `--wait`, what became of it."""
    if not args.wait:
        if not args.json:
            print(row["id"])
        job = row["build_job"] if row["kind"] == "engine" else None
        log = f" Its log: aip jobs logs -f {job}" if job else ""
        done(args, row, "It is ready." if row["state"] == "ready" else f"{sentence} as image {row['id']}.{log}")
        return OK
    row = waiting.until_over(args.client, f"images/{row['id']}/", until={"ready", "failed"})
    show_one(args, row, MORE)
    return OK if waiting.state_of(row) == "ready" else JOB_FAILED
