"""Tier 4: the command runs in a container that an engine makes and ends, kept by the same rules as a process.

Its first process is the engine's small init, which passes the command's end on. Everything below that is visible on
this machine, so looks, signals and memory go by process id as in the other tiers; pausing, the last kill and the
removal are the engine's. The command writes into the log itself: no stream runs through the engine, so that nothing
is lost or doubled when the engine or the supervisor goes away.
"""

import hashlib
import os
import resource
import select
import signal
import socket
import time

from workers.supervisor import exec_socket, handover, processes, records
from workers.supervisor.engine import Engine, Refused, Unanswered, is_cut
from workers.supervisor.handover import Handover
from workers.supervisor.ladder import ProcessPause
from workers.supervisor.sandbox import chown_writable
from workers.supervisor.ticket import Ticket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

LABEL = "aip"
SUPERVISOR_LABEL = "aip.supervisor"
#: What was installed beside the image comes before its own, whose PATH and PYTHONPATH only the image knows.
_FOUND = 'PATH="${AIP_PATH:+$AIP_PATH:}$PATH"; export PATH; '
_FOUND += '[ -z "$AIP_PYTHONPATH" ] || export PYTHONPATH="$AIP_PYTHONPATH${PYTHONPATH:+:$PYTHONPATH}"; '
_INTO_LOG = f'{_FOUND}log=$1; shift; exec "$@" >>"$log" 2>&1 </dev/null'
_SERVED = f'{_FOUND}log=$1; shift; exec >>"$log" 2>&1 </dev/null; {handover.ENTRY}'
_LOOK_S = 5.0  # between two questions whether it still runs, besides the kernel's word
_ENDS_S = 0.05  # once the kernel says that it ended
_OUTCOME_S = 120.0  # how long an engine that went away may take to come back and tell the exit code
_PERIOD_US = 100_000


def name(run: str) -> str:
    """The container's name: the same for the same run directory, so that no engine can run it twice at once."""
    return f"aip-{hashlib.sha256(os.fsencode(os.path.realpath(run))).hexdigest()[:24]}"


def describe(ticket: Ticket, run: str, claim: "dict[str, Any]") -> "dict[str, Any]":
    """Return the engine's request to create the container. Pure except for checks which paths exist.

    Args:
        claim: who keeps it, as in supervisor.json: a container whose supervisor is dead is removed by the agent.
    """
    settings = ticket.container
    read, write = ticket.paths()
    log = os.path.join(run, records.LOG)
    mounts = [_bind(path, write=False) for path in dict.fromkeys(read) if path not in write]
    mounts += [_bind(path, write=True) for path in dict.fromkeys([*write, log])]
    if ticket.tmp:
        mounts.append({**_bind(ticket.tmp, write=True), "Target": "/tmp"})
    if settings.get("packages"):
        mounts.append({**_bind(settings["packages"]["folder"], write=True), "Target": settings["packages"]["target"]})
    served = _served(ticket)
    if served:
        mounts.append(_bind(handover.place(ticket), write=False))
    host: dict[str, Any] = {
        "Init": True,
        "NetworkMode": _network(ticket),
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges"],
        "ReadonlyRootfs": not settings.get("writable"),  # what can be saved is written, the rest is a throw-away anyway
        "Privileged": False,
        "IpcMode": "private",
        "Mounts": mounts,
        "OomScoreAdj": 500,
        "LogConfig": {"Type": "none"},
        "RestartPolicy": {"Name": "no"},
        "Ulimits": _limits(ticket),
        "ShmSize": ticket.memory_bytes or _half_of_memory(),  # data loaders pass their batches there; 64 MB is usual
    }
    if not ticket.tmp:
        host["Tmpfs"] = {"/tmp": "rw,nosuid,nodev,mode=1777"}
    if ticket.memory_bytes:
        host |= {"Memory": ticket.memory_bytes, "MemorySwap": ticket.memory_bytes}
    if ticket.processes:
        host["PidsLimit"] = ticket.processes
    if ticket.cpus_most:
        host |= {"CpuPeriod": _PERIOD_US, "CpuQuota": int(ticket.cpus_most * _PERIOD_US)}
    if settings.get("userns"):
        host["UsernsMode"] = settings["userns"]
    host |= _cards(ticket)
    return {
        "Image": settings["image"],
        "User": settings["user"],
        "Entrypoint": ["/bin/sh", "-c", _SERVED if served else _INTO_LOG, "sh", log, *served],
        "Cmd": ticket.argv,
        "Env": [f"{key}={value}" for key, value in ticket.env.items()],
        "WorkingDir": ticket.cwd,
        "Labels": {
            LABEL: settings.get("root", ""),
            "aip.run": run,
            "aip.job": f"{ticket.job}/{ticket.attempt}/{ticket.rank}",
            SUPERVISOR_LABEL: supervisor_label(claim),
        },
        "Healthcheck": {"Test": ["NONE"]},
        "StopSignal": "SIGTERM",
        "Tty": False,
        "OpenStdin": False,
        "HostConfig": host,
    }


def _network(ticket: Ticket) -> str:
    return "none" if ticket.own_network else ticket.container.get("network", "none")


