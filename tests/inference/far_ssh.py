"""A machine by SSH of the tests: asyncssh with a folder of its own, in a thread."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncssh


@dataclass
class FarMachine:
    """What it holds and does.

    Attributes:
        root: its disk.
        password: what alice signs in with.
        key: the public key that she signs in with, as a line.
        trouble: "" or what goes wrong: full, cut, damaged, read_only.
        shell: whether it runs commands.
        asked: commands that it ran.
    """

    root: Path
    port: int = 0
    password: str = "right"
    key: str = ""
    trouble: str = ""
    shell: bool = True
    asked: list[str] = field(default_factory=list)
    host_key: Any = field(default_factory=lambda: asyncssh.generate_private_key("ssh-ed25519"))
    written: int = 0
    began_at: list[int] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"ssh://127.0.0.1:{self.port}/srv/models"


def _server(far: FarMachine) -> type[asyncssh.SSHServer]:
    class Server(asyncssh.SSHServer):
        def password_auth_supported(self) -> bool:
            return True

        def validate_password(self, username: str, password: str) -> bool:
            return (username, password) == ("alice", far.password)

        def public_key_auth_supported(self) -> bool:
            return True

        def validate_public_key(self, username: str, key: Any) -> bool:
            return username == "alice" and key.export_public_key().decode().split()[1] in far.key

    return Server


def _files(far: FarMachine) -> type[asyncssh.SFTPServer]:
    class Files(asyncssh.SFTPServer):
        def __init__(self, channel: Any) -> None:
            super().__init__(channel, chroot=str(far.root).encode())

        def open(self, path: bytes, pflags: int, attrs: Any) -> Any:
            if far.trouble == "read_only" and pflags & asyncssh.FXF_WRITE:
                raise asyncssh.SFTPPermissionDenied("no")
            return super().open(path, pflags, attrs)

        def write(self, file_obj: Any, offset: int, data: bytes) -> int:
            far.began_at.append(offset)
            if far.trouble == "full" and far.written > 20_000:
                raise asyncssh.SFTPFailure("Failure")
            if far.trouble == "cut" and far.written > 20_000:
                self.channel.get_connection().abort()
                raise asyncssh.SFTPFailure("cut")
            far.written += len(data)
            return int(super().write(file_obj, offset, b"\0" * len(data) if far.trouble == "damaged" else data))

        def statvfs(self, path: bytes) -> Any:
            stats = super().statvfs(path)
            free = 1 if far.trouble == "full" and far.written else 1 << 20
            return asyncssh.SFTPVFSAttrs(bsize=4096, frsize=4096, blocks=1 << 22, bfree=free, bavail=free,
                                         namemax=stats.f_namemax)  # fmt: skip

    return Files


def _shell(far: FarMachine) -> Any:
    async def run(process: Any) -> None:
        far.asked.append(process.command)
        path = process.command.removeprefix("sha256sum -- ").strip("'")
        file = far.root / path.lstrip("/")
        if not far.shell or not file.is_file():
            process.exit(127)
            return
        process.stdout.write(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {path}\n")
        process.exit(0)

    return run


@contextmanager
def reachable(root: Path) -> Iterator[FarMachine]:
    """A machine on a port of its own for as long as the block lasts."""
    far = FarMachine(root)
    root.mkdir(parents=True, exist_ok=True)
    up, stop = threading.Event(), threading.Event()

    async def live() -> None:
        server = await asyncssh.create_server(
            _server(far), "127.0.0.1", 0, server_host_keys=[far.host_key], sftp_factory=_files(far),
            process_factory=_shell(far),
        )  # fmt: skip
        far.port = server.get_port()
        up.set()
        await asyncio.to_thread(stop.wait)
        server.close()
        await server.wait_closed()

    thread = threading.Thread(target=asyncio.run, args=(live(),), daemon=True)
    thread.start()
    assert up.wait(20)
    try:
        yield far
    finally:
        stop.set()
        thread.join()
