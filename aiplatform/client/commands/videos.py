"""`aip video`: analyze videos and streams with a detector."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

from aiplatform.client import tus
from aiplatform.client.commands import registry, resources
from aiplatform.client.errors import NOT_FOUND, USAGE, ClientError
from aiplatform.client.options import ID, LIMIT, TO, YES, flag, option, repeated
from aiplatform.client.output import Format, columns
from aiplatform.client.verbs import Verb, show_one

STREAM = re.compile(r"(rtsps?|https?)://", re.IGNORECASE)
TYPES = ["crossed", "entered", "left", "loitered", "frozen", "black", "over"]
COLUMNS = columns("id, name, source, model, state, events=summary.events, made=created_at|ago")
EVENTS = columns(
    "at=at|.1f, event=|event, place, object=|object, seconds=seconds|.1f",
    event=lambda row: f"{row['type']} {row['way']}".strip(),
    object=lambda row: f"{row['class_name']} {row['object']}".strip(),
)
FILES = columns("id, name, size=size_bytes|size, made=created_at|ago")


def _counts(*names: str) -> Format:
    def format_counts(rows: Any) -> str:
        parts = ([str(row["name"]), *(f"{name} {row[name]}" for name in names)] for row in rows or ())
        return "; ".join(", ".join(part) for part in parts)

    return format_counts


RESULTS = columns(
    "Pictures=pictures, Seconds=at|.1f, Objects=objects|objects, Lines=lines|lines, Zones=zones|zones, Events=events",
    objects=_counts("count"),
    lines=_counts("in", "out"),
    zones=_counts("inside", "entered", "left", "loitered"),
)


def _source(args: argparse.Namespace) -> dict[str, Any]:
    """The field of the source; a file is uploaded first."""
    if STREAM.match(args.source):
        return {"url": args.source}
    path = Path(args.source).expanduser()
    if args.source.isdigit() and not path.exists():
        return {"video": int(args.source)}
    if not path.is_file():
        raise ClientError(f"There is no file {path}.", NOT_FOUND)
    return {"upload": tus.upload(args.client, path, quiet=args.json)}


def _read_places(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as exc:
        raise ClientError(f"{path} cannot be read as JSON: {exc}", USAGE) from None


NOUNS = {
    "video": (
        Verb("start", "Let a detector watch a video file or a stream.", (
            registry.MODEL_VERSION,
            option("source", field="",
                   help="a file here, rtsp:// or http:// of a stream, or the id of an uploaded video"),
            option("--places", type=Path, convert=_read_places,
                   help='JSON file of what is counted: {"lines": […], "zones": […]}'),
            repeated("--class", dest="classes", help="follow only this class; may be repeated"),
            option("--min-score", type=float, help="score from which something is followed"),
            option("--max-rate", type=float, help="pictures a second that are looked at, at most"),
            option("--interval", type=float, field="interval_s",
                   help="seconds of an interval of counts; 10 when left out"),
            option("--still", type=float, field="still_s",
                   help="seconds of one picture, or black, until a stream is told; 0: never"),
            flag("--no-film", default=None, field="film", convert=lambda _: False, help="make no annotated film"),
            option("--webhook", field="webhook_url", help="address that gets each event"),
            option("--name", help="a name for the analysis"),
            *resources.options("cards; 0 runs on the processor"),
            flag("--wait", field="", help="wait for the end and show the counts; 6 when it failed"),
        ), post="videos/", send=_source, once=True, prints="id", done="Queued as video analysis {row[id]}.",
             wait_for="videos/{row[id]}/",
             result=lambda args, row: show_one(args, args.client.get(f"videos/{row['id']}/results/"), RESULTS)),
        Verb("list", "List analyses of videos.", (LIMIT,),
             get="videos/", table=COLUMNS, empty="No videos. aip video start begins one."),
        Verb("show", "Show what was counted.", (ID,), get="videos/{id}/results/", record=RESULTS),
        Verb("events", "List what happened.", (
            ID,
            option("--type", choices=TYPES, help="only these"),
            option("--place", help="only of this line or zone"),
            LIMIT,
        ), get="videos/{id}/events/", table=EVENTS, empty="No events yet."),
        Verb("film", "Download the annotated film.", (ID, TO),
             get="videos/{id}/film/", file="video-{args.id}.webm"),
        Verb("stop", "Request a stop.", (ID,),
             post="videos/{id}/stop/", done="Video analysis {args.id} is asked to stop."),
        Verb("files", "List uploaded videos.", (LIMIT,),
             get="video-files/", table=FILES, empty="No uploaded videos."),
        Verb("delete", "Delete an uploaded video; what was found in it stays.", (ID, YES),
             delete="video-files/{id}/", confirm="Delete video {args.id}?", done="Video {args.id} is deleted."),
    ),
}  # fmt: skip
