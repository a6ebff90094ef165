"""Folders of the machine that a job with root inside may change: its own layer over each, in its box.

Packages of the distribution are installed there and come back after a stop. What not everybody may read on the
machine is not there for the job: mounted as its own, it could read it.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from pathlib import Path

from django.conf import settings

from aiplatform.lib import trees, wording
from aiplatform.lib.errors import DomainError
from aiplatform.lib.files import OutsideRoot
from workers.execution import job_users, root_users, tickets
from workers.images.store import paths as places
from workers.supervisor import sandbox, tiers
from workers.supervisor.ticket import Ticket

FOLDER = "system"
MADE = ".made"  # written last: what the job changed from then on stays
#: over these the job writes as their owner; files of others stay as they are
MAPPED = {"usr": "/usr", "dpkg": "/var/lib/dpkg", "apt": "/var/lib/apt", "rpm": "/var/lib/rpm"}
#: here it adds files, so many folders deep, and does not change those of the machine
ADDED = {"local": ("/usr/local", 4), "opt": ("/opt", 1)}
#: of /etc, beside what every job sees: what package managers and the scripts of packages read
ETC = (
    "X11", "adduser.conf", "apt", "bash.bashrc", "bash_completion.d", "bindresvport.blacklist", "cron.d", "cron.daily",
    "debconf.conf", "default", "deluser.conf", "dnf", "dpkg", "emacs", "environment.d", "ethertypes", "gai.conf",
    "init.d", "inputrc", "issue", "kernel", "libaudit.conf", "locale.alias", "locale.conf", "locale.gen", "login.defs",
    "logrotate.d", "lsb-release", "manpath.config", "modprobe.d", "nanorc", "netconfig", "pam.conf", "pam.d", "perl",
    "profile", "profile.d", "python3", "python3.11", "python3.12", "python3.13", "rc0.d", "rc1.d", "rc2.d", "rc3.d",
    "rc4.d", "rc5.d", "rc6.d", "rcS.d", "rpc", "rpm", "securetty", "security", "sgml", "shells", "skel", "subgid",
    "subuid", "sysctl.d", "systemd", "tmpfiles.d", "ucf.conf", "update-motd.d", "vim", "xattr.conf", "xdg", "xml",
    "yum", "yum.conf", "yum.repos.d",
)  # fmt: skip
VAR = ("pam", "ucf", "dictionaries-common", "emacsen-common", "python", "sgml-base", "xml-core")  # of /var/lib
EMPTY = ("backups", "cache/apt/archives/partial", "cache/debconf", "cache/ldconfig", "cache/man", "lib/dpkg",
         "lib/apt", "lib/misc", "lib/rpm", "lib/systemd", "local", "log/apt", "mail", "opt", "spool")  # fmt: skip
MAX_AGE_S = 600  # for so long is what was found hidden on the machine not looked for again
LOOK_S = 50.0
FIND = ("/usr/bin/find", "-P")
#: of /usr/local nothing is mapped: there the job is nobody. What goes away meanwhile is no failure
CLOSED = (
    "-xdev -ignore_readdir_race -path /usr/local -prune -o -not -type l"
    " ( -not -perm -o=r -o -type d -not -perm -o=x ) -printf %p\\0 -prune"
)
NO_DAEMONS = "#!/bin/sh\nexit 101\n"  # packages ask it whether to start what they brought; nothing here would


class NotLookedThrough(DomainError, code="machine_not_looked_through"):
    """What is closed on this machine is not known, so nothing of it is opened."""


def folders(box: Path, uid: int, home: str) -> list[dict[str, str]]:
    """What the job may change of the machine, as its ticket says it; made at the first call.

    Args:
        uid: whom the box belongs to; 0 is the platform's own user, for whom there is none of this.
        home: of the person, which is that of root inside.
    """
    if not uid or not works():
        return []
    own = box / FOLDER
    own.mkdir(mode=0o700, exist_ok=True)
    job_users.enclose(own, uid)  # the names in it stay the platform's: what is below them is the job's
    if not (own / MADE).exists():
        _make(own, uid, home)
        job_users.enclose(own, uid)
        (own / MADE).touch()
    closed = hidden(int(time.time() // MAX_AGE_S))
    layers = []
    for name, target in _mapped().items():
        layers.append(_layer(own, name, target, uid, mapped=True))
        _hide(own / name, closed.get(target, []), uid)
    layers += [
        _layer(own, name, target, uid, mapped=False) for name, (target, _) in ADDED.items() if _is_folder(target)
    ]
    layers += [{"target": f"/{name}", "upper": str(own / name)} for name in ("etc", "var")]
    return sorted(layers, key=lambda each: each["target"].count("/"))


def installed(box: Path) -> list[str]:
    """Names of the distribution's packages that a job installed or changed in its box, by the lists of dpkg."""
    packages: set[str] = set()
    with suppress(FileNotFoundError, NotADirectoryError, OutsideRoot), trees.opened(box / FOLDER) as own:
        folder = trees.open_folder(own, (b"dpkg", b"info"))
        try:
            with os.scandir(folder) as entries:  # what was removed is a mark, and no file
                names = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
        finally:
            os.close(folder)
        packages = {name.removesuffix(".list").partition(":")[0] for name in names if name.endswith(".list")}
    return sorted(packages)


