"""Watch a file to its end: find, follow, count, draw; keep what is done at the end of each segment."""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from PIL import Image

from inference.kit.samples.run import Run, write
from inference.video.watcher import film as films
from inference.video.watcher.counts import Counts
from inference.video.watcher.detect import Detector, Found, followed
from inference.video.watcher.draw import draw
from inference.video.watcher.pictures import FILE_SLOTS, Layout, Picture, Pixels
from inference.video.watcher.segments import Kept
from inference.video.watcher.settings import DOUBTFUL, SHOWN_WIDTH, Asked
from inference.video.watcher.source import Source, SourceEnded
from inference.video.watcher.tracker import Ints, Settings, Tracker

SEGMENT_S, MAX_SEGMENTS = 10.0, 200
SHOW_EVERY_S = 1.0
JPEG_QUALITY = 75


class Suspended(Exception):
    """A suspend was requested; what was done so far is in a checkpoint."""


class Watch:
    """A source on its way to its figures."""

    is_stream = False
    layout: Layout  # once `begin` was called

    def __init__(self, run: Run, source: str) -> None:
        self.run, self.source, self.asked, self.kept = run, source, Asked.from_params(run.params), Kept(run)
        lowest = DOUBTFUL if self.asked.min_score is None else min(DOUBTFUL, self.asked.min_score / 2)
        self.detector = Detector(run.model, threads=run.threads, lowest=lowest)
        sure = self.asked.min_score or self.detector.spec.decode.score_threshold
        self.tracker = Tracker(Settings(sure=sure, doubtful=min(lowest, sure), lost_s=self.asked.lost_s))
        self.names = {model_class.id: model_class.name for model_class in self.detector.spec.classes}
        self.counts = Counts(self.asked.lines, self.asked.zones, (1, 1), self.asked.interval_s)
        self.facts: dict[str, Any] = {}
        self.film: films.Film | None = None
        self.film_begin = 0.0
        self.segment, self.segment_s = 0, SEGMENT_S
        self.frames, self.last_at = 0, 0.0
        self.last_pts: int | None = None
        self.shown_at, self.began, self.began_frames = 0.0, time.monotonic(), 0
        self.finishing = False
        self.hardware = True  # whether a device may decode, see hardware.py
        self._lines: TextIO | None = None
        self._events: TextIO | None = None
        self._first = run.outputs / "first.jpg"

    def all(self) -> None:
        """Watch what is not watched yet, then put the film and the figures together.

        Raises:
            Suspended: a suspend was requested.
            SourceEnded: the source cannot be read.
        """
        state = self.kept.restore()
        if state is not None:
            self._restore(state)
            print(f"Going on after {self.last_at:.1f} s.", flush=True)
        self._events = self.kept.events.open("a", encoding="utf-8")
        for picture in self.pictures():
            self._process(picture)
            self._heed()
            if self.finishing:
                break
        self._end_segment(self.segment)
        self.finish()

    def pictures(self) -> Iterator[Picture]:
        """The pictures to look at."""
        while True:
            try:
                with Source(self.order()) as source:
                    for picture in source.pictures():
                        if source.layout and not self.facts:
                            self.start_source(source.layout, source.facts)
                        yield picture
                return
            except SourceEnded as exc:
                if not exc.hardware:
                    raise
                self.without_hardware(str(exc))

    def without_hardware(self, why: str) -> None:
        """Let the processor decode from here on: a device failed."""
        print(f"Hardware decoding failed: {why} The processor decodes from here on.", flush=True)
        self.hardware = False
        if self.facts:
            self.facts["decoder"] = "software"

    def order(self) -> dict[str, Any]:
        """Return the order for the decoder."""
        return {
            "source": self.source,
            "is_stream": False,
            "look": self.detector.frame_format(),
            "shown_width": SHOWN_WIDTH,
            "shown": self.layout.shown if self.facts else None,
            "slots": FILE_SLOTS,
            "max_rate": self.asked.max_rate,
            "film": self.asked.film,
            "threads": self.run.threads,
            "after": self.last_pts,
            "hardware": self.hardware,
        }

    def start_source(self, layout: Layout, facts: dict[str, Any]) -> None:
        """Prepare for the properties of the source."""
        self.facts, self.layout = facts, layout
        self.counts.size = (layout.width, layout.height)
        if not self.is_stream:
            self.segment_s = max(SEGMENT_S, (facts.get("duration_s") or 0) / MAX_SEGMENTS)
        if self.asked.film and self.film is None:
            height, width, _ = layout.shown
            self.film = films.Film(self.kept.segments, (width, height))
        rate = f", {facts['rate']:.2f} pictures a second" if facts.get("rate") else ""
        print(
            f"{layout.width}×{layout.height} {facts.get('codec')}{rate}, decoded by {facts.get('decoder')}, "
            f"on {self.detector.engine.provider}.",
            flush=True,
        )
        if facts.get("hardware_why") and facts["decoder"] == "software":
            print(f"Not decoded by hardware: {facts['hardware_why']}.", flush=True)

    def _process(self, picture: Picture) -> None:
        number = int(picture.at // self.segment_s)
        if number != self.segment:
            self._end_segment(number)
        detections = followed(self.detector.find(picture.look, self.layout), self.asked.classes)
        numbers = self.tracker.update(detections.boxes, detections.scores, detections.kinds, picture.at)
        events = [*self.counts.update(detections, numbers, picture.at), *self.happened(picture)]
        self.frames, self.last_at, self.last_pts = self.frames + 1, picture.at, picture.pts
        self._note(detections, numbers, events)
        if picture.shown is not None:
            self._show(picture.shown, picture.at, detections, numbers)
        if time.monotonic() - self.shown_at >= SHOW_EVERY_S:
            self.shown_at = time.monotonic()
            self._report()

    def _note(self, detections: Found, numbers: Ints, events: list[dict[str, Any]]) -> None:
        """Write the objects of a frame, and its events."""
        if self._lines is None:
            self._lines = (self.kept.segments / f"{self.segment:06d}.tmp.jsonl").open("w", encoding="utf-8")
        rows = [
            [int(number), int(kind), round(float(score), 4), *(round(float(edge), 1) for edge in box)]
            for number, kind, score, box in zip(
                numbers, detections.kinds, detections.scores, detections.boxes, strict=True
            )
            if number
        ]
        self._lines.write(json.dumps({"at": round(self.last_at, 3), "boxes": rows}) + "\n")
        if events and self._events:
            for event in events:
                self._events.write(json.dumps(self.dated(event)) + "\n")
            self._events.flush()

    def happened(self, picture: Picture) -> list[dict[str, Any]]:
        """Events of the source itself; a file has none."""
        return []

    def dated(self, event: dict[str, Any]) -> dict[str, Any]:
        """The event with what names it among those of all attempts: a file has the same ones each time."""
        return {"key": str(event["number"]), **event}

    def _show(self, shown: Pixels, at: float, detections: Found, numbers: Ints) -> None:
        """Draw the frame for the film, and for current viewers."""
        if not self._first.exists():
            self._picture(self._first, shown)
        due = time.monotonic() - self.shown_at >= SHOW_EVERY_S
        if self.film is None and not due and not self.has_viewers():
            return
        drawn = shown.copy()
        size = (self.layout.width, self.layout.height)
        draw(
            drawn, size, detections.boxes, detections.kinds, numbers, self.names, self.asked.colors, self.asked.lines,
            self.asked.zones,
        )  # fmt: skip
        if self.film is not None:
            self.film.add(self.segment, drawn, at)
        if due:
            self._picture(self.run.outputs / "latest.jpg", drawn)
        self.showing(drawn)

    def has_viewers(self) -> bool:
        """Return whether there is a viewer of each frame now."""
        return False

    def showing(self, drawn: Pixels) -> None:
        """Show a picture to those who look at each."""

    def _picture(self, file: Path, pixels: Pixels) -> None:
        making = file.with_suffix(".tmp")
        making.write_bytes(jpeg(pixels))
        making.replace(file)

    def _end_segment(self, following: int) -> None:
        """Complete the current segment, and store the state from which a further attempt continues."""
        if self.film is not None:
            self.film.close()
        if self._lines is not None:
            self._lines.close()
            making = Path(self._lines.name)
            making.replace(making.with_name(making.name.replace(".tmp", "")))
            self._lines = None
        if self._events:
            self._events.flush()
            os.fsync(self._events.fileno())
        self.segment = following
        if self.last_pts is not None:
            self.forget()
            self.kept.checkpoint(self.frames, self._state())

    def forget(self) -> None:
        """Leave out old segments; a file keeps all of them."""

    def _state(self) -> dict[str, Any]:
        return {
            "format": 1,
            "pts": self.last_pts,
            "at": self.last_at,
            "frames": self.frames,
            "segment": self.segment,
            "tracker": self.tracker.as_json(),
            "counts": self.counts.as_json(),
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self.last_pts, self.last_at, self.frames = state["pts"], state["at"], state["frames"]
        self.segment, self.began_frames = state["segment"], state["frames"]
        self.tracker.restore(state["tracker"])
        self.counts.restore(state["counts"])

    def _heed(self) -> None:
        command = self.run.requested()
        while command == "pause":
            time.sleep(0.2)
            command = self.run.requested()
        if command == "suspend":
            raise Suspended
        self.finishing = self.finishing or command == "finish"

    def _report(self) -> None:
        spent = time.monotonic() - self.began
        rate = (self.frames - self.began_frames) / max(spent, 1e-6)
        values: dict[str, float | str] = {"phase": "predicting", "pictures_per_s": round(rate, 2)}
        duration = self.facts.get("duration_s")
        if duration:
            share = min(1.0, self.last_at / duration)
            values["progress"] = 0.98 * share
            values["eta_s"] = max(0.0, duration - self.last_at) * self.asked_rate() / max(rate, 1e-6)
        self.run.report(self.frames, **values)
        self.write_summary()

    def asked_rate(self) -> float:
        """Pictures to look at in a second of the source."""
        own = self.facts.get("rate") or 25.0
        return min(own, self.asked.max_rate) if self.asked.max_rate else float(own)

    def write_summary(self, **more: Any) -> None:
        """Write outputs/summary.json, which pages read."""
        spent = time.monotonic() - self.began
        summary = {
            "format": 1,
            "source": {key: value for key, value in self.facts.items() if key not in ("look", "slots")},
            "at": round(self.last_at, 3),
            "pictures": self.frames,
            "pictures_per_s": round((self.frames - self.began_frames) / max(spent, 1e-6), 2),
            "classes": [{"id": kind, "name": name} for kind, name in self.names.items()],
            **self.counts.summary(),
            "film_begin": self.film_begin,
            "film": (self.run.outputs / "film.webm").exists(),
            "complete": False,
            **more,
        }
        write(self.run.outputs / "summary.json", json.dumps(summary))

    def finish(self) -> None:
        """Join the film and the detections."""
        if segments := self.kept.films():
            self.film_begin = films.join(segments, self.run.outputs / "film.webm")
        partial = self.run.outputs / "detections.tmp"
        with partial.open("wb") as merged:
            for part in self.kept.lines():
                merged.write(part.read_bytes())
        partial.replace(self.run.outputs / "detections.jsonl")
        self.write_summary(complete=True)
        self.run.report(self.frames, progress=1.0)
        print(
            f"{self.frames} pictures, {sum(self.counts.objects.values())} objects, {self.counts.events} events.",
            flush=True,
        )


def jpeg(pixels: Pixels) -> bytes:
    """A picture as JPEG."""
    out = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(out, "JPEG", quality=JPEG_QUALITY)
    return out.getvalue()
