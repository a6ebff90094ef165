"""SFTP server, version 3, on stdin and stdout. It runs inside the sandbox: paths, user and limits are the job's.

OpenSSH's sftp and scp speak to it; scp copies by SFTP since OpenSSH 9.
https://datatracker.ietf.org/doc/html/draft-ietf-secsh-filexfer-02, extensions: OpenSSH's PROTOCOL file.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OK, EOF, NO_FILE, DENIED, FAILURE, BAD, UNSUPPORTED = 0, 1, 2, 3, 4, 5, 8
STATUS, HANDLE, DATA, NAME, ATTRS, REPLY = 101, 102, 103, 104, 105, 201
SIZE, OWNER, PERMISSIONS, TIMES = 1, 2, 4, 8
MAX_PACKET_BYTES, MAX_DATA_BYTES, MAX_HANDLES = 256 * 1024, 255 * 1024, 256
OPEN_FLAGS = ((0x04, os.O_APPEND), (0x08, os.O_CREAT), (0x10, os.O_TRUNC), (0x20, os.O_EXCL))
REQUESTS = {
    3: "open", 4: "close", 5: "read", 6: "write", 7: "lstat", 8: "fstat", 9: "setstat", 10: "fsetstat", 11: "opendir",
    12: "readdir", 13: "remove", 14: "mkdir", 15: "rmdir", 16: "realpath", 17: "stat", 18: "rename", 19: "readlink",
    20: "symlink", 200: "extended",
}  # fmt: skip
EXTENSIONS = (b"posix-rename@openssh.com", b"hardlink@openssh.com", b"fsync@openssh.com", b"lsetstat@openssh.com",
              b"limits@openssh.com", b"expand-path@openssh.com", b"statvfs@openssh.com")  # fmt: skip
STATVFS = ("f_bsize", "f_frsize", "f_blocks", "f_bfree", "f_bavail", "f_files", "f_ffree", "f_favail")


class Packet:
    """What is left to read of one request."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def number(self, form: str = ">I") -> int:
        """Take a number off the front."""
        (value,) = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def string(self) -> bytes:
        """Take a string off the front.

        Raises:
            ValueError: it is cut.
        """
        length = self.number()
        self.at += length
        if self.at > len(self.data):
            raise ValueError("short packet")
        return self.data[self.at - length : self.at]

    def attributes(self) -> dict[str, int]:
        """Take attributes off the front: those that are present."""
        flags, attributes = self.number(), {}
        if flags & SIZE:
            attributes["size"] = self.number(">Q")
        if flags & OWNER:
            attributes["uid"], attributes["gid"] = self.number(), self.number()
        if flags & PERMISSIONS:
            attributes["mode"] = self.number()
        if flags & TIMES:
            attributes["atime"], attributes["mtime"] = self.number(), self.number()
        return attributes


def string(value: bytes) -> bytes:
    """Return a string of the protocol: its length, then its bytes."""
    return struct.pack(">I", len(value)) + value


def attributes(info: os.stat_result) -> bytes:
    """Return a file's attributes as the protocol has them."""
    return struct.pack(">IQIIIII", SIZE | OWNER | PERMISSIONS | TIMES, info.st_size, info.st_uid, info.st_gid,
                       info.st_mode, int(info.st_atime) & 0xFFFFFFFF, int(info.st_mtime) & 0xFFFFFFFF)  # fmt: skip


def long_name(name: bytes, info: os.stat_result) -> bytes:
    """Return a line as `ls -l` prints it, which clients show."""
    when = time.strftime("%b %d %H:%M", time.localtime(info.st_mtime))
    line = f"{stat.filemode(info.st_mode)} {info.st_nlink:4} {info.st_uid:8} {info.st_gid:8} {info.st_size:12} {when} "
    return line.encode() + name


