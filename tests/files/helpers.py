"""The API of files in few words, and what jobs may leave in a home."""

from __future__ import annotations

import ctypes
import json
import os
import socket
from pathlib import Path
from typing import Any

from accounts.models import User
from datasets.models import Upload
from datasets.services import uploads

API = "/api/v1/files/"
HOSTILE = [b"new\nline", b"\xff\xfe.bin", b"back\\slash", b"\xe2\x80\xaegpj.exe", b"x" * 255, b" ",
           b"-rf", b"a\tb", b"%2e"]  # fmt: skip


class Files:
    """Calls `/api/v1/files/` as one person."""

    def __init__(self, client: Any, person: User) -> None:
        self.client, self.person = client, person

    def get(self, what: str = "", **query: Any) -> Any:
        return self.client.get(f"{API}{what}", query)

    def post(self, what: str, **body: Any) -> Any:
        return self.client.post(f"{API}{what}/", json.dumps(body), content_type="application/json")

    def names(self, **query: Any) -> list[str]:
        return [row["name"] for row in self.get(**query).json()["results"]]

    def put(self, path: str, data: bytes = b"data", **more: Any) -> Any:
        """Bring bytes the way a browser does: uploaded first, then placed."""
        return self.post("put", path=path, upload=arrived(self.person, data), **more)


def arrived(owner: User, data: bytes) -> str:
    """An upload that has arrived whole."""
    upload = uploads.create(owner=owner, length=len(data), metadata={"filename": "sent"})
    upload.file.write_bytes(data)
    Upload.objects.filter(pk=upload.pk).update(state=Upload.State.DONE)
    return str(upload.pk)


def read(answer: Any) -> bytes:
    """All of a streamed answer."""
    return b"".join(answer)


def hostile_names(folder: Path) -> None:
    for name in HOSTILE:
        Path(os.fsdecode(os.path.join(os.fsencode(folder), name))).write_bytes(b"hostile")


def special_files(folder: Path) -> socket.socket:
    """A pipe, a socket and a device beside each other; the caller closes the socket."""
    os.mkfifo(folder / "pipe")
    if os.geteuid() == 0:
        os.mknod(folder / "device", 0o600 | 0o020000, os.makedev(1, 5))  # endless zeros
    listening = socket.socket(socket.AF_UNIX)
    here = os.open(folder, os.O_RDONLY)
    try:
        listening.bind(f"/proc/self/fd/{here}/socket")
    finally:
        os.close(here)
    return listening


def chain(root: Path, depth: int) -> None:
    """A folder in a folder in a folder …, with a file at the end."""
    here = os.open(root, os.O_RDONLY)
    for _step in range(depth):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("leaf", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)


def exchange(one: Path, other: Path) -> None:
    """Swap two names in one step, so that both are always there."""
    libc, here, swapped = ctypes.CDLL(None, use_errno=True), -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    if libc.renameat2(here, os.fsencode(one), here, os.fsencode(other), swapped) != 0:
        raise OSError(ctypes.get_errno(), str(one))