def _mapped() -> dict[str, str]:
    """Those of MAPPED that are there; one that is closed as a whole is none of the job's business."""
    present = {name: target for name, target in MAPPED.items() if _is_folder(target)}
    return {name: target for name, target in present.items() if Path(target).stat().st_mode & 0o005 == 0o005}


def _layer(own: Path, name: str, target: str, uid: int, *, mapped: bool) -> dict[str, str]:
    for inner in (own / name, own / f"{name}.work"):
        inner.mkdir(mode=0o755, exist_ok=True)
        with trees.opened(inner) as opened:
            if os.fstat(opened).st_uid != uid:
                os.fchown(opened, uid, uid)
    layer = {"target": target, "lower": target, "upper": str(own / name), "work": str(own / f"{name}.work")}
    return layer | ({"mapped": "1"} if mapped else {})


def _is_folder(path: str) -> bool:
    return Path(path).is_dir() and not Path(path).is_symlink()


def _make(own: Path, uid: int, home: str) -> None:
    """Fill what is no layer: copies of what everybody may read, and folders to add files to."""
    for name in ("etc", "var", *ADDED):
        places.remove(own / name)  # half made, by somebody who was killed
        (own / name).mkdir(mode=0o755)
    for name in (*sandbox.ETC, *ETC):
        _copy(Path("/etc") / name, own / "etc" / name)
    for name in ("hosts", "resolv.conf"):  # the machine's own, mounted: networks rewrite them
        with suppress(FileNotFoundError):
            (own / "etc" / name).unlink()
        (own / "etc" / name).touch()
    users = [line.split(":") for line in _lines(Path("/etc/passwd"))]
    users = [[*user[:5], home, "/bin/bash"] if user[0] == "root" else user for user in users]
    (own / "etc/passwd").write_text("".join(":".join(user) + "\n" for user in users))
    (own / "etc/shadow").write_text("".join(f"{user[0]}:*:::::::\n" for user in users))
    (own / "etc/shadow").chmod(0o640)
    for name in EMPTY:
        (own / "var" / name).mkdir(parents=True, exist_ok=True)
    for name in VAR:
        _copy(Path("/var/lib") / name, own / "var/lib" / name)
    (own / "var/tmp").mkdir(mode=0o1777)
    (own / "var/tmp").chmod(0o1777)
    for name, target in (("run", "/run"), ("lock", "/run/lock")):
        (own / "var" / name).symlink_to(target)
    for name, (target, depth) in ADDED.items():
        for path in _open_folders(Path(target), depth) if _is_folder(target) else ():
            (own / name / path.relative_to(target)).mkdir(exist_ok=True)
    sbin = own / "usr/sbin"
    sbin.mkdir(parents=True, exist_ok=True)
    (sbin / "policy-rc.d").write_text(NO_DAEMONS)
    (sbin / "policy-rc.d").chmod(0o755)
    for folder, _folders, names, at in os.fwalk(own):
        os.chown(folder, uid, uid)
        for name in names:
            os.chown(name, uid, uid, dir_fd=at, follow_symlinks=False)


def _lines(path: Path) -> list[str]:
    return path.read_text(errors="replace").splitlines() if path.is_file() else []


