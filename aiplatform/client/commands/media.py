"""`aip jobs media`: images, figures, sounds, videos, histograms and so on that a job logged."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aiplatform.client import download, output
from aiplatform.client.errors import ClientError
from aiplatform.client.options import fields, option
from aiplatform.client.output import columns
from aiplatform.client.verbs import Verb, done, show_list

KINDS = ("image", "figure", "audio", "video", "histogram", "text", "table", "graph", "vectors", "params")
SUFFIXES = ("png", "jpg", "json", "txt", "html", "wav", "mp3", "ogg", "flac", "mp4", "webm", "gif")
PNG, JPEG = b"\x89PNG", b"\xff\xd8"
SERIES = columns(
    "kind, name, first step=first_step, last step=last_step, stored=steps, received=seen, rejected=refused"
)
FILTERS = (
    option("--kind", choices=KINDS, help="only these"),
    option("--name", help="only the series of this name"),
    option("--step", type=int, help="only those of this step"),
    option("--attempt", type=int, help="of this attempt; default: the newest"),
)


def _media(args: argparse.Namespace) -> None:
    route = f"jobs/{args.id}/media/"
    if args.to is None:
        media = args.client.get(f"{route}series/", kind=args.kind, attempt=args.attempt)
        rows = [row for row in media["series"] if args.name in (None, row["name"])]
        show_list(args, rows, SERIES, empty="The job logged only metrics.")
        for note in media["notes"]:
            output.say(note["sentence"])
        return
    downloads = [_download(args, row) for row in args.client.pages(route, **fields(args, FILTERS))]
    new, total = sum(downloads), len(downloads)
    here = f", {total - new} already existed" if new < total else ""
    sentence = f"{new} of {total} in {args.to}{here}." if total else "No matching data."
    done(args, {"brought": new, "found": total, "folder": str(args.to)}, sentence)


def _download(args: argparse.Namespace, row: Mapping[str, Any]) -> bool:
    """Fetch one of a series unless it is there; whole or not at all."""
    parts = [re.sub(r"[^\w.-]+", "_", part).strip(".") or "_" for part in str(row["name"]).split("/")]
    folder = args.to.joinpath(row["kind"], *parts)
    stem = f"{row['step']:08d}-{row['id']}"  # two of one step have numbers of their own
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any((folder / f"{stem}.{suffix}").exists() for suffix in SUFFIXES):
            return False
        if row["file_url"]:
            _fetch(args, row["file_url"], folder / stem, row["facts"].get("format"))
        else:
            _write(folder / stem, row["facts"])
    except OSError as exc:
        raise ClientError(f"{folder} is not writable: {exc.strerror}.") from exc
    return True


def _fetch(args: argparse.Namespace, url: str, target: Path, suffix: Any) -> None:
    partial = target.with_name(f".{target.name}")
    download.fetch(args.client, url, partial, quiet=True)
    with partial.open("rb") as file:
        first = file.read(4)
    if suffix not in SUFFIXES:
        suffix = "png" if first.startswith(PNG) else "jpg" if first.startswith(JPEG) else "json"
    partial.replace(target.with_name(f"{target.name}.{suffix}"))


def _write(target: Path, facts: Mapping[str, Any]) -> None:
    """Facts that lie in no file: a text as it is, else JSON."""
    text = facts.get("text")
    suffix = "txt" if isinstance(text, str) else "json"
    partial = target.with_name(f".{target.name}")
    partial.write_text(text if isinstance(text, str) else json.dumps(facts, ensure_ascii=False), encoding="utf-8")
    partial.replace(target.with_name(f"{target.name}.{suffix}"))


MEDIA = Verb("media", "List or download the images, histograms, texts, … that a job logged.", (
    option("id", type=int),
    *FILTERS,
    option("--to", type=Path, metavar="FOLDER", help="download them; existing files are kept"),
), run=_media)  # fmt: skip