def _served(ticket: Ticket) -> list[str]:
    """What the entry needs to start the exec server; nothing for a job without one, or where it cannot be reached."""
    if not os.path.exists(handover.place(ticket)):
        return []
    network = f"own:{ticket.egress_socket}" if _network(ticket) == "none" else "shared"
    return [ticket.container.get("python", "python3"), exec_socket.SERVER, handover.place(ticket), network]


def _bind(path: str, *, write: bool) -> "dict[str, Any]":
    real = os.path.realpath(path)  # engines refuse a link as a source, or follow it later than we looked
    return {
        "Type": "bind", "Source": real, "Target": path, "ReadOnly": not write,
        "BindOptions": {"Propagation": "rprivate"},
    }  # fmt: skip


def _cards(ticket: Ticket) -> "dict[str, Any]":
    """The job's cards: by the engine's own way where it has one for NVIDIA, else their device files."""
    if not ticket.devices:
        return {}
    if ticket.container.get("cards") == "request":
        ids = [card for card in ticket.env.get("CUDA_VISIBLE_DEVICES", "").split(",") if card]
        return {"DeviceRequests": [{"Driver": "nvidia", "DeviceIDs": ids, "Capabilities": [["gpu"]]}]}
    files = [path for path in ticket.devices if os.path.exists(path)]
    return {
        "Devices": [{"PathOnHost": path, "PathInContainer": path, "CgroupPermissions": "rwm"} for path in files],
    }


def _limits(ticket: Ticket) -> "list[dict[str, Any]]":
    """The limits of this process, as in the other tiers: engines ask for more than some machines give."""
    limits = {"nofile": resource.getrlimit(resource.RLIMIT_NOFILE), "nproc": resource.getrlimit(resource.RLIMIT_NPROC)}
    limits |= {key.lower(): (value, value) for key, value in ticket.rlimits.items()}
    return [{"Name": key, "Soft": soft, "Hard": hard} for key, (soft, hard) in limits.items()]


def _half_of_memory() -> int:
    return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)


def supervisor_of(labels: "dict[str, str]") -> str:
    """Return what a container's labels say of its supervisor; those made before an upgrade use another name."""
    return labels.get(SUPERVISOR_LABEL) or labels.get("aip.keeper", "")


def supervisor_label(claim: "dict[str, Any]") -> str:
    """Who keeps a container, as its label says it."""
    return f"{claim['pid']} {claim['start_ticks']} {claim['boot_id']}"


def is_kept(label: str) -> bool:
    """Whether the supervisor that a container's label names still runs on this node."""
    try:
        pid, ticks, boot = label.split()
        claim: dict[str, object] = {"pid": int(pid), "start_ticks": int(ticks), "boot_id": boot}
    except ValueError:
        return False
    return records.is_alive(claim)


