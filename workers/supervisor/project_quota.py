"""Project quota: the kernel itself bounds what a job's folders take (XFS, ext4 mounted with prjquota).

It takes CAP_SYS_ADMIN in the initial user namespace. A project is a number that new files inherit from their folder;
the limit belongs to the number, on each file system. See quotactl(2) and ioctl_xfs_fsgetxattr(2).
"""

import ctypes
import errno
import fcntl
import os
import struct

from workers.supervisor import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_GETXATTR, _SETXATTR = 0x801C581F, 0x401C5820  # FS_IOC_FSGETXATTR, FS_IOC_FSSETXATTR
_XATTR = struct.Struct("5I8x")  # xflags, extsize, nextents, projid, cowextsize
_INHERIT = 0x200  # FS_XFLAG_PROJINHERIT
_QUOTACTL_FD = 443  # the number of the call on every architecture that Linux 5.14 and later knows
_GETQUOTA, _SETQUOTA = 0x800007, 0x800008
_PROJECTS = 2  # PRJQUOTA
_QUOTA = struct.Struct("=8QI4x")  # hard and soft blocks, bytes, hard and soft inodes, inodes, two times, valid
_LIMITS = 1  # QIF_BLIMITS
_UNIT = 1024  # bytes of a block of quota
_OPTIONS = frozenset({"prjquota", "pquota"})
FIRST_PROJECT = 1 << 30  # smaller numbers are left to the operator
SLACK_BYTES = 64 << 10
"""So close to its limit a job's next write fails."""

_libc = ctypes.CDLL(None, use_errno=True)


class ProjectQuota:
    """The quota of one job on the file systems of its folders.

    Args:
        project: a number that no other attempt of this machine has.
    """

    def __init__(self, folders: "Iterable[str]", project: int) -> None:
        self.folders, self.project = list(folders), project

    def set(self, limit_bytes: int) -> str:
        """Bound the folders; return why that is not possible here, "" where it was done. All or nothing."""
        if why := obstacle(self.folders):
            return why
        try:
            if self.used_bytes():
                return "its project number is in use"
            for folder in self.folders:
                self._limit(folder, limit_bytes)
            for folder in self.folders:
                _mark(folder, self.project)
        except OSError as exc:
            self.clear()
            return str(exc.strerror or exc)
        return ""

    def clear(self) -> None:
        """Remove the limit; files keep the number."""
        for folder in self.folders:
            try:
                self._limit(folder, 0)
            except OSError:
                continue

    def used_bytes(self) -> int:
        """Return what the project takes.

        Raises:
            OSError: the kernel does not say.
        """
        used: dict[int, int] = {}
        for folder in self.folders:
            opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                used[os.fstat(opened).st_dev] = _call(opened, _GETQUOTA, self.project, bytes(_QUOTA.size))[2]
            finally:
                os.close(opened)
        return sum(used.values())

    def _limit(self, folder: str, limit_bytes: int) -> None:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            blocks = -(-limit_bytes // _UNIT)
            _call(opened, _SETQUOTA, self.project, _QUOTA.pack(blocks, 0, 0, 0, 0, 0, 0, 0, _LIMITS))
        finally:
            os.close(opened)


def obstacle(folders: "Iterable[str]") -> str:
    """Return why the kernel cannot bound folders here, in words; "" where it can, as far as mounts and rights tell."""
    if os.geteuid() != 0 or not _may_administer():
        return "it takes root with CAP_SYS_ADMIN"
    mounts = _mounts()
    for folder in folders:
        kind, options = _mount_of(folder, mounts)
        if kind not in ("xfs", "ext4", "f2fs"):
            return f"{folder} is on {kind or 'an unknown file system'}, which has no project quota"
        if not _OPTIONS & options:
            return f"the file system of {folder} is mounted without prjquota"
    return ""


def _mark(folder: str, project: int) -> None:
    """Give a folder and everything in it a project number that new entries inherit."""
    for here, _folders, names, opened in os.fwalk(folder, follow_symlinks=False):
        _set_project(opened, project, is_folder=True)
        for name in names:
            try:
                file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=opened)
            except OSError as exc:
                if exc.errno in (errno.ELOOP, errno.ENOENT, errno.ENXIO):  # a link, gone, or a socket
                    continue
                raise
            try:
                _set_project(file, project, is_folder=False)
            except OSError as exc:
                if exc.errno not in (errno.ENOTTY, errno.EOPNOTSUPP):  # of a pipe
                    raise OSError(exc.errno, exc.strerror, os.path.join(here, name)) from exc
            finally:
                os.close(file)


def _set_project(opened: int, project: int, *, is_folder: bool) -> None:
    attributes = bytearray(_XATTR.size)
    fcntl.ioctl(opened, _GETXATTR, attributes)
    flags, extent, extents, _project, copied = _XATTR.unpack(attributes)
    flags |= _INHERIT if is_folder else 0
    fcntl.ioctl(opened, _SETXATTR, _XATTR.pack(flags, extent, extents, project, copied))


def _call(opened: int, command: int, project: int, content: bytes) -> "tuple[int, ...]":
    """Ask the kernel about a project of the file system that an open folder is on.

    Raises:
        OSError: it refuses, or is older than 5.14.
    """
    buffer = ctypes.create_string_buffer(content, _QUOTA.size)
    if _libc.syscall(_QUOTACTL_FD, opened, command << 8 | _PROJECTS, project, buffer):
        number = ctypes.get_errno()
        if number == errno.ENOENT and command == _GETQUOTA:  # XFS: nothing was ever charged to it
            return tuple(_QUOTA.unpack(bytes(_QUOTA.size)))
        raise OSError(number, os.strerror(number))
    return tuple(_QUOTA.unpack(buffer.raw))


def _may_administer() -> bool:
    """Whether this process has CAP_SYS_ADMIN and is in the initial user namespace, where quotas are set."""
    try:
        status = records.text("/proc/self/status")
        everybody = records.text("/proc/self/uid_map").split() == ["0", "0", "4294967295"]
    except OSError:
        return False
    held = next((int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff:")), 0)
    return everybody and bool(held >> 21 & 1)


def _mounts() -> "dict[str, tuple[str, frozenset[str]]]":
    """Type and options of each file system, by the device number of mountinfo; the last mount counts."""
    entries: dict[str, tuple[str, frozenset[str]]] = {}
    try:
        lines = records.text("/proc/self/mountinfo").splitlines()
    except OSError:
        return entries
    for line in lines:
        fields, _separator, rest = line.partition(" - ")
        columns = rest.split()
        if len(columns) >= 3:
            entries[fields.split()[2]] = (columns[0], frozenset(columns[2].split(",")))
    return entries


def _mount_of(folder: str, mounts: "dict[str, tuple[str, frozenset[str]]]") -> "tuple[str, frozenset[str]]":
    try:
        device = os.stat(folder).st_dev
    except OSError:
        return "", frozenset()
    return mounts.get(f"{os.major(device)}:{os.minor(device)}", ("", frozenset()))
