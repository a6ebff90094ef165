"""A caller of exec servers, as tests speak to them: blocking, frame by frame."""

from __future__ import annotations

import json
import socket
import struct
from pathlib import Path
from typing import Any

FRAME = struct.Struct(">cI")
PATIENCE_S = 60


class Asked:
    """One channel, its answer read."""

    def __init__(self, path: Path | str, patience_s: float = PATIENCE_S, **request: Any) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(patience_s)
        try:
            self.socket.connect(str(path))
            self.socket.sendall(json.dumps(request).encode() + b"\n")
            self.file = self.socket.makefile("rb")
            self.answer = json.loads(self.file.readline() or "{}")
        except BaseException:
            self.socket.close()
            raise
        self.said: dict[bytes, bytes] = {b"O": b"", b"R": b""}
        self.end: dict[str, Any] = {}

    def tell(self, kind: bytes, payload: bytes = b"") -> None:
        self.socket.sendall(FRAME.pack(kind, len(payload)) + payload)

    def frame(self) -> tuple[bytes, bytes]:
        """The next frame; nothing at the end."""
        head = self.file.read(FRAME.size)
        if not head:
            return b"", b""
        kind, length = FRAME.unpack(head)
        payload = self.file.read(length)
        if kind == b"X":
            self.end = json.loads(payload)
        else:
            self.said[kind] += payload
        return kind, payload

    def until(self, words: bytes) -> None:
        """Read until the program said this."""
        while words not in self.said[b"O"]:
            assert self.frame()[0], f"it ended without {words!r}: {self.said}"

    def finish(self) -> dict[str, Any]:
        """Read to the end; how the program ended."""
        while self.frame()[0]:
            pass
        return self.end

    def bytes(self) -> bytes:
        """All bytes to the end, of a channel without frames."""
        return self.file.read()

    def close(self) -> None:
        self.file.close()
        self.socket.close()

    def __enter__(self) -> Asked:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
