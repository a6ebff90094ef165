"""`python -m inference.video.watcher.reader`: decode a file or a stream, in a process that can be killed when it hangs.

Its first line of input is what to read, each further one a slot that is free again; the end of it ends the process.
It answers with lines of JSON: the source, then one for each picture that lies in a slot, then how it ended.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import queue
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import av
import numpy as np

from inference.video.watcher import gate, hardware, media_inputs
from inference.video.watcher.pictures import Layout, Pixels

MAX_BAD = 300  # packets in a row that cannot be decoded
MAX_PIXELS = 8192 * 8192
SHOWN_EVERY_S = 1.0  # where no film is made


class Unreadable(Exception):
    """The source is none, or ends where it should not; the message is for people."""


def main() -> int:
    order = json.loads(sys.stdin.readline())
    free: queue.Queue[int] = queue.Queue()
    threading.Thread(target=_listen, args=(free,), daemon=True).start()
    decoder = hardware.chosen() if order["hardware"] else hardware.Decoder()
    try:
        _read(order, free, decoder)
    except hardware.Failed as exc:
        _send(error=f"{decoder.kind} failed: {exc}.", final=False, hardware=True)
        return 1
    except (Unreadable, gate.Refused) as exc:
        _send(error=str(exc), final=exc.final if isinstance(exc, gate.Refused) else not order["is_stream"])
        return 1
    except (av.FFmpegError, OSError) as exc:  # av's own errors are OSErrors in part
        _send(error=_plain(exc), final=not order["is_stream"])
        return 1
    _send(ended=True)
    return 0


def _read(order: Mapping[str, Any], free: queue.Queue[int], decoder: hardware.Decoder) -> None:
    opened = False
    try:
        with media_inputs.opened(order, decoder.accel) as container:
            opened = True
            _Reading(container, order, free, decoder).all()
    except av.FFmpegError as exc:
        # a device that does not open is no fault of the source, and a file costs nothing to be opened once more
        if decoder.accel is None or opened or (order["is_stream"] and not isinstance(exc, av.error.ExternalError)):
            raise
        raise hardware.Failed(exc.strerror or type(exc).__name__) from None


class _Reading:
    """One source from its opening to its end."""

    def __init__(
        self, container: Any, order: Mapping[str, Any], free: queue.Queue[int], decoder: hardware.Decoder
    ) -> None:
        self.container, self.order, self.free, self.decoder = container, order, free, decoder
        self.by = decoder.kind  # what decodes; the first picture says whether it is so
        if not container.streams.video:
            raise Unreadable("There is no picture in it, only sound or data.")
        self.stream = container.streams.video[0]
        self.stream.thread_type = "SLICE" if order["is_stream"] else "AUTO"  # frame threads hold pictures back
        self.stream.codec_context.thread_count = order["threads"]
        self.last_at, self.shown_at = -math.inf, -math.inf
        self.last_pts: int | None = None
        self.turns = 0
        self.layout: Layout | None = None
        self.memory: mmap.mmap | None = None

    def all(self) -> None:
        count = 0
        for frame, at in self._wanted():
            self._write_frame(frame, at)
            count += 1
        if not count and self.order.get("after") is None:
            raise Unreadable("Not one picture of it can be decoded. It may be damaged.")

    def _wanted(self) -> Iterator[tuple[Any, float]]:
        """Yield the frames to process with their times, limited to the requested rate and to new frames."""
        after, rate = self.order.get("after"), self.order["max_rate"]
        base = self.stream.time_base or Fraction(1, 1000)
        begin = self.stream.start_time or 0
        if after is not None:
            self.last_at = float((after - begin) * base)
        elif self.order.get("last_at") is not None:
            self.last_at = self.order["last_at"]
        for frame in self._frames(after):
            if after is not None and frame.pts <= after:
                continue
            at = self._arrival() if self.order["is_stream"] else float((frame.pts - begin) * base)
            if rate and math.floor(at * rate + 1e-6) <= _floor(self.last_at * rate + 1e-6):
                continue
            if at <= self.last_at:
                continue
            self.last_at = at
            yield frame, at

    def _arrival(self) -> float:
        """Now, on the clock of a stream: what cameras say of the time is not to be relied on."""
        return round(time.time() - self.order["origin"], 3)

    def _frames(self, after: int | None) -> Iterator[Any]:
        """All pictures with a time, from shortly before `after` where the source can be sought in."""
        if after is None:
            yield from self._decoded()
            return
        try:
            self.container.seek(after, stream=self.stream, backward=True)
            frames = self._decoded()
            first = next(frames, None)
            if first is not None and first.pts <= after:
                yield first
                yield from frames
                return
        except av.FFmpegError:
            pass
        self.container.seek(0)  # the seek led too far: from the beginning then
        yield from self._decoded()

    def _decoded(self) -> Iterator[Any]:
        bad = 0
        for packet in self.container.demux(self.stream):
            try:
                frames = hardware.decoded(packet, self.by)
            except av.error.InvalidDataError:
                bad += 1
                if bad > MAX_BAD and self.by != hardware.SOFTWARE:
                    raise hardware.Failed("it decodes none of the pictures") from None
                if bad > MAX_BAD:
                    raise Unreadable("Its pictures are damaged.") from None
                continue
            bad = 0 if frames else bad
            for frame in frames:
                if frame.pts is None:  # as old containers have it
                    frame.pts = frame.dts
                if self.order["is_stream"]:
                    if frame.pts is not None and frame.pts == self.last_pts:
                        continue  # the same picture again and again: nothing new
                    self.last_pts = frame.pts
                    yield frame
                elif frame.pts is not None:
                    yield frame

    def _write_frame(self, frame: Any, at: float) -> None:
        if self.layout is None:
            self._prepare(frame)
        layout, memory = self.layout, self.memory
        if layout is None or memory is None:
            raise RuntimeError("a picture came before the memory for it")
        try:
            slot = self.free.get(block=not self.order["is_stream"])
        except queue.Empty:
            return  # the newest picture counts: this one is too late already
        look, shown = layout.views(memory, slot)
        look[...] = self._scaled(frame, layout.look)
        wanted = self.order["film"] or at - self.shown_at >= SHOWN_EVERY_S or self.order["is_stream"]
        if wanted:
            shown[...] = self._scaled(frame, layout.shown)
            self.shown_at = at
        _send(slot=slot, at=at, pts=frame.pts or 0, shown=wanted)

    def _prepare(self, frame: Any) -> None:
        """Report the properties of the source, and lay out the memory."""
        self.turns = round((frame.rotation or 0) / 90) % 4
        width, height = (frame.height, frame.width) if self.turns % 2 else (frame.width, frame.height)
        if width * height > MAX_PIXELS:
            raise Unreadable(f"Its pictures are {width}×{height}; at most {MAX_PIXELS // 10**6} megapixels are taken.")
        self.layout = layout = layout_of(width, height, self.order)
        descriptor = self.order["memory"]
        os.ftruncate(descriptor, layout.slots * layout.slot_bytes)
        self.memory = mmap.mmap(descriptor, layout.slots * layout.slot_bytes)
        for slot in range(layout.slots):
            self.free.put(slot)
        self.by = hardware.decoding(self.decoder, self.stream, frame)
        facts = {"decoder": self.by, "hardware_why": self.decoder.why}
        if self.by != self.decoder.kind:
            facts["hardware_why"] = f"{self.decoder.kind}: it does not decode this kind of video"
        _send(source={**layout.as_json(), **_facts(self.container, self.stream), **facts})

    def _scaled(self, frame: Any, shape: tuple[int, int, int]) -> Pixels:
        height, width, channels = shape
        if self.turns % 2:
            width, height = height, width
        kind = "rgb24" if channels == 3 else "gray"
        pixels = frame.reformat(width, height, format=kind, interpolation="BILINEAR").to_ndarray()
        return np.rot90(pixels.reshape(height, width, channels), self.turns)


def layout_of(width: int, height: int, order: Mapping[str, Any]) -> Layout:
    """Return the layout of frames of this size for the model and for display."""
    look, slots = order["look"], order["slots"]
    if look["whole"]:  # as they are
        look_size = (height, width)
    elif look["resize"] == "stretch":
        look_size = (look["height"], look["width"])
    else:  # as `decode.preprocess` rounds them
        scale = min(look["width"] / width, look["height"] / height)
        look_size = (
            min(look["height"], max(1, round(height * scale))),
            min(look["width"], max(1, round(width * scale))),
        )
    if order["shown"]:  # as before the connection broke: a film has one size
        return Layout(width, height, (*look_size, look["channels"]), tuple(order["shown"]), slots)
    shrink = min(1.0, order["shown_width"] / width)
    shown = (max(2, round(height * shrink / 2) * 2), max(2, round(width * shrink / 2) * 2))  # films take even sides
    return Layout(width, height, (*look_size, look["channels"]), (*shown, 3), slots)


def _facts(container: Any, stream: Any) -> dict[str, Any]:
    rate = stream.average_rate or stream.guessed_rate
    duration = None
    if stream.duration and stream.time_base:
        duration = float(stream.duration * stream.time_base)
    elif container.duration:
        duration = container.duration / av.time_base
    return {
        "rate": float(rate) if rate else None,
        "duration_s": duration,
        "codec": stream.codec_context.name,
        "format": container.format.name,
    }


def _floor(value: float) -> float:
    return math.floor(value) if math.isfinite(value) else value


def _listen(free: queue.Queue[int]) -> None:
    for line in sys.stdin:
        free.put(int(line))
    os._exit(0)  # the process that started it has ended


def _send(**facts: Any) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


def _plain(exc: Exception) -> str:
    """What FFmpeg says, without the address it was given."""
    return f"It cannot be read as a video: {getattr(exc, 'strerror', None) or type(exc).__name__}."


if __name__ == "__main__":
    sys.exit(main())