def _copy(source: Path, target: Path) -> None:
    """Copy what is readable for everyone, links as links."""
    with suppress(FileNotFoundError):
        status = source.lstat()
        if stat.S_ISLNK(status.st_mode):
            target.symlink_to(source.readlink())
        elif stat.S_ISREG(status.st_mode) and status.st_mode & stat.S_IROTH:
            shutil.copyfile(source, target)
            target.chmod(status.st_mode & 0o755)
        elif stat.S_ISDIR(status.st_mode) and status.st_mode & 0o005 == 0o005:
            target.mkdir(exist_ok=True)
            for entry in source.iterdir():
                _copy(entry, target / entry.name)


def _open_folders(top: Path, depth: int) -> Iterator[Path]:
    """Folders below one that everybody may look into, outer ones first."""
    for entry in os.scandir(top):
        if entry.is_dir(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_mode & 0o005 == 0o005:
            yield Path(entry.path)
            if depth > 1:
                yield from _open_folders(Path(entry.path), depth - 1)


@lru_cache(maxsize=1)
def hidden(_moment: int) -> dict[str, list[str]]:
    """Paths that not everybody may read, below each folder that the job writes over as its owner, relative to it.

    Raises:
        NotLookedThrough: some of them are not known, so a job could read what is closed.
    """
    targets = list(_mapped().values())
    try:
        done = subprocess.run(  # noqa: S603 - our own words
            [*FIND, *targets, *CLOSED.split()], capture_output=True, timeout=LOOK_S, check=True
        )
    except (OSError, subprocess.SubprocessError) as exc:
        lines = os.fsdecode(getattr(exc, "stderr", None) or b"").splitlines()
        late = isinstance(exc, subprocess.TimeoutExpired)
        why = f"find > {LOOK_S:g} s" if late else (lines or [str(exc)])[0][:200]
        raise NotLookedThrough(wording.message("image.closed_unknown", node=settings.NODE, error=why)) from exc
    paths: dict[str, list[str]] = {target: [] for target in targets}
    for path in filter(None, done.stdout.split(b"\0")):
        text = os.fsdecode(path)
        target = next(each for each in targets if text == each or text.startswith(f"{each}/"))
        paths[target].append(os.path.relpath(text, target))
    return paths


def _hide(upper: Path, paths: list[str], uid: int) -> None:
    """Put a mark over each of these, by which an overlay takes it away.

    The job may have put anything into the layer: each step goes into a plain folder and through no link.
    """
    with trees.opened(upper) as top:
        for path in paths:
            *folders, name = os.fsencode(path).split(b"/")
            # where there is something already, it is hidden, or the job's own by now
            with suppress(OutsideRoot, NotADirectoryError, FileExistsError), _made(top, folders, uid) as folder:
                os.mknod(name, stat.S_IFCHR, 0, dir_fd=folder)


@contextmanager
def _made(top: int, folders: list[bytes], uid: int) -> Iterator[int]:
    """The folder at the end of these steps, missing ones made as the job's.

    Raises:
        OutsideRoot, NotADirectoryError: the job has something else there, which hides the machine's own.
    """
    here = os.dup(top)
    try:
        for name in folders:
            made = False
            with suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=here)
                made = True
            below = trees.open_folder(here, (name,))
            os.close(here)
            here = below
            if made:
                os.fchown(here, uid, uid)
        yield here
    finally:
        os.close(here)


@cache
def works() -> bool:
    """Whether jobs can have layers over this machine's own folders; found out by trying, once."""
    level, bwrap = tickets.tier()
    if os.geteuid() != 0 or not root_users.works(level, bwrap):
        return False
    uid = tiers.NOBODY
    with tempfile.TemporaryDirectory(dir=places.open_folder(places.local()), prefix=".try-") as folder:
        own = Path(folder)
        own.chmod(0o711)
        layer = _layer(own, "usr", "/usr", uid, mapped=True)
        probe = Ticket(
            job=0, attempt=0, argv=["/usr/bin/touch", "/usr/bin/aip-probe"], env={"PATH": "/usr/bin:/bin"}, cwd="/",
            tier=level, bwrap=bwrap, uid=uid, overlay={"system": [layer]}, root=root_users.ids(uid, 0),
        )  # fmt: skip
        return not tiers.trial(probe)
