"""Images stored for annotation: on the disk of this device until they have been sent to the platform.

One file each, whole or absent: a line of JSON with the answers, then the picture. Its name begins with the time, so the
oldest goes first where there are too many, and ends with the picture's sum, so the same one is kept once.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import queue
import random
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .durable import Json, write
from .trust import canonical

MAX_IMAGES, MAX_BYTES = 200, 64 << 20  # on the disk
MAX_IMAGE_BYTES = 2 << 20
FREE_BYTES = 256 << 20  # that stay free for everything else
LOW, CHANCE = "low_score", "chance"
OFF, ON, FORBIDDEN = "off", "on", "forbidden"
SAYS = {
    OFF: "The platform keeps no pictures of this device.",
    ON: "The platform keeps some of the pictures that this device answers. --no-samples forbids it.",
    FORBIDDEN: "No picture leaves this device: --no-samples.",
}


class Samples:
    """Stores images by the rule of the last release, unless the operator of the device forbids it.

    Args:
        folder: of the images.
        jpeg: converts an image to a JPEG without camera metadata; None where that fails.
        allowed: False stores no images and deletes those on the disk.
    """

    def __init__(self, folder: Path, jpeg: Callable[[bytes], bytes | None], *, allowed: bool = True) -> None:
        self.folder, self.jpeg, self.allowed = folder, jpeg, allowed
        self.percent = self.below = 0.0
        self.waiting_to_be_kept: queue.Queue[tuple[bytes, Json]] = queue.Queue(maxsize=4)
        folder.mkdir(parents=True, exist_ok=True)
        for part in folder.glob("*.new"):
            part.unlink(missing_ok=True)
        threading.Thread(target=self._store_queued, daemon=True).start()

    def follow(self, rule: Any) -> None:
        """Store by another rule: {"percent": 0..100, "below": 0..1}; anything else turns it off and deletes them."""
        limits: Mapping[str, Any] = rule if isinstance(rule, Mapping) and self.allowed else {}
        self.percent, self.below = _share(limits.get("percent"), 100), _share(limits.get("below"), 1)
        if not (self.percent or self.below):
            for path in self.list_stored():
                path.unlink(missing_ok=True)

    @property
    def state(self) -> str:
        if not self.allowed:
            return FORBIDDEN
        return ON if self.percent or self.below else OFF

    def consider(self, picture: bytes, body: bytes, package: str) -> None:
        """Store an image with its answers where the rule selects it. Never delays the response to the caller."""
        if not (self.percent or self.below):
            return
        with contextlib.suppress(ValueError, LookupError, TypeError, queue.Full):
            answers = json.loads(body)["predictions"]
            if reason := self._reason(answers):
                self.waiting_to_be_kept.put_nowait((picture, {"answers": answers, "why": reason, "package": package}))

    def _reason(self, answers: Any) -> str:
        scores = [float(answer["score"]) for answer in answers if "score" in answer]
        if self.below and scores and min(scores) < self.below:
            return LOW
        return CHANCE if random.random() * 100 < self.percent else ""  # noqa: S311  no secret

    def _store_queued(self) -> None:
        while True:
            picture, head = self.waiting_to_be_kept.get()
            with contextlib.suppress(OSError):  # a full disk: the next one may find room
                if (jpeg := self.jpeg(picture)) and shutil.disk_usage(self.folder).free > FREE_BYTES:
                    self.store(jpeg, head)

    def store(self, jpeg: bytes, head: Json) -> None:
        """Write an image to the disk and delete the oldest where there are too many."""
        sha = hashlib.sha256(jpeg).hexdigest()
        if len(jpeg) > MAX_IMAGE_BYTES or self.state != ON or next(self.folder.glob(f"*-{sha}"), None) is not None:
            return
        write(self.folder / f"{time.time_ns() // 1_000_000:015d}-{sha}", canonical(head) + b"\n" + jpeg)
        stored = self.list_stored()
        sizes = {path: path.stat().st_size for path in stored}
        while stored and (len(stored) > MAX_IMAGES or sum(sizes[path] for path in stored) > MAX_BYTES):
            stored.pop(0).unlink(missing_ok=True)

    def list_stored(self) -> list[Path]:
        """Return the images that wait to be sent, oldest first."""
        return sorted(path for path in self.folder.iterdir() if path.suffix != ".new")


def read(path: Path) -> tuple[Json, bytes]:
    """Return the head and the image of a file."""
    head, _line, picture = path.read_bytes().partition(b"\n")
    head_fields: Json = json.loads(head)
    return head_fields, picture


def form(head: Mapping[str, Any], picture: bytes) -> tuple[bytes, str]:
    """A form with a picture as its file, and its content type."""
    edge = hashlib.sha256(picture).hexdigest()
    fields = {"answers": json.dumps(head["answers"]), "why": head["why"], "package": head["package"]}
    parts = [
        f'--{edge}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in fields.items()
    ]
    file = 'Content-Disposition: form-data; name="image"; filename="image.jpg"\r\nContent-Type: image/jpeg'
    parts += [f"--{edge}\r\n{file}\r\n\r\n".encode(), picture, f"\r\n--{edge}--\r\n".encode()]
    return b"".join(parts), f"multipart/form-data; boundary={edge}"


def _share(value: Any, limit: float) -> float:
    return float(value) if isinstance(value, int | float) and 0 < value <= limit else 0.0
