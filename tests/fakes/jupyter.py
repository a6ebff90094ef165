#!/usr/bin/env python3
"""A stand-in for jupyter-lab: answers what the platform asks, on the socket it is told. Standard library only.

What kernels and terminals it says it has is read from `kernels.json` and `terminals.json` in its working directory.
"""

import json
import os
import socketserver
import sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        base = option("--ServerApp.base_url=")
        path = self.path.partition("?")[0]
        if not path.startswith(base):
            return self.answer(404, {})
        if path != f"{base}api" and self.headers.get("Authorization") != f"token {os.environ['JUPYTER_TOKEN']}":
            return self.answer(403, {})
        name = path.removeprefix(f"{base}api").strip("/")
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
    print("stub at", option("--ServerApp.base_url="), flush=True)
    with socketserver.ThreadingUnixStreamServer(option("--ServerApp.sock="), Handler) as server:
        server.serve_forever()
