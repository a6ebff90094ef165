"""The model process behind the local port: serves one package and ends with its parent process."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from .package import module
from .samples import MAX_IMAGE_BYTES

JPEG = "/_jpeg"  # of the agent alone
PROTOCOL = "/v2/"  # the Open Inference Protocol
JSON_LENGTH = "Inference-Header-Content-Length"
TOO_OLD = (501, b'{"error":"this package knows pictures alone; release the version once more"}')
PREDICT = ("/predict", "/")
QUALITIES = (92, 80, 60)


def serve(package: Path) -> int:
    """Print the port on the first line and serve until standard input is closed."""
    sys.path.insert(0, str(package))
    decode, refusals, requested, alone = map(module, ("decode", "refusals", "requested", "alone"))
    model, lock = alone.Model(package / "model", threads=os.cpu_count() or 1), threading.Lock()

    protocol = _protocol(model, package)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if protocol is None:
                self._answer(*TOO_OLD)
                return
            try:
                self._answer(200, json.dumps(protocol.get(self.path)).encode())
            except refusals.Refusal as why:
                self._answer(why.status, json.dumps({"error": str(why)}).encode())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path.startswith(PROTOCOL):
                self._infer(urlsplit(self.path).path, body)
                return
            if self.path == JPEG:
                self._answer(*_jpeg(decode.open_image, body))
                return
            if urlsplit(self.path).path not in PREDICT:
                self._answer(404, json.dumps({"error": "Send a picture to /predict."}).encode())
                return
            try:
                options = requested.Requested.from_query(dict(parse_qsl(urlsplit(self.path).query)))
                with lock:
                    status, content = 200, model.predict(body, options)
            except decode.BadImage as why:
                error = f"{why} Send the picture itself as the body: curl --data-binary @FILE."
                status, content = 400, {"error": error}
            except (decode.BadBox, refusals.BadRequest) as why:
                status, content = 400, {"error": str(why)}
            self._answer(status, json.dumps(content).encode())

        def _infer(self, path: str, body: bytes) -> None:
            if protocol is None:
                self._answer(*TOO_OLD)
                return
            try:
                with lock:  # tensors of one request at a time: each may take many times its bytes
                    data, length = protocol.infer(path, body, self.headers.get(JSON_LENGTH))
                self._answer(200, data, length)
            except refusals.Refusal as why:
                self._answer(why.status, json.dumps({"error": str(why)}).encode())
            except (decode.BadImage, decode.BadBox) as why:
                self._answer(422, json.dumps({"error": str(why)}).encode())

        def _answer(self, status: int, data: bytes, length: int | None = None) -> None:
            with contextlib.suppress(ConnectionError):  # the caller closed the connection
                self.send_response(status)
                if length is not None:
                    self.send_header(JSON_LENGTH, str(length))
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        def log_message(self, *_args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = False
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with contextlib.suppress(BrokenPipeError):  # the parent process has ended
        sys.stdout.write(f"{server.server_address[1]}\n")
        sys.stdout.flush()
        sys.stdin.buffer.read()  # until the parent process closes it or ends
    server.shutdown()
    server.server_close()  # waits for what is being answered
    return 0


def _protocol(model: Any, package: Path) -> Any:
    """Return the handler of tensor requests; None for packages created before tensors were supported."""
    try:
        local = module("local")
    except ImportError:
        return None
    return local.Protocol(model, package)


def _jpeg(open_image: Any, body: bytes) -> tuple[int, bytes]:
    """Return an upright JPEG of the same size, without the metadata of the camera (location, time, owner)."""
    try:
        image = open_image(body).convert("RGB")
    except Exception as why:  # noqa: BLE001  decoders raise anything
        return 400, str(why).encode()
    image.info.clear()
    for quality in QUALITIES:
        out = io.BytesIO()
        image.save(out, "JPEG", quality=quality)
        if out.tell() <= MAX_IMAGE_BYTES:
            return 200, out.getvalue()
    return 413, b"too large"