class Server:
    """Answers requests one by one; handles are numbers of open files and folders."""

    def __init__(self) -> None:
        self.files: dict[bytes, int] = {}
        self.folders: dict[bytes, Any] = {}
        self.next = 0

    def answer(self, kind: int, packet: Packet) -> tuple[int, bytes]:
        """Return type and body of the reply to one request.

        Raises:
            OSError, ValueError, KeyError, OverflowError, struct.error: the request fails.
        """
        name = REQUESTS.get(kind)
        return getattr(self, f"_{name}")(packet) if name else status(UNSUPPORTED, "not supported")

    def _add_handle(self, table: dict[bytes, Any], value: object) -> tuple[int, bytes]:
        if len(self.files) + len(self.folders) >= MAX_HANDLES:
            raise OSError(errno.EMFILE, "too many open files")
        self.next += 1
        table[b"%d" % self.next] = value
        return HANDLE, string(b"%d" % self.next)

    def _open(self, packet: Packet) -> tuple[int, bytes]:
        path, wanted, attrs = packet.string(), packet.number(), packet.attributes()
        flags = {1: os.O_RDONLY, 2: os.O_WRONLY, 3: os.O_RDWR}.get(wanted & 3, os.O_RDONLY)
        for bit, flag in OPEN_FLAGS:
            flags |= flag if wanted & bit else 0
        return self._add_handle(self.files, os.open(path, flags | os.O_CLOEXEC, attrs.get("mode", 0o666) & 0o7777))

    def _close(self, packet: Packet) -> tuple[int, bytes]:
        handle = packet.string()
        if handle in self.files:
            os.close(self.files.pop(handle))
        else:
            self.folders.pop(handle).close()
        return status(OK)

    def _read(self, packet: Packet) -> tuple[int, bytes]:
        handle, offset, length = packet.string(), packet.number(">Q"), packet.number()
        data = os.pread(self.files[handle], min(length, MAX_DATA_BYTES), offset)
        return (DATA, string(data)) if data else status(EOF, "end of file")

    def _write(self, packet: Packet) -> tuple[int, bytes]:
        handle, offset, data = packet.string(), packet.number(">Q"), memoryview(packet.string())
        while data:
            written = os.pwrite(self.files[handle], data, offset)
            data, offset = data[written:], offset + written
        return status(OK)

    def _lstat(self, packet: Packet) -> tuple[int, bytes]:
        return ATTRS, attributes(os.lstat(packet.string()))

    def _fstat(self, packet: Packet) -> tuple[int, bytes]:
        return ATTRS, attributes(os.fstat(self.files[packet.string()]))

    def _stat(self, packet: Packet) -> tuple[int, bytes]:
        return ATTRS, attributes(os.stat(packet.string()))

    def _setstat(self, packet: Packet) -> tuple[int, bytes]:
        return _set(packet.string(), packet.attributes())

    def _fsetstat(self, packet: Packet) -> tuple[int, bytes]:
        return _set(self.files[packet.string()], packet.attributes())

    def _opendir(self, packet: Packet) -> tuple[int, bytes]:
        return self._add_handle(self.folders, os.scandir(packet.string()))

    def _readdir(self, packet: Packet) -> tuple[int, bytes]:
        body, count = b"", 0
        for entry in self.folders[packet.string()]:
            try:
                info = entry.stat(follow_symlinks=False)
            except FileNotFoundError:  # it went while we looked
                continue
            body += string(entry.name) + string(long_name(entry.name, info)) + attributes(info)
            count += 1
            if len(body) > MAX_PACKET_BYTES // 4:
                break
        return (NAME, struct.pack(">I", count) + body) if count else status(EOF, "end of folder")

    def _remove(self, packet: Packet) -> tuple[int, bytes]:
        os.unlink(packet.string())
        return status(OK)

    def _mkdir(self, packet: Packet) -> tuple[int, bytes]:
        path, attrs = packet.string(), packet.attributes()
        os.mkdir(path, attrs.get("mode", 0o777) & 0o7777)
        return status(OK)

    def _rmdir(self, packet: Packet) -> tuple[int, bytes]:
        os.rmdir(packet.string())
        return status(OK)

    def _realpath(self, packet: Packet) -> tuple[int, bytes]:
        return _name(os.path.realpath(packet.string() or b"."))

    def _rename(self, packet: Packet) -> tuple[int, bytes]:
        """Never overwrites; clients that mean to ask by posix-rename."""
        old, new = packet.string(), packet.string()
        if os.path.lexists(new):
            return status(FAILURE, "target exists")
        os.rename(old, new)
        return status(OK)

    def _readlink(self, packet: Packet) -> tuple[int, bytes]:
        return _name(os.readlink(packet.string()))

    def _symlink(self, packet: Packet) -> tuple[int, bytes]:
        """OpenSSH sends the target first, other than the draft says."""
        target, link = packet.string(), packet.string()
        os.symlink(target, link)
        return status(OK)

    def _extended(self, packet: Packet) -> tuple[int, bytes]:
        name = packet.string()
        if name == b"posix-rename@openssh.com":
            os.replace(packet.string(), packet.string())
            return status(OK)
        if name == b"hardlink@openssh.com":
            os.link(packet.string(), packet.string())
            return status(OK)
        if name == b"fsync@openssh.com":
            os.fsync(self.files[packet.string()])
            return status(OK)
        if name == b"lsetstat@openssh.com":
            return _set(packet.string(), packet.attributes(), follow=False)
        if name == b"limits@openssh.com":
            return REPLY, struct.pack(">QQQQ", MAX_PACKET_BYTES, MAX_DATA_BYTES, MAX_DATA_BYTES, MAX_HANDLES)
        if name == b"expand-path@openssh.com":
            return _name(os.path.realpath(os.path.expanduser(packet.string())))
        if name == b"statvfs@openssh.com":
            statistics = os.statvfs(packet.string())
            return REPLY, struct.pack(
                ">11Q", *(getattr(statistics, key) for key in STATVFS), 0, 0, statistics.f_namemax
            )
        return status(UNSUPPORTED, "not supported")


