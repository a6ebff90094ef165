"""Programs that jobs find on their PATH: written where others may have put something before."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest

from tests.workers.supervised import UID
from workers.execution import sandbox_access
from workers.execution.exec import egress, inside_programs, socket_paths
from workers.supervisor import exec_socket


def test_program_is_written_past_a_link_that_lies_in_its_way(tmp_path, monkeypatch):
    folder, aim = tmp_path / "programs", tmp_path / "aim"
    folder.mkdir()
    aim.write_text("mine")
    aim.chmod(0o600)
    (folder / "aip-x").symlink_to(aim)
    (folder / f".aip-x.{os.getpid()}").symlink_to(aim)
    monkeypatch.setattr(inside_programs.secrets, "token_hex", lambda _bytes: "known")
    (folder / ".aip-x.known").symlink_to(aim)

    with pytest.raises(FileExistsError):
        inside_programs.write_program(folder, "aip-x", "connect.py")
    monkeypatch.undo()
    inside_programs.write_program(folder, "aip-x", "connect.py")

    assert (aim.read_text(), aim.stat().st_mode & 0o777) == ("mine", 0o600)
    assert ((folder / "aip-x").is_symlink(), (folder / "aip-x").stat().st_mode & 0o777) == (False, 0o755)
    done = subprocess.run([folder / "aip-x"], capture_output=True, text=True, check=False)
    assert "usage: aip-connect" in done.stderr
    assert max(path.name for path in folder.iterdir()) == "aip-x"
    assert sys.executable in (folder / "aip-x").read_text()


@pytest.fixture
def long_paths(tmp_path, settings, monkeypatch):
    """A platform whose own folder has a path too long for sockets, and the folder of temporary files."""
    settings.RUN_DIR = tmp_path / ("long" * 40)
    (tmp_path / "t").mkdir()
    monkeypatch.setattr(socket_paths.tempfile, "gettempdir", lambda: str(tmp_path / "t"))
    return socket_paths.egress().parent


def test_folder_of_the_proxy_is_the_platforms_own(long_paths):
    assert long_paths.parent.name == "t"
    previous = os.umask(0o077)
    try:
        made = socket_paths.egress_folder()
    finally:
        os.umask(previous)

    assert made == long_paths
    assert made.stat().st_mode & 0o777 == 0o755
    assert socket_paths.egress_folder() == made


@pytest.mark.parametrize("kind", ["a link", "open to others", "somebody else's"])
def test_folder_that_somebody_else_made_is_not_written_to(kind, long_paths, tmp_path, monkeypatch):
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    if kind == "a link":
        long_paths.symlink_to(theirs)
    else:
        long_paths.mkdir()
        theirs = long_paths
        if kind == "open to others":
            theirs.chmod(0o777)
        elif os.geteuid() == 0:
            os.chown(theirs, UID, UID)
        else:
            pytest.skip("only root gives folders away")
    monkeypatch.setattr(sandbox_access, "has_server", lambda *_: True)
    monkeypatch.setattr(sandbox_access, "is_alone", lambda *_: True)

    with pytest.raises(PermissionError, match="Remove it"):
        sandbox_access.readable(None, 3, None)
    with pytest.raises(PermissionError, match="Remove it"):
        asyncio.run(egress.start(egress.Egress(["none"])))

    assert list(theirs.iterdir()) == []
    assert exec_socket.is_own(str(theirs), 0o755) is (kind == "a link")
