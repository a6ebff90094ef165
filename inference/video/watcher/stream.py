"""Watch a stream until a user ends it: connect, watch, and connect again when no frame arrives any more."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Sequence
from typing import Any

from inference.kit.samples.run import Run
from inference.video.watcher.frozen_video import OVER, Stillness
from inference.video.watcher.live import Live
from inference.video.watcher.pictures import STREAM_SLOTS, Picture, Pixels
from inference.video.watcher.source import Source, SourceEnded
from inference.video.watcher.watch import Watch, jpeg

OPEN_S, PICTURE_S = 15.0, 5.0  # how long the first picture, and each further one, may take
PAUSES_S = (1.0, 2.0, 5.0, 10.0, 30.0)  # before the first, second, … try in a row
MAX_SEGMENTS = 360  # of ten seconds: the film of the last hour


class StreamWatch(Watch):
    """A stream that is watched. Times are seconds since it was watched first, by the clock of this machine."""

    is_stream = True

    def __init__(self, run: Run, source: str, *, allowed: Sequence[str], live: Live | None) -> None:
        super().__init__(run, source)
        self.allowed, self.live = allowed, live
        self.begun = int(time.time())  # in the keys of events: an attempt repeats none of another
        self.origin = time.time()
        self.silent_since: float | None = None
        self.silent_why = ""
        self.reconnects = 0
        self.still = Stillness(self.asked.still_s)
        signal.signal(signal.SIGTERM, self._end)

    def _end(self, _number: int, _frame: Any) -> None:
        self.finishing = True  # what was counted is put together

    def pictures(self) -> Iterator[Picture]:
        tries = 0
        while not self.finishing:
            why = "The stream ended."
            try:
                with Source(self.order(), open_s=OPEN_S, picture_s=PICTURE_S) as source:
                    for picture in source.pictures():
                        if source.layout and source.layout != getattr(self, "layout", None):
                            self.start_source(source.layout, source.facts)
                        self._speaks()
                        tries = 0
                        yield picture
                        if self.finishing:
                            return
            except SourceEnded as exc:
                if exc.final:
                    raise
                why = str(exc)
                if exc.hardware:
                    self.without_hardware(why)
            self._is_silent(why)
            self._wait(PAUSES_S[min(tries, len(PAUSES_S) - 1)])
            tries += 1
            self.reconnects += 1

    def order(self) -> dict[str, Any]:
        return {
            **super().order(),
            "is_stream": True,
            "slots": STREAM_SLOTS,
            "allowed": list(self.allowed),
            "origin": self.origin,
            "after": None,
            "last_at": self.last_at if self.frames else None,
        }

    def dated(self, event: dict[str, Any]) -> dict[str, Any]:
        return {"key": f"{self.begun}-{event['number']}", **event, "time": round(self.origin + event["at"], 3)}

    def happened(self, picture: Picture) -> list[dict[str, Any]]:
        if picture.shown is None:
            return []
        since, change = self.still.since, self.still.update(picture.shown, picture.at)
        if not change:
            return []
        began = since if change == OVER else self.still.since
        seconds = round(picture.at - began, 1)
        if change == OVER:
            print(f"New pictures come again after {seconds:.0f} s.", flush=True)
        else:
            print(f"The pictures are {change} for {seconds:.0f} s.", flush=True)
        return [self.counts.source_event(change, picture.at, seconds)]

    def has_viewers(self) -> bool:
        return self.live is not None and self.live.viewers > 0

    def showing(self, drawn: Pixels) -> None:
        if self.live is not None and self.live.viewers:
            self.live.show(jpeg(drawn))

    def forget(self) -> None:
        self.kept.remove_older(MAX_SEGMENTS)

    def write_summary(self, **more: Any) -> None:
        silent = {"silent_since": self.silent_since, "silent_why": self.silent_why, "reconnects": self.reconnects}
        still = {"still": self.still.why, "still_since": self.origin + self.still.since if self.still.why else None}
        super().write_summary(**silent, **still, origin=self.origin, **more)

    def _state(self) -> dict[str, Any]:
        return super()._state() | {"origin": self.origin}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self.origin = state["origin"]

    def _speaks(self) -> None:
        if self.silent_since is not None:
            print(f"Pictures come again after {time.time() - self.silent_since:.0f} s.", flush=True)
            self.silent_since, self.silent_why = None, ""

    def _is_silent(self, why: str) -> None:
        if self.silent_since is None:
            self.silent_since = self.origin + self.last_at if self.frames else self.origin
        if why != self.silent_why:
            print(f"No picture: {why} Trying again.", flush=True)
        self.silent_why = why
        self.write_summary()

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self.finishing:
            self._heed()
            time.sleep(0.1)
