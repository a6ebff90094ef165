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
        raise ClientError(f"File {path} not found.", NOT_FOUND)
    return {"upload": tus.upload(args.client, path, quiet=args.json)}


def _read_places(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as exc:
        raise ClientError(f"{path} is not valid JSON: {exc}", USAGE) from None


NOUNS = {
    "video": (
        Verb("start", "Analyze a video file or a stream with a detector.", (
            registry.MODEL_VERSION,
            option("source", field="",
                   help="a local file, rtsp:// or http:// of a stream, or the id of an uploaded video"),
            option("--places", type=Path, convert=_read_places,
                   help="JSON file of lines and zones: {\"lines\": […], \"zones\": […]}"),
            repeated("--class", dest="classes", help="track only this class; can be repeated"),
            option("--min-score", type=float, help="minimum confidence of tracked objects"),
            option("--max-rate", type=float, help="maximum frames per second that are analyzed"),
            option("--interval", type=float, field="interval_s",
                   help="seconds per interval of counts; default: 10"),
            option("--still", type=float, field="still_s",
                   help="seconds of a frozen or black image until a notification; 0: never"),
            flag("--no-film", default=None, field="film", convert=lambda _: False, help="create no annotated video"),
            option("--webhook", field="webhook_url", help="webhook address for events"),
            option("--name", help="name of the analysis"),
            *resources.options("GPUs; 0 runs on the CPU"),
            flag("--wait", field="", help="wait for the end and show the counts; exit code 6 on failure"),
        ), post="videos/", send=_source, once=True, prints="id", done="Queued as video analysis {row[id]}.",
             wait_for="videos/{row[id]}/",
             result=lambda args, row: show_one(args, args.client.get(f"videos/{row['id']}/results/"), RESULTS)),
        Verb("list", "List video analyses.", (LIMIT,),
             get="videos/", table=COLUMNS, empty="No videos. Start an analysis: aip video start"),
        Verb("show", "Show counts.", (ID,), get="videos/{id}/results/", record=RESULTS),
        Verb("events", "List events.", (
            ID,
            option("--type", choices=TYPES, help="only these"),
            option("--place", help="only of this line or zone"),
            LIMIT,
        ), get="videos/{id}/events/", table=EVENTS, empty="No events yet."),
        Verb("film", "Download the annotated video.", (ID, TO),
             get="videos/{id}/film/", file="video-{args.id}.webm"),
        Verb("stop", "Request a stop.", (ID,),
             post="videos/{id}/stop/", done="Requested a stop of video analysis {args.id}."),
        Verb("files", "List uploaded videos.", (LIMIT,),
             get="video-files/", table=FILES, empty="No uploaded videos."),
        Verb("delete", "Delete an uploaded video; results are kept.", (ID, YES),
             delete="video-files/{id}/", confirm="Delete video {args.id}?", done="Deleted video {args.id}."),
    ),
}  # fmt: skip
