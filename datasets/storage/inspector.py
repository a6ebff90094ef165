"""Inspect the images named on standard input: `python -m datasets.storage.inspector ROOT [STILLS]`.

A line in is a JSON list of paths below ROOT, a line out the list of what was found in them. It ends with its input.
What moves or no browser shows is written below STILLS as a PNG of its first frame; without STILLS it stays as it is.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from django.conf import settings

from aiplatform.lib.errors import DomainError
from aiplatform.lib.files import open_beneath
from aiplatform.lib.wording import message
from datasets.storage import image_files

READY = b"ready\n"  # the first line of output: the process has started


def inspect(root: Path, source: str, stills: Path | None = None) -> dict[str, Any]:
    """Inspect the image `source` below `root`: facts as `pictures.Inspected`, or {"error": a message's JSON}.

    Where a PNG was made below `stills`, "still" is its name and the facts are its own.
    """
    try:
        with os.fdopen(open_beneath(root, source), "rb") as file:
            inspected = image_files.inspect(file)
            if inspected.kind not in image_files.STILL_KINDS and not inspected.moving:
                return inspected._asdict()
            if stills is None:
                return _in_place(inspected)
            file.seek(0)
            data = image_files.still(file)
    except image_files.BadImage as exc:
        return {"error": exc.worded.as_json()}
    except DomainError:  # a link, or no file at all
        return {"error": message("report.not_followed").as_json()}
    except OSError as exc:
        return {"error": message("report.file_unreadable", error=str(exc)).as_json()}
    name = f"{hashlib.sha256(source.encode(errors='surrogateescape')).hexdigest()}.png"
    stills.mkdir(parents=True, exist_ok=True)
    (stills / name).write_bytes(data)
    facts = image_files.inspect(io.BytesIO(data))._asdict()
    return facts | {
        "kind": inspected.kind,
        "moving": inspected.moving,
        "orientation": inspected.orientation,
        "still": name,
    }


def _in_place(inspected: image_files.Inspected) -> dict[str, Any]:
    """Return the facts of an image that stays in place; it cannot become a PNG."""
    if inspected.kind in image_files.STILL_KINDS:
        return {"error": message("report.not_in_place", kind=inspected.kind).as_json()}
    return inspected._asdict()


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C means the worker, whose end closes our input
    settings.configure(USE_I18N=False)  # no apps are loaded here, so texts of errors have no language either
    root, out = Path(sys.argv[1]), sys.stdout.buffer
    stills = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    try:
        out.write(READY)
        out.flush()
        for line in sys.stdin.buffer:
            out.write(json.dumps([inspect(root, source, stills) for source in json.loads(line)]).encode() + b"\n")
            out.flush()
    except BrokenPipeError:
        os._exit(1)  # the parent process has ended


if __name__ == "__main__":
    main()