def _name(path: bytes) -> tuple[int, bytes]:
    return NAME, struct.pack(">I", 1) + string(path) + string(path) + struct.pack(">I", 0)


def _set(path: bytes | int, attrs: dict[str, int], *, follow: bool = True) -> tuple[int, bytes]:
    """Set the requested attributes; the owner cannot be changed here."""
    itself = not follow and not isinstance(path, int)  # a link, not what it points to
    if "size" in attrs:
        os.truncate(path, attrs["size"])
    if "mode" in attrs and not (itself and os.path.islink(path)):
        os.chmod(path, attrs["mode"] & 0o7777)
    if "mtime" in attrs:
        os.utime(path, (attrs["atime"], attrs["mtime"]), follow_symlinks=not itself)
    return status(OK)


def status(code: int, message: str = "") -> tuple[int, bytes]:
    """Return a reply with the outcome of a request."""
    return STATUS, struct.pack(">I", code) + string(message.encode()) + string(b"en")


def failed(exc: Exception) -> tuple[int, bytes]:
    """Return the reply to a request that failed."""
    if isinstance(exc, OSError):
        code = {errno.ENOENT: NO_FILE, errno.ENOTDIR: NO_FILE, errno.EACCES: DENIED, errno.EPERM: DENIED}
        return status(code.get(exc.errno or 0, FAILURE), exc.strerror or "failed")
    return status(BAD, "bad request")


def main() -> None:
    """Answer requests until stdin ends."""
    os.chdir(os.environ.get("HOME") or "/")
    source, sink, server = sys.stdin.buffer, sys.stdout.buffer, Server()

    def send(kind: int, body: bytes) -> None:
        sink.write(struct.pack(">IB", len(body) + 1, kind) + body)

    while len(head := source.read(5)) == 5:
        length, kind = struct.unpack(">IB", head)
        if not 1 <= length <= MAX_PACKET_BYTES + 1024:
            sys.exit(1)
        packet = Packet(source.read(length - 1))
        if kind == 1:  # INIT
            send(2, struct.pack(">I", 3) + b"".join(string(name) + string(b"2" if b"statvfs" in name else b"1")
                                                    for name in EXTENSIONS))  # fmt: skip
        else:
            number = packet.number()
            try:
                answer, body = server.answer(kind, packet)
            except (OSError, ValueError, KeyError, OverflowError, struct.error) as exc:
                answer, body = failed(exc)
            send(answer, struct.pack(">I", number) + body)
        sink.flush()


if __name__ == "__main__":
    main()
