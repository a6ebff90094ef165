"""Show the newest picture to whoever looks: MJPEG on the leased port, at most one picture on its way to each.

Only the platform's proxy knows the key of this attempt; anybody else gets 401.
"""

from __future__ import annotations

import hmac
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

BOUNDARY = "picture"
KEY_HEADER = "X-Aip-Service-Key"
REPEAT_AFTER_S = 10.0  # so long a viewer waits for a new picture before the old one is sent again
SEND_BUFFER = 64 << 10  # bytes: what is on its way is soon old


class Live:
    """The newest picture, and the server that shows it."""

    def __init__(self, host: str, port: int, key: str) -> None:
        self.key = key
        self.viewers = 0
        self._picture, self._number = b"", 0
        self._new = threading.Condition()
        handler = type("Handler", (_Handler,), {"live": self})
        self.server = ThreadingHTTPServer((host, port), handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def show(self, picture: bytes) -> None:
        """This is the newest picture now."""
        with self._new:
            self._picture, self._number = picture, self._number + 1
            self._new.notify_all()

    def after(self, number: int) -> tuple[bytes, int]:
        """The newest picture and its number, once it is another than that one."""
        with self._new:
            self._new.wait_for(lambda: self._number != number, REPEAT_AFTER_S)
            return self._picture, self._number

    def count(self, more: int) -> None:
        with self._new:
            self.viewers += more

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class _Handler(BaseHTTPRequestHandler):
    live: Live

    def do_GET(self) -> None:
        if not hmac.compare_digest(self.headers.get(KEY_HEADER, ""), self.live.key):
            self.send_error(401)
        elif self.path.partition("?")[0] != "/live.mjpeg":
            self.send_error(404)
        else:
            self._stream()

    def _stream(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.send_response(200)
        self.send_header("Content-Type", f"multipart/x-mixed-replace; boundary={BOUNDARY}")
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.live.count(1)
        number = 0
        try:
            while True:
                picture, number = self.live.after(number)
                if picture:
                    head = f"--{BOUNDARY}\r\nContent-Type: image/jpeg\r\nContent-Length: {len(picture)}\r\n\r\n"
                    self.wfile.write(head.encode() + picture + b"\r\n")
                    self.wfile.flush()
        except OSError:
            return  # the viewer has disconnected
        finally:
            self.live.count(-1)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the log is the watch's."""
