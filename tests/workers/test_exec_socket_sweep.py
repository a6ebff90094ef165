"""Sockets of exec servers whose supervisors were killed."""

from __future__ import annotations

import os
import socket
import tempfile
from pathlib import Path

import pytest

from workers.execution.exec import socket_paths

pytestmark = pytest.mark.sockets("unix sockets, as exec servers have them")


@pytest.fixture
def folder(settings):
    with tempfile.TemporaryDirectory() as short:
        settings.RUN_DIR = short
        Path(short, "exec").mkdir()
        yield Path(short, "exec")


def test_sockets_that_nobody_listens_at_are_removed(folder):
    listening, dead, young = (socket.socket(socket.AF_UNIX) for _ in range(3))
    for made, name in ((listening, "1-1-0"), (dead, "2-1-0"), (young, "3-1-0")):
        made.bind(str(folder / name))
        made.listen(1)
    dead.close()
    young.close()
    (folder / "notes").write_text("")
    for name in ("1-1-0", "2-1-0", "notes"):
        os.utime(folder / name, (1e9, 1e9))

    removed = socket_paths.sweep()

    with listening:
        assert removed == ["2-1-0"]
        assert sorted(path.name for path in folder.iterdir()) == ["1-1-0", "3-1-0", "notes"]
        listening.setblocking(False)
        with pytest.raises(BlockingIOError):
            listening.accept()  # it was not even asked


def test_socket_of_another_network_namespace_is_asked(folder, monkeypatch):
    monkeypatch.setattr(socket_paths, "_open_here", set)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "1-1-0"))
        listening.listen(1)
        os.utime(folder / "1-1-0", (1e9, 1e9))

        assert socket_paths.sweep() == []


def test_machine_without_sockets_has_nothing_to_sweep(settings, tmp_path):
    settings.RUN_DIR = str(tmp_path)

    assert socket_paths.sweep() == []
