"""`up` finds its own web server, and starts for users without a home folder."""

from __future__ import annotations

import argparse
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest

from aiplatform.cli import bytecode, up
from tests.running import free_port


@pytest.fixture
def port():
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_args: object) -> None:
            """Print nothing."""

    with HTTPServer(("127.0.0.1", free_port()), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.mark.sockets("a web server of its own")
async def test_up_asks_its_web_server_without_the_proxy_of_the_environment(port, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setattr("aiplatform.env.READY_TIMEOUT_S", 2.0)
    runtime = SimpleNamespace(stop_requested=SimpleNamespace(is_set=lambda: False), fails_to_start=lambda _name: False)

    assert await up._answers(argparse.Namespace(host="127.0.0.1", port=port), runtime)


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("::1", "http://[::1]:8000/"),
        ("::", "http://127.0.0.1:8000/"),
        ("0.0.0.0", "http://127.0.0.1:8000/"),
        ("localhost", "http://localhost:8000/"),
    ],
)
def test_address_of_the_platform_can_be_opened_in_a_browser(host, address):
    assert up._address(argparse.Namespace(host=host, port=8000)) == address


def test_bytecode_is_not_written_where_the_user_has_no_home_folder(monkeypatch, tmp_path):
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.setattr("sys.pycache_prefix", None)
    monkeypatch.setattr("sys.dont_write_bytecode", True)

    bytecode.enable(tmp_path / "absent")