class Container:
    """One job's container, from its making to its removal."""

    def __init__(self, run: str, ticket: Ticket, claim: "dict[str, Any]") -> None:
        self.run, self.ticket, self.claim = run, ticket, claim
        self.name = name(run)
        self.engine = Engine(ticket.container["engine"])
        self.pid = 0  # of its first process, on this machine; 0 for one that ended at once
        self.ended_fd = -1  # readable once that has ended
        self.out_of_memory = False
        self.unknown = ""  # why nobody can say how it ended
        self.waits = False  # it ended, and the engine is away
        self._ended_since: float | None = None
        self._look_at = 0.0
        self._guard, self._guarded = 0, -1
        self._line: socket.socket | None = None
        self.handover: Handover | None = None  # of the exec server's socket

    def start(self, *, guarded: bool = True) -> None:
        """Make it and start it.

        Args:
            guarded: whether somebody stays behind who removes it when this process is killed.

        Raises:
            OSError: the engine refuses, or does not answer; nothing runs then.
        """
        if self.ticket.uid:
            chown_writable(self.ticket)
            os.chown(os.path.join(self.run, records.LOG), self.ticket.uid, -1)
        if guarded:
            self._start_guard()
        self.handover = Handover(self.ticket, self.run, os.path.join(self.run, records.LOG))
        try:
            self.engine.create(self.name, describe(self.ticket, self.run, self.claim))
            self._line = self.engine.listen(self.name)
            self.engine.start(self.name)
            state = self.engine.state(self.name)
        except OSError:
            self.remove()
            raise
        pid = int(state.get("Pid") or 0)
        if state.get("Running") and pid:
            try:
                self.ended_fd = os.pidfd_open(pid)
                self.pid = pid
            except ProcessLookupError:  # it ended while we asked
                self.pid = 0

    def _start_guard(self) -> None:
        """Fork a guard that removes the container when this supervisor is killed: none runs without a supervisor."""
        self_end, self._guarded = os.pipe2(os.O_CLOEXEC)
        self._guard = os.fork()
        if self._guard:
            os.close(self_end)
            return
        try:
            os.close(self._guarded)
            os.setsid()
            for number in (signal.SIGTERM, signal.SIGCHLD):
                signal.signal(number, signal.SIG_IGN)
            if not os.read(self_end, 1):
                self._give_up()
        finally:
            os._exit(0)

    def _give_up(self) -> None:
        """Runs in the guard: remove the container, for as long as an engine may take to come back."""
        deadline = time.monotonic() + _OUTCOME_S
        while time.monotonic() < deadline:
            try:
                self.engine.remove(self.name)
            except OSError:
                time.sleep(1)
            else:
                time.sleep(1)  # one whose making was under way when we asked appears only now
                self.engine.remove(self.name)
                return

    def pids(self) -> list[int]:
        """The job's processes, parents first, without the engine's init around them."""
        return processes.descendants(self.pid) if self.pid else []

    def send(self, pids: "Iterable[int]", number: signal.Signals) -> None:
        """Signal these processes; KILL is for the whole container, and the engine's to give."""
        pids = list(pids)
        if not pids:
            return
        if number is not signal.SIGKILL:
            processes.send(pids, number)
            return
        try:
            self.engine.kill(self.name, "SIGKILL")
        except OSError:
            processes.send([self.pid, *pids], number)

    @property
    def ends(self) -> bool:
        """Whether the kernel says that it ended, and the engine has yet to say how."""
        return self._ended_since is not None

    def waking(self) -> list[int]:
        """What becomes readable when the job ends, or its exec server asks; nothing once it ended."""
        if self.ends:
            return []
        return [*([self.ended_fd] if self.ended_fd >= 0 else []), *(self.handover.waking() if self.handover else [])]

    def code(self, now: float) -> int | None:
        """The exit code once it has ended, None before. A signal's is 128 + number, as bubblewrap's is.

        Args:
            now: monotonic seconds.
        """
        if self._ended_since is None and (not self.pid or _is_readable(self.ended_fd)):
            self._ended_since, self._look_at = now, now
        if now < self._look_at:
            return None
        self._look_at = now + (_LOOK_S if self._ended_since is None else _ENDS_S)
        try:
            state = self.engine.state(self.name)
        except Refused as exc:
            self.unknown = str(exc)
            return 255
        except Unanswered as exc:
            self.waits = self.ends
            return self._lost_code(now, str(exc))
        if state.get("Status") not in ("exited", "dead", "stopped"):
            return self._lost_code(now, f"the engine calls it {state.get('Status')}")
        self.out_of_memory = bool(state.get("OOMKilled"))
        return int(state.get("ExitCode", 255))

    def _lost_code(self, now: float, why: str) -> int | None:
        """Exit code of a container that ended long ago without an outcome from the engine."""
        if self._ended_since is None or now - self._ended_since < _OUTCOME_S:
            return None
        self.unknown = why
        return 255

    def was_deserted(self) -> bool:
        """Whether the engine that started it has ended: one that stops or restarts ends its containers."""
        return self._line is not None and is_cut(self._line)

    def remove(self) -> bool:
        """Remove it; False where the engine would not, and the agent's sweep has to."""
        try:
            self.engine.remove(self.name)
            gone = True
        except OSError:
            gone = False
        if self._guard:
            self._dismiss(gone=gone)
        if self._line:
            self._line.close()
        if self.handover:
            self.handover.close()
        if self.ended_fd >= 0:
            os.close(self.ended_fd)
            self.ended_fd = -1
        return gone

    def _dismiss(self, *, gone: bool) -> None:
        """Let the guard go; where the container could not be removed, it goes on trying."""
        try:
            os.write(self._guarded, b"." if gone else b"")
            if gone:
                os.waitpid(self._guard, 0)
        except (BrokenPipeError, ChildProcessError):
            pass  # somebody killed it: there is nothing to guard any more
        os.close(self._guarded)
        self._guard = 0

    def is_visible(self) -> bool:
        """Whether its first process is one of this machine's, as it is not for an engine behind a virtual machine."""
        try:
            fields = records.text(f"/proc/{self.pid}/status").split("NSpid:")[1].splitlines()[0].split()
        except (OSError, IndexError):
            return False
        return len(fields) > 1 and fields[-1] == "1"


class ContainerPause(ProcessPause):
    """Stops the whole container at once, memory kept; by signals as elsewhere where the engine cannot."""

    def __init__(self, box: Container, pids: "Callable[[], list[int]]") -> None:
        super().__init__(pids)
        self.box = box
        self.by_signals = self.paused = False

    def pause(self) -> bool:
        """Pause it; True once it is paused."""
        if self.by_signals:
            return super().pause()
        if not self.paused:
            try:
                self.box.engine.pause(self.box.name)
                self.paused = True
            except Unanswered:
                return False
            except Refused:
                self.paused = self._stands()
                self.by_signals = not self.paused
        return self.paused

    def _stands(self) -> bool:
        try:
            return bool(self.box.engine.state(self.box.name).get("Paused"))
        except OSError:
            return False

    def resume(self) -> bool:
        """Resume it; False where the engine did not answer and the call must be repeated."""
        if self.paused:
            try:
                self.box.engine.unpause(self.box.name)
            except Unanswered:
                return False
            except Refused:
                if self._stands():
                    return False
            self.paused = False
        return super().resume()


def _is_readable(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], 0)[0])
