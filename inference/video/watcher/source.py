"""The process that decodes, seen from the one that looks: pictures as they come, and an end to it when it hangs."""

from __future__ import annotations

import json
import mmap
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Self

from inference.video.watcher.pictures import Layout, Picture

OPEN_S, PICTURE_S = 60.0, 30.0  # how long opening a file, and one of its pictures, may take


class SourceEnded(Exception):
    """The source gives no more pictures: it cannot be read, or says nothing.

    Attributes:
        final: trying again is no use.
        hardware: it may be the fault of the device that decodes.
    """

    def __init__(self, message: str, *, final: bool, hardware: bool = False) -> None:
        super().__init__(message)
        self.final, self.hardware = final, hardware


class Source:
    """A source of pictures, decoded in a process of its own."""

    def __init__(self, order: Mapping[str, Any], *, open_s: float = OPEN_S, picture_s: float = PICTURE_S) -> None:
        self.open_s, self.picture_s, self.order = open_s, picture_s, order
        self.descriptor = os.memfd_create("pictures")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "inference.video.watcher.reader"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(self.descriptor,),
        )
        self._unread = b""
        self._lines: list[bytes] = []
        self.facts: dict[str, Any] = {}
        self.layout: Layout | None = None
        self._memory: mmap.mmap | None = None
        self._send(json.dumps({**order, "memory": self.descriptor}))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def pictures(self) -> Iterator[Picture]:
        """Yield each frame as it arrives.

        Raises:
            SourceEnded: it cannot be read, or no picture came in time.
        """
        while True:
            message = self._next_message(self.picture_s if self.layout else self.open_s)
            if "error" in message:
                raise SourceEnded(message["error"], final=message["final"], hardware=message.get("hardware", False))
            if "ended" in message:
                return
            if "source" in message:
                self._map_memory(message["source"])
                continue
            if self.layout is None or self._memory is None:
                raise RuntimeError("a picture came before what it is like")
            look, shown = self.layout.views(self._memory, message["slot"])
            yield Picture(message["at"], message["pts"], look, shown if message["shown"] else None)
            self._send(str(message["slot"]))

    def close(self) -> None:
        """End the process, however it feels about it."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                try:
                    pipe.close()
                except OSError:
                    continue
        os.close(self.descriptor)

    def _map_memory(self, facts: dict[str, Any]) -> None:
        self.facts = facts
        self.layout = Layout.from_json(facts)
        self._memory = mmap.mmap(self.descriptor, self.layout.slots * self.layout.slot_bytes)

    def _next_message(self, within_s: float) -> dict[str, Any]:
        """Return the next message of the process."""
        output = self.process.stdout
        if output is None:
            raise RuntimeError("the process has no output")
        until = time.monotonic() + within_s
        while not self._lines:
            ready, _, _ = select.select([output], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                is_hardware_error = (
                    self._on_hardware() and not self.order["is_stream"]
                )  # cameras fall silent by themselves
                raise SourceEnded(f"No picture came for {within_s:.0f} s.", final=False, hardware=is_hardware_error)
            data = os.read(output.fileno(), 1 << 16)
            if not data:
                raise SourceEnded("The decoder broke off.", final=False, hardware=self._on_hardware())
            *lines, self._unread = (self._unread + data).split(b"\n")
            self._lines += lines
        message: dict[str, Any] = json.loads(self._lines.pop(0))
        return message

    def _on_hardware(self) -> bool:
        """Whether a device decodes, or is about to."""
        return bool(self.order["hardware"]) and self.facts.get("decoder") != "software"

    def _send(self, line: str) -> None:
        if self.process.stdin:
            try:
                self.process.stdin.write(line.encode() + b"\n")
                self.process.stdin.flush()
            except BrokenPipeError:
                return  # it says itself why it ended
