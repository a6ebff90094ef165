"""Cameras of a test: one that speaks RTSP and one that speaks MJPEG over HTTP, both with switches to misbehave."""

from __future__ import annotations

import base64
import io
import queue
import random
import socket
import struct
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import av
from PIL import Image

from tests.inference import clips

LARGEST = 1200  # bytes of a packet


class MjpegCamera:
    """http://127.0.0.1:port/stream: pictures of `placed` at `rate` a second, each with the time since it began.

    Switches: `silent` sends no more pictures but keeps the line, `login` asks for it, `redirect` leads elsewhere.
    """

    def __init__(self, placed: Callable[[float], clips.Placed] = clips.walkers, *, rate: int = 20) -> None:
        self.placed, self.rate = placed, rate
        self.silent, self.login, self.redirect = threading.Event(), "", ""
        self.asked: list[str] = []
        self.begun = time.monotonic()
        handler = type("Handler", (_MjpegHandler,), {"camera": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.port = self.server.server_port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/stream"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class _MjpegHandler(BaseHTTPRequestHandler):
    camera: MjpegCamera

    def do_GET(self) -> None:
        camera = self.camera
        camera.asked.append(self.path)
        expected = f"Basic {base64.b64encode(camera.login.encode()).decode()}"
        if camera.redirect:
            self.send_response(302)
            self.send_header("Location", camera.redirect)
            self.end_headers()
            return
        if camera.login and self.headers.get("Authorization") != expected:
            self.send_error(401)
            return
        self.send_response(200)
        self.send_header("Content-Type", "multipart/x-mixed-replace; boundary=frame")
        self.end_headers()
        try:
            while True:
                if not camera.silent.is_set():
                    picture = jpeg(camera.placed(time.monotonic() - camera.begun))
                    head = f"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: {len(picture)}\r\n\r\n"
                    self.wfile.write(head.encode() + picture + b"\r\n")
                time.sleep(1 / camera.rate)
        except OSError:
            return

    def log_message(self, format: str, *args: object) -> None:
        return


def jpeg(placed: clips.Placed) -> bytes:
    out = io.BytesIO()
    Image.fromarray(clips.picture(placed)).save(out, "JPEG", quality=95)
    return out.getvalue()


class RtspCamera:
    """rtsp://127.0.0.1:port/live: VP8 in RTP over the same TCP connection (RFC 2326, RFC 7741).

    Switches: `silent` sends no more pictures but keeps the line, `redirect` answers DESCRIBE with another address.
    """

    def __init__(self, placed: Callable[[float], clips.Placed] = clips.walkers, *, rate: int = 20) -> None:
        self.placed, self.rate = placed, rate
        self.silent, self.closed, self.redirect = threading.Event(), threading.Event(), ""
        self.asked: list[str] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.begun = time.monotonic()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"rtsp://127.0.0.1:{self.port}/live"

    def close(self) -> None:
        self.closed.set()
        self.listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        reader, ended = connection.makefile("rb"), threading.Event()
        sdp = "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=test\r\nt=0 0\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 VP8/90000\r\n"
        sdp += "a=control:track0\r\n"
        try:
            while line := reader.readline():
                if line[:1] == b"$" or not line.strip():
                    continue
                verb, headers = line.split()[0].decode(), {}
                self.asked.append(line.decode().strip())
                while row := reader.readline().decode().strip():
                    name, _, value = row.partition(":")
                    headers[name.lower()] = value.strip()
                status, extra, body = "200 OK", "", ""
                if verb == "OPTIONS":
                    extra = "Public: OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN\r\n"
                if verb == "DESCRIBE" and self.redirect:
                    status, extra = "302 Found", f"Location: {self.redirect}\r\n"
                elif verb == "DESCRIBE":
                    body = sdp
                    extra = (
                        f"Content-Base: {self.url}/\r\nContent-Type: application/sdp\r\nContent-Length: {len(sdp)}\r\n"
                    )
                if verb == "SETUP":
                    extra = "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\nSession: 1\r\n"
                if verb == "PLAY":
                    extra = "Session: 1\r\n"
                head = f"RTSP/1.0 {status}\r\nCSeq: {headers.get('cseq', 0)}\r\n{extra}\r\n{body}"
                connection.sendall(head.encode())
                if verb == "PLAY":
                    threading.Thread(target=self._play, args=(connection, ended), daemon=True).start()
                if verb == "TEARDOWN":
                    return
        except OSError:
            return
        finally:
            ended.set()
            connection.close()

    def _play(self, connection: socket.socket, ended: threading.Event) -> None:
        pictures: queue.Queue[bytes] = queue.Queue()
        encoder = av.CodecContext.create("libvpx", "w")
        encoder.width = encoder.height = clips.SIZE
        encoder.pix_fmt, encoder.time_base, encoder.gop_size = "yuv420p", Fraction(1, self.rate), 5
        encoder.options = {"deadline": "realtime", "cpu-used": "8", "lag-in-frames": "0"}
        sequence, source, number = random.randrange(65536), random.randrange(1 << 32), 0
        try:
            while not (ended.is_set() or self.closed.is_set()):
                if not self.silent.is_set():
                    placed = self.placed(time.monotonic() - self.begun)
                    frame = av.VideoFrame.from_ndarray(clips.picture(placed), format="rgb24").reformat(format="yuv420p")
                    frame.pts, frame.time_base = number, Fraction(1, self.rate)
                    for packet in encoder.encode(frame):
                        pictures.put(bytes(packet))
                    while not pictures.empty():
                        data = pictures.get()
                        pieces = [data[at : at + LARGEST] for at in range(0, len(data), LARGEST)]
                        for index, piece in enumerate(pieces):
                            marker = 0x80 if index == len(pieces) - 1 else 0
                            stamp = int(number * 90000 / self.rate) & 0xFFFFFFFF
                            head = struct.pack(">BBHII", 0x80, 96 | marker, sequence & 0xFFFF, stamp, source)
                            packet = head + (b"\x10" if index == 0 else b"\x00") + piece
                            connection.sendall(b"$\0" + struct.pack(">H", len(packet)) + packet)
                            sequence += 1
                    number += 1
                time.sleep(1 / self.rate)
        except OSError:
            return
