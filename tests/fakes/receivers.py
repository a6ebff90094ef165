"""Real little servers for what leaves the platform: one for mail, one for webhooks. Both on this machine."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from aiosmtpd.controller import Controller


@dataclass
class Mailbox:
    """What arrived: (recipients, raw message). `refuse` answers a recipient with an SMTP reply instead."""

    port: int = 0
    arrived: list[tuple[list[str], str]] = field(default_factory=list)
    refuse: Callable[[str], str | None] = lambda address: None

    async def handle_RCPT(self, server, session, envelope, address, options):
        if answer := self.refuse(address):
            return answer
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        self.arrived.append((list(envelope.rcpt_tos), envelope.content.decode()))
        return "250 OK"


@contextmanager
def mail_server() -> Iterator[Mailbox]:
    box = Mailbox()
    with socket.create_server(("127.0.0.1", 0)) as probe:
        box.port = probe.getsockname()[1]
    controller = Controller(box, hostname="127.0.0.1", port=box.port)
    controller.start()
    try:
        yield box
    finally:
        controller.stop()


@dataclass
class Hook:
    """A web server that keeps what it was sent and answers `status`."""

    url: str = ""
    status: int = 200
    location: str = ""
    arrived: list[tuple[dict[str, str], bytes]] = field(default_factory=list)


@contextmanager
def web_server() -> Iterator[Hook]:
    hook = Hook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            hook.arrived.append((dict(self.headers), body))
            self.send_response(hook.status)
            if hook.location:
                self.send_header("Location", hook.location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    hook.url = f"http://127.0.0.1:{server.server_port}/hook"
    try:
        yield hook
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
