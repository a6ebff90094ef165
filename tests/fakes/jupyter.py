#!/usr/bin/env python3
"""A stand-in for jupyter-lab: answers what the platform asks, on the socket it is told. Standard library only.

What kernels and terminals it says it has is read from `kernels.json` and `terminals.json` in its working directory.
It is known by a word that only this process has (`api/mine`, and `mine` in TMPDIR), leaves a mark of its beginning
among the outputs of its job, and keeps notes in what it was installed in, each named by the digest of what it holds.
"""

import hashlib
import json
import os
import secrets
import socketserver
import sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path

MINE = secrets.token_hex(8)
NOTES = Path(sys.prefix) / "notes"


def begin():
    """Say that a process began: to whoever counts them, and to whoever enters another way."""
    for name, text in (("AIP_OUTPUT_DIR", f"lab-{MINE}"), ("TMPDIR", "mine")):
        if os.environ.get(name):
            (Path(os.environ[name]) / text).write_text(MINE)


def note(size):
    """Write a note, whole or not at all; its name."""
    text = secrets.token_bytes(size)
    name = hashlib.sha256(text).hexdigest()
    NOTES.mkdir(exist_ok=True)
    part = NOTES / f".{name}"
    part.write_bytes(text)
    part.rename(NOTES / name)
    return name


def notes():
    """Names of notes, and of those that are not what their name says."""
    names = sorted(path.name for path in NOTES.glob("[0-9a-f]*"))
    broken = [name for name in names if hashlib.sha256((NOTES / name).read_bytes()).hexdigest() != name]
    return {"notes": names, "broken": broken}


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        return self.answer(200, {"note": note(int(self.headers.get("X-Size", "2000")))})

    def do_GET(self):
        base = option("--ServerApp.base_url=")
        path = self.path.partition("?")[0]
        if not path.startswith(base):
            return self.answer(404, {})
        if path != f"{base}api" and self.headers.get("Authorization") != f"token {os.environ['JUPYTER_TOKEN']}":
            return self.answer(403, {})
        name = path.removeprefix(f"{base}api").strip("/")
        if name == "mine":
            return self.answer(200, {"mine": MINE, "attempt": int(os.environ["AIP_ATTEMPT"])})
        if name == "notes":
            return self.answer(200, notes())
        said = Path(f"{name}.json")
        return self.answer(200, json.loads(said.read_text()) if name and said.exists() else [] if name else {})

    def answer(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def address_string(self):
        return "somebody"

    def log_message(self, *_words):
        pass


def option(name):
    return next(word.removeprefix(name) for word in sys.argv if word.startswith(name))


if __name__ == "__main__":
    begin()
    print("stub at", option("--ServerApp.base_url="), flush=True)
    with socketserver.ThreadingUnixStreamServer(option("--ServerApp.sock="), Handler) as server:
        server.serve_forever()
