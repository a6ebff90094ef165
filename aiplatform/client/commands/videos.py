"""`aip video`: let a detector watch videos and streams."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

from aiplatform.client import output, tus, waiting
from aiplatform.client.commands import lookup, registry, resources, versioned
from aiplatform.client.commands.verbs import Noun, Nouns, Parent, done, paging, show_list, show_one
from aiplatform.client.errors import NOT_FOUND, USAGE, ClientError
from aiplatform.client.output import Column

STREAM = re.compile(r"(rtsps?|https?)://", re.IGNORECASE)
LISTED: list[Column] = [
    ("id", "id"),
    ("name", "name"),
    ("source", "source"),
    ("model", "model"),
    ("state", "state"),
    ("events", lambda row: row["summary"].get("events", "")),
    ("made", lambda row: output.ago(row.get("created_at"))),
]
EVENTS: list[Column] = [
    ("at", lambda row: f"{row['at']:.1f}"),
    ("event", lambda row: f"{row['type']} {row['way']}".strip()),
    ("place", "place"),
    ("object", lambda row: f"{row['class_name']} {row['object']}".strip()),
    ("seconds", lambda row: "" if row["seconds"] is None else f"{row['seconds']:.1f}"),
]
TYPES = ["crossed", "entered", "left", "loitered", "frozen", "black", "over"]
FILES: list[Column] = [
    ("id", "id"),
    ("name", "name"),
    ("size", lambda row: output.size(row["size_bytes"])),
    ("made", lambda row: output.ago(row.get("created_at"))),
]


def _counts(key: str, *names: str) -> Any:
    def shown(row: dict[str, Any]) -> str:
        return "; ".join(
            ", ".join([str(one["name"]), *(f"{name} {one[name]}" for name in names)]) for one in row.get(key, [])
        )

    return shown


COUNTED: list[Column] = [
    ("Pictures", "pictures"),
    ("Seconds", lambda row: f"{row['at']:.1f}" if "at" in row else ""),
    ("Objects", _counts("objects", "count")),
    ("Lines", _counts("lines", "in", "out")),
    ("Zones", _counts("zones", "inside", "entered", "left", "loitered")),
    ("Events", "events"),
]


def add(nouns: Nouns, parent: Parent) -> None:
    video = Noun(nouns, parent, "video", "Let detectors watch videos and streams.", also=("videos",))
    verb = video.verb("start", start, "Let a detector watch a video file or a stream.")
    verb.add_argument("model", help=registry.VERSION)
    verb.add_argument("source", help="a file here, rtsp:// or http:// of a stream, or the id of an uploaded video")
    verb.add_argument("--places", type=Path, help='JSON file of what is counted: {"lines": […], "zones": […]}')
    verb.add_argument("--class", dest="classes", action="append", help="follow only this class; may be repeated")
    verb.add_argument("--min-score", type=float, help="score from which something is followed")
    verb.add_argument("--max-rate", type=float, help="pictures a second that are looked at, at most")
    verb.add_argument("--interval", type=float, help="seconds of an interval of counts; 10 when left out")
    verb.add_argument("--still", type=float, help="seconds of one picture, or black, until a stream is told; 0: never")
    verb.add_argument("--no-film", action="store_true", help="make no annotated film")
    verb.add_argument("--webhook", help="address that gets each event")
    verb.add_argument("--name", help="a name for the analysis")
    resources.options(verb, gpus="cards; 0 runs on the processor")
    verb.add_argument("--wait", action="store_true", help="wait for the end and show the counts; 6 when it failed")
    paging(video.verb("list", listed, "List analyses of videos."))
    video.verb("show", show, "Show what was counted.").add_argument("id")
    verb = video.verb("events", events, "List what happened.")
    verb.add_argument("id")
    verb.add_argument("--type", choices=TYPES, help="only these")
    verb.add_argument("--place", help="only of this line or zone")
    paging(verb)
    verb = video.verb("film", film, "Download the annotated film.")
    verb.add_argument("id")
    verb.add_argument("--to", type=Path, help="file to write; an unfinished one is continued")
    video.verb("stop", stop, "Request a stop.").add_argument("id")
    paging(video.verb("files", files, "List uploaded videos."))
    verb = video.verb("delete", delete, "Delete an uploaded video; what was found in it stays.")
    verb.add_argument("id")
    verb.add_argument("--yes", action="store_true", help="do not ask")


def start(args: argparse.Namespace) -> int | None:
    given = {
        "places": _places(args.places) if args.places else None,
        "classes": args.classes,
        "min_score": args.min_score,
        "max_rate": args.max_rate,
        "interval_s": args.interval,
        "still_s": args.still,
        "film": False if args.no_film else None,
        "webhook_url": args.webhook,
        "name": args.name,
    }
    fields = {"model_version": lookup.model_version(args.client, args.model)} | _source(args)
    fields |= {name: value for name, value in given.items() if value is not None} | resources.fields(args)
    row = args.client.post("videos/", fields, once=True)
    if args.wait:
        row = waiting.until_over(args.client, f"videos/{row['id']}/")
        _show(args, row["id"])
        return waiting.exit_code(row)
    if not args.json:
        print(row["id"])
    done(args, row, f"Queued as video analysis {row['id']}.")
    return None


def _source(args: argparse.Namespace) -> dict[str, Any]:
    """The field that says what is watched; a file is sent first."""
    if STREAM.match(args.source):
        return {"url": args.source}
    place = Path(args.source).expanduser()
    if args.source.isdigit() and not place.exists():
        return {"video": int(args.source)}
    if not place.is_file():
        raise ClientError(f"There is no file {place}.", NOT_FOUND)
    return {"upload": tus.upload(args.client, place, quiet=args.json)}


def _places(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as exc:
        raise ClientError(f"{path} cannot be read as JSON: {exc}", USAGE) from None


def listed(args: argparse.Namespace) -> None:
    rows = args.client.pages("videos/", limit=args.limit)
    show_list(args, rows, LISTED, empty="No videos. aip video start begins one.")


def show(args: argparse.Namespace) -> None:
    _show(args, args.id)


def _show(args: argparse.Namespace, number: Any) -> None:
    show_one(args, args.client.get(f"videos/{number}/results/"), COUNTED)


def events(args: argparse.Namespace) -> None:
    rows = args.client.pages(f"videos/{args.id}/events/", limit=args.limit, type=args.type, place=args.place)
    show_list(args, rows, EVENTS, empty="Nothing happened so far.")


def film(args: argparse.Namespace) -> None:
    versioned.fetch(args, f"videos/{args.id}/film/", f"video-{args.id}", ending=".webm")


def stop(args: argparse.Namespace) -> None:
    row = args.client.post(f"videos/{args.id}/stop/")
    done(args, row, f"Video analysis {args.id} is asked to stop.")


def files(args: argparse.Namespace) -> None:
    show_list(args, args.client.pages("video-files/", limit=args.limit), FILES, empty="No uploaded videos.")


def delete(args: argparse.Namespace) -> None:
    question = f"Delete video {args.id}?"
    versioned.remove(args, f"video-files/{args.id}/", question=question, removed=f"Video {args.id} is deleted.")
