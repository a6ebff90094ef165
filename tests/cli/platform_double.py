"""A tiny HTTP server that answers as the platform would; routes are plain functions."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Route = Callable[["Request"], tuple[int, Any] | tuple[int, Any, dict[str, str]]]


@dataclass
class Request:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Platform:
    """Routes by "METHOD /path"; a list of answers is used one after the other."""

    url: str = ""
    routes: dict[str, Route] = field(default_factory=dict)
    seen: list[Request] = field(default_factory=list)

    def answers(self, route: str, *bodies: Any, status: int = 200) -> None:
        left = list(bodies)

        def next_body(_: Request) -> tuple[int, Any]:
            return status, left.pop(0) if len(left) > 1 else left[0]

        self.routes[route] = next_body

    def asked(self, route: str) -> list[Request]:
        return [request for request in self.seen if f"{request.method} {request.path}" == route]


def _handler(platform: Platform) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(self.command, parts.path, query, headers, body)
            platform.seen.append(request)
            route = platform.routes.get(f"{self.command} {parts.path}")
            if route is None:
                route = platform.routes.get(f"{self.command} *", lambda _: (404, {"detail": "Not found."}))
            try:
                status, answer, *more = route(request)
            except ConnectionAbortedError:  # the route plays a cut line
                self.close_connection = True
                return
            raw = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            kind = "application/problem+json" if status >= 400 else "application/json"
            for name, value in ({"Content-Type": kind} | (more[0] if more else {})).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(raw)))
            self.send_header("Connection", "close")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(raw)
            self.close_connection = True

        do_GET = do_POST = do_DELETE = do_PATCH = do_PUT = do_HEAD = _serve

        def log_message(self, *_: object) -> None:
            """Quiet: pytest shows what matters."""

    return Handler


@contextmanager
def running() -> Iterator[Platform]:
    platform = Platform()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(platform))
    server.daemon_threads = True
    platform.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield platform
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Uploads:
    """The tus side of the platform: keeps bytes in memory and can cut the line."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self.data: dict[str, bytearray] = {}
        self.lengths: dict[str, int] = {}
        self.names: dict[str, str] = {}
        self.cut_after: int | None = None  # a PATCH beyond this many bytes loses its connection
        platform.routes["POST /uploads/tus/"] = self.create
        platform.routes["HEAD *"] = self.head
        platform.routes["PATCH *"] = self.patch

    def create(self, request: Request) -> tuple[int, Any, dict[str, str]]:
        number = f"u{len(self.data) + 1}"
        self.data[number] = bytearray()
        self.lengths[number] = int(request.headers["upload-length"])
        self.names[number] = request.headers["upload-metadata"]
        return 201, b"", {"Location": f"{self.platform.url}/uploads/tus/{number}"}

    def head(self, request: Request) -> tuple[int, Any, dict[str, str]]:
        number = request.path.rsplit("/", 1)[-1]
        if number not in self.data:
            return 404, b"", {}
        length = str(self.lengths[number])
        return 200, b"", {"Upload-Offset": str(len(self.data[number])), "Upload-Length": length}

    def patch(self, request: Request) -> tuple[int, Any, dict[str, str]]:
        held = self.data[request.path.rsplit("/", 1)[-1]]
        if self.cut_after is not None and len(held) >= self.cut_after:
            raise ConnectionAbortedError
        if int(request.headers["upload-offset"]) != len(held):
            return 409, {"detail": "Wrong offset."}, {}
        held.extend(request.body)
        return 204, b"", {"Upload-Offset": str(len(held))}
