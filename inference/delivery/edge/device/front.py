"""The local port that serves predictions with the current package."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from .about import gradient_png
from .durable import Json
from .model_server import JPEG, JSON_LENGTH
from .samples import Samples
from .trust import canonical

MAX_IMAGE_BYTES = 64 << 20
Answer = tuple[int, bytes, str | None]  # status, body, and how much of it is JSON where tensors follow in binary
NO_MODEL = (503, b'{"error":"no model is installed yet"}', None)
START_S = 60  # longest that a model may take to answer its first picture


class Front:
    """Answers requests on one local port with the current package; a new one takes over once it has responded."""

    def __init__(self, port: int) -> None:
        self.child: subprocess.Popen[bytes] | None = None
        self.behind, self.lock = 0, threading.Lock()
        self.requests = self.errors = 0
        self.took: list[float] = []
        self.package = ""  # sha256 of what answers
        self.samples: Samples | None = None
        self.log_line: Callable[[str], None] = lambda _line: None  # where lines of the model go
        front = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                if path == "/v2/health/live":
                    self._answer(200, b'{"live":true}')
                elif path == "/v2" or path.startswith("/v2/models/"):
                    self._answer(*front.request("GET", path))
                else:  # /v2/health/ready as well: more than that protocol asks for
                    self._answer(200 if front.running else 503, canonical(front.counters() | {"ready": front.running}))

            def do_POST(self) -> None:
                content_length = self.headers.get("Content-Length") or ""
                is_number = content_length.isascii() and content_length.isdigit() and len(content_length) < 12
                size = int(content_length) if is_number else 0
                if not 0 < size <= MAX_IMAGE_BYTES:
                    self.close_connection = True
                    self._answer(413, b'{"error":"send one picture, or tensors, of at most 64 MiB"}')
                else:
                    length = self.headers.get(JSON_LENGTH)
                    self._answer(*front.forward(self.path, self.rfile.read(size), length))

            def _answer(self, status: int, body: bytes, length: str | None = None) -> None:
                with contextlib.suppress(ConnectionError):  # the caller closed the connection
                    self.send_response(status)
                    self.send_header("Content-Type", "application/octet-stream" if length else "application/json")
                    if length:
                        self.send_header(JSON_LENGTH, length)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, *_args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.port = int(self.server.server_address[1])
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def running(self) -> bool:
        return self.child is not None and self.child.poll() is None

    def start(self, current: Path) -> str:
        """Start the package that `current` links to and switch to it once it responds; return the error or ""."""
        child = subprocess.Popen(
            [sys.executable, str(Path(sys.argv[0]).resolve()), "_model", str(current.resolve())],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert child.stdout is not None
        threading.Thread(target=self._forward_stderr, args=(child,), daemon=True).start()
        timer = threading.Timer(START_S, child.kill)
        timer.start()
        try:
            line = child.stdout.readline()
            port = int(line or 0)
            status, body, _length = (
                _request(port, "POST", "/predict", gradient_png())
                if port
                else (0, b"it ended before it answered", None)
            )
        except (OSError, HTTPException, ValueError) as why:
            status, body = 0, str(why).encode()
        finally:
            timer.cancel()
        if status != 200:
            child.kill()
            child.wait()
            return body.decode(errors="replace")[:300] or "no answer"
        previous, self.child, self.behind = self.child, child, port
        if self.package != current.resolve().name:
            self.package = current.resolve().name
            with self.lock:
                self.requests, self.errors, self.took = 0, 0, []  # counters belong to one package
        if previous is not None:
            threading.Thread(target=_end, args=(previous,), daemon=True).start()
        return ""

    def _forward_stderr(self, child: subprocess.Popen[bytes]) -> None:
        """Forward the error output of a model process until it ends."""
        assert child.stderr is not None
        with contextlib.suppress(OSError, ValueError):
            while line := child.stderr.readline(2000):
                line_text = line.decode(errors="replace")
                sys.stderr.write(line_text)
                self.log_line(f"model: {line_text}")

    def jpeg(self, picture: bytes) -> bytes | None:
        """Return an image as a JPEG made by the model process; None where that fails."""
        try:
            status, data, _length = _request(self.behind, "POST", JPEG, picture)
        except (OSError, HTTPException):
            return None
        return data if status == 200 else None

    def forward(self, path: str, body: bytes, length: str | None = None) -> Answer:
        """Return the response of the model to an image, or to tensors (below /v2), and count it."""
        started, package = time.perf_counter(), self.package
        status, response, json_length = self.request("POST", path, body, length)
        if not 400 <= status < 500:  # what a caller sent wrong says nothing of the model
            with self.lock:
                self.requests += 1
                self.errors += status >= 500
                self.took = [*self.took[-999:], time.perf_counter() - started]
        if self.samples is not None and status == 200 and not path.startswith("/v2"):
            self.samples.consider(body, response, package)
        return status, response, json_length

    def request(self, method: str, path: str, body: bytes = b"", length: str | None = None) -> Answer:
        """Return the response of the model process, or of its successor where it ended meanwhile."""
        port = self.behind
        try:
            response = _request(port, method, path, body, length) if port else NO_MODEL
            if response[0] == 503 and port and port != self.behind:  # it ended meanwhile: send to its successor
                response = _request(self.behind, method, path, body, length)
        except TimeoutError:  # it is still busy; a second request would be as slow
            return 504, b'{"error":"the model takes too long for this"}', None
        except (OSError, HTTPException):
            try:
                response = _request(self.behind, method, path, body, length)
            except (OSError, HTTPException):
                return 502, b'{"error":"the model does not answer"}', None
        return response

    def counters(self) -> Json:
        with self.lock:
            times = sorted(self.took)
            counters: Json = {"requests": self.requests, "errors": self.errors}
        if times:
            counters["p50_ms"] = round(1000 * times[len(times) // 2], 3)
            counters["p95_ms"] = round(1000 * times[len(times) * 95 // 100], 3)
        return counters


def _request(port: int, method: str, path: str, body: bytes = b"", length: str | None = None) -> Answer:
    connection = HTTPConnection("127.0.0.1", port, timeout=START_S)
    try:
        connection.request(method, path, body or None, {JSON_LENGTH: length} if length else {})
        response = connection.getresponse()
        return response.status, response.read(), response.headers.get(JSON_LENGTH)
    finally:
        connection.close()


def _end(child: subprocess.Popen[bytes]) -> None:
    """Let a model process finish its current requests, then end it."""
    assert child.stdin is not None
    child.stdin.close()
    try:
        child.wait(START_S)
    except subprocess.TimeoutExpired:
        child.kill()
