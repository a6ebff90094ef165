"""Small real servers that take what is pushed to them, with switches for what goes wrong."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CUT_AFTER = 4096


class Far(ThreadingHTTPServer):
    """What a server holds and does.

    Attributes:
        token: the bearer token it takes.
        files: what lies there, by path.
        asked: method and path of each request, in order.
        trouble: "" or what goes wrong: full, cut, silent, half, redirect.
        times: how often it goes wrong; then all is well.
    """

    daemon_threads = True

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.token, self.trouble, self.times = "right", "", 1_000
        self.scheme = "http"
        self.files: dict[str, bytes] = {}
        self.asked: list[tuple[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self.seen: Callable[[], object] = lambda: None

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that was cut is what a test wants."""

    @property
    def address(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_address[1]}"

    def troubled(self, what: str) -> bool:
        """Whether this goes wrong now."""
        if self.trouble != what or self.times <= 0:
            return False
        self.times -= 1
        return True


class Asked(BaseHTTPRequestHandler):
    """One request; what all servers here share."""

    server: Far
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        """Tests print nothing."""

    def answer(self, status: int, headers: dict[str, str] | None = None, body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | (headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def noted(self) -> None:
        self.server.asked.append((self.command, self.path))
        self.server.headers.append({name.lower(): value for name, value in self.headers.items()})

    def body(self) -> bytes | None:
        """All of it; None where the connection is cut in the middle, by us or by the other side."""
        length = int(self.headers.get("Content-Length") or 0)
        if self.server.troubled("cut"):
            self.rfile.read(min(CUT_AFTER, length))
            self.server.seen()
            self.connection.close()
            self.close_connection = True
            return None
        data = self.rfile.read(length)
        return data if len(data) == length else None


class Folder(Asked):
    """A folder that takes files by PUT."""

    def _may(self) -> bool:
        self.noted()
        if self.server.troubled("redirect"):
            self.answer(307, {"Location": "http://203.0.113.9/models/"})
            return False
        if self.headers.get("Authorization") == f"Bearer {self.server.token}":
            return True
        self.close_connection = True
        self.answer(401, {"Connection": "close"})
        return False

    def do_HEAD(self) -> None:
        if not self._may():
            return
        data = self.server.files.get(self.path)
        if data is None:
            self.answer(404)
        else:
            self.answer(200, {"Content-Length": str(len(data))})

    def do_PUT(self) -> None:
        if not self._may():
            return
        if self.server.troubled("full"):
            self.close_connection = True
            self.answer(507, {"Connection": "close"})
            return
        data = self.body()
        if data is None:
            return
        self.server.files[self.path] = data[:-7] if self.server.troubled("half") else data
        self.answer(201)


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler], context: ssl.SSLContext | None = None) -> Iterator[Far]:
    """A server on a port of its own for as long as the block lasts; encrypted with a context."""
    server = Far(handler)
    if context is not None:
        server.scheme, server.socket = "https", context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
