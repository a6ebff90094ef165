"""The local port that answers pictures, whichever package is behind it."""

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

from .about import picture
from .durable import Json
from .model_server import JPEG, JSON_LENGTH
from .samples import Samples
from .trust import canonical

MOST_PICTURE = 64 << 20
Answer = tuple[int, bytes, str | None]  # status, body, and how much of it is JSON where tensors follow in binary
NO_MODEL = (503, b'{"error":"no model is installed yet"}', None)
START_S = 60  # longest that a model may take to answer its first picture


class Front:
    """Answers pictures at one local port, whichever package is behind it; a new one takes over once it has answered."""

    def __init__(self, port: int) -> None:
        self.child: subprocess.Popen[bytes] | None = None
        self.behind, self.lock = 0, threading.Lock()
        self.requests = self.errors = 0
        self.took: list[float] = []
        self.package = ""  # sha256 of what answers
        self.samples: Samples | None = None
        self.say: Callable[[str], None] = lambda _line: None  # where lines of the model go
        front = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                if path == "/v2/health/live":
                    self._answer(200, b'{"live":true}')
                elif path == "/v2" or path.startswith("/v2/models/"):
                    self._answer(*front.ask("GET", path))
                else:  # /v2/health/ready as well: more than that protocol asks for
                    self._answer(200 if front.running else 503, canonical(front.counters() | {"ready": front.running}))

            def do_POST(self) -> None:
                given = self.headers.get("Content-Length") or ""
                size = int(given) if given.isascii() and given.isdigit() and len(given) < 12 else 0
                if not 0 < size <= MOST_PICTURE:
                    self.close_connection = True
                    self._answer(413, b'{"error":"send one picture, or tensors, of at most 64 MiB"}')
                else:
                    length = self.headers.get(JSON_LENGTH)
                    self._answer(*front.forward(self.path, self.rfile.read(size), length))

            def _answer(self, status: int, body: bytes, length: str | None = None) -> None:
                with contextlib.suppress(ConnectionError):  # whoever asked is gone
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
        """Start the package that `current` names, and let it take over once it answers; gives what went wrong."""
        child = subprocess.Popen(
            [sys.executable, str(Path(sys.argv[0]).resolve()), "_model", str(current.resolve())],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert child.stdout is not None
        threading.Thread(target=self._hear, args=(child,), daemon=True).start()
        timer = threading.Timer(START_S, child.kill)
        timer.start()
        try:
            line = child.stdout.readline()
            port = int(line or 0)
            status, said, _length = (
                _asked(port, "POST", "/predict", picture()) if port else (0, b"it ended before it answered", None)
            )
        except (OSError, HTTPException, ValueError) as why:
            status, said = 0, str(why).encode()
        finally:
            timer.cancel()
        if status != 200:
            child.kill()
            child.wait()
            return said.decode(errors="replace")[:300] or "no answer"
        before, self.child, self.behind = self.child, child, port
        if self.package != current.resolve().name:
            self.package = current.resolve().name
            with self.lock:
                self.requests, self.errors, self.took = 0, 0, []  # what is counted is counted of one package
        if before is not None:
            threading.Thread(target=_end, args=(before,), daemon=True).start()
        return ""

    def _hear(self, child: subprocess.Popen[bytes]) -> None:
        """Hand on what a model's process complains of, until it ends."""
        assert child.stderr is not None
        with contextlib.suppress(OSError, ValueError):
            while line := child.stderr.readline(2000):
                said = line.decode(errors="replace")
                sys.stderr.write(said)
                self.say(f"model: {said}")

    def jpeg(self, picture: bytes) -> bytes | None:
        """A picture as the model's process makes a JPEG of it; None where it cannot."""
        try:
            status, made, _length = _asked(self.behind, "POST", JPEG, picture)
        except (OSError, HTTPException):
            return None
        return made if status == 200 else None

    def forward(self, path: str, body: bytes, length: str | None = None) -> Answer:
        """What the model says of a picture, or of tensors (below /v2); counted."""
        began, package = time.perf_counter(), self.package
        status, said, its_length = self.ask("POST", path, body, length)
        if not 400 <= status < 500:  # what a caller sent wrong says nothing of the model
            with self.lock:
                self.requests += 1
                self.errors += status >= 500
                self.took = [*self.took[-999:], time.perf_counter() - began]
        if self.samples is not None and status == 200 and not path.startswith("/v2"):
            self.samples.look(body, said, package)
        return status, said, its_length

    def ask(self, method: str, path: str, body: bytes = b"", length: str | None = None) -> Answer:
        """What the model's process says; its successor's word where it left meanwhile."""
        port = self.behind
        try:
            answer = _asked(port, method, path, body, length) if port else NO_MODEL
            if answer[0] == 503 and port and port != self.behind:  # it left while it was asked: ask its successor
                answer = _asked(self.behind, method, path, body, length)
        except TimeoutError:  # it is at work on this: asked again it would be as slow
            return 504, b'{"error":"the model takes too long for this"}', None
        except (OSError, HTTPException):
            try:
                answer = _asked(self.behind, method, path, body, length)
            except (OSError, HTTPException):
                return 502, b'{"error":"the model does not answer"}', None
        return answer

    def counters(self) -> Json:
        with self.lock:
            took = sorted(self.took)
            found: Json = {"requests": self.requests, "errors": self.errors}
        if took:
            found["p50_ms"] = round(1000 * took[len(took) // 2], 3)
            found["p95_ms"] = round(1000 * took[len(took) * 95 // 100], 3)
        return found


def _asked(port: int, method: str, path: str, body: bytes = b"", length: str | None = None) -> Answer:
    connection = HTTPConnection("127.0.0.1", port, timeout=START_S)
    try:
        connection.request(method, path, body or None, {JSON_LENGTH: length} if length else {})
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.headers.get(JSON_LENGTH)
    finally:
        connection.close()


def _end(child: subprocess.Popen[bytes]) -> None:
    """Let a model finish what it is at, then end it."""
    assert child.stdin is not None
    child.stdin.close()
    try:
        child.wait(START_S)
    except subprocess.TimeoutExpired:
        child.kill()
