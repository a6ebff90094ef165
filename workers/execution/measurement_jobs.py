"""Measurement jobs: programs that run as jobs do, below a supervisor and in the node's sandbox, without a job row.

Proofs and measurements on GPUs use them, so that device files, visible devices, limits and signals are those of jobs.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from workers.core.models import Device
from workers.execution import job_users, supervisors, tickets
from workers.resources.nodes.telemetry.probe import Card
from workers.supervisor import processes, records, sandbox, tiers
from workers.supervisor.ticket import Ticket

OWNER = 0
"""No user has this id: the user of the programs is made of it."""
POLL_S = 0.02
END_S = 10.0


class Failed(Exception):
    """The program did not start, or did not do what was expected; the message says what."""


class MeasurementJob:
    """A program on GPUs of this node. The constructor starts it.

    Args:
        path: its run directory, which does not exist yet. Below AIP_DATA_ROOT, the node's agent counts the program
            as one of the platform's.
        devices: GPUs that it may open; none: it runs on the CPU.
        env: variables beside those that every job has.
        max_runtime_s: when its supervisor ends it, also where the process that measures was killed.
        fields: of the ticket, in place of those made here.

    Raises:
        Failed: the supervisor did not start.
    """

    def __init__(
        self,
        path: Path,
        argv: Sequence[str],
        devices: Sequence[Card],
        *,
        env: Mapping[str, str] | None = None,
        read_only: Sequence[Path] = (),
        read_write: Sequence[Path] = (),
        max_runtime_s: float | None = None,
        **fields: Any,
    ) -> None:
        self.path = path
        for name in ("code", "inputs", "outputs", "tmp"):
            (path / name).mkdir(parents=True, exist_ok=True)
        level, bwrap = tickets.tier()
        environ = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            **dict.fromkeys(("HOME", "TMPDIR"), "/tmp" if level >= sandbox.BUBBLEWRAP else str(path / "tmp")),  # noqa: S108 - the job's own
            **dict.fromkeys(("USER", "LOGNAME"), tickets.JOB_USER),
            "LANG": "C.UTF-8",
            "CUDA_VISIBLE_DEVICES": ",".join(device.uuid or str(device.index) for device in devices),
            "AIP_OUTPUT_DIR": str(path / "outputs"),
            "AIP_CONTROL_FILE": str(path / records.CONTROL),
            "PYTHONUNBUFFERED": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        ticket = Ticket(
            job=0, attempt=0, argv=list(argv), env=environ | dict(env or {}), cwd=str(path / "code"), tier=level,
            bwrap=bwrap, tmp=str(path / "tmp"), uid=job_user(level),
            read_only=[*map(str, tiers.python_folders()), str(path), *map(str, read_only)],
            read_write=[str(path / name) for name in ("code", "outputs")] + [*map(str, read_write)],
            devices=tickets.device_files([device_row(device) for device in devices]),
            max_runtime_s=max_runtime_s, **fields,
        )  # fmt: skip
        records.write(path / records.LAUNCH, ticket.to_json())
        try:
            supervisors.start(path)
        except (supervisors.NoAnswer, supervisors.NoRoom, supervisors.SupervisorFailed) as exc:
            raise Failed(f"the supervisor did not start: {exc}") from exc

    def request(self, word: str) -> None:
        """Request `pause`, `run`, `suspend`, `evict`, `stop` or `kill`."""
        records.write_request(self.path, word)

    def status(self) -> dict[str, Any]:
        """What its supervisor says of its processes now."""
        return records.read(self.path / records.STATUS) or {}

    def log(self) -> str:
        """What it printed so far; "" before its first line."""
        try:
            return (self.path / records.LOG).read_text(errors="replace")
        except OSError:
            return ""

    def has_ended(self) -> bool:
        return (self.path / records.EXIT).exists()

    def exit_code(self) -> int | None:
        """Its exit code; None while it runs, and where a signal ended it."""
        return (records.read(self.path / records.EXIT) or {}).get("code")

    def wait_for(self, condition: Callable[[], Any], problem: str, limit_s: float) -> None:
        """Wait until `condition` holds.

        Raises:
            Failed: it ended before, or the time is over; `problem` and the end of its log say more.
        """
        deadline = time.monotonic() + limit_s
        while not condition():
            if self.has_ended() or time.monotonic() > deadline:
                if condition():
                    return
                raise Failed(f"{problem}: {self.log()[-300:]}")
            time.sleep(POLL_S)

    def wait_for_line(self, word: str, limit_s: float) -> list[str]:
        """Wait for a line that begins with `word`; returns its other words.

        Raises:
            Failed: it ended without one, or the time is over.
        """
        results: list[list[str]] = []

        def is_there() -> bool:
            complete = self.log().rpartition("\n")[0]
            results[:] = [line.split()[1:] for line in complete.splitlines() if line.split()[:1] == [word]]
            return bool(results)

        self.wait_for(is_there, f"the program did not print {word}", limit_s)
        return results[-1]

    def wait(self, limit_s: float, *, code: int = 0) -> None:
        """Wait for its end.

        Raises:
            Failed: it did not end in time, or with another exit code.
        """
        self.wait_for(self.has_ended, "the program does not end", limit_s)
        if self.exit_code() != code:
            raise Failed(f"a program ended with {self.exit_code()}, not {code}: {self.log()[-300:]}")

    def supervisor_pid(self) -> int | None:
        return running_supervisor(self.path)

    def kill(self) -> None:
        """End it at once, with all its processes."""
        end(self.path)


def job_user(tier: int) -> int:
    """The user of the programs: one of jobs' where the sandbox lets it get to its files, else the platform's own."""
    return job_users.uid_of(OWNER) if tier >= sandbox.BUBBLEWRAP else 0


def device_row(card: Card) -> Device:
    """A GPU as a row that is never saved, as tickets read it."""
    return Device(kind=Device.Kind.GPU, index=card.index, uuid=card.uuid, memory_mib=card.memory_mib)


def running_supervisor(path: Path) -> int | None:
    """The process id of the supervisor of a run directory; None where it has ended or never began."""
    record = records.read(path / records.SUPERVISOR)
    return int(record["pid"]) if record and records.is_alive(record) else None


def end(path: Path) -> None:
    """Kill the supervisor of a run directory and everything below it, and wait until all have ended."""
    deadline = time.monotonic() + END_S
    while (pid := running_supervisor(path)) is not None and time.monotonic() < deadline:
        processes.send([*processes.descendants(pid), pid], signal.SIGKILL)
        time.sleep(POLL_S)


def end_all(folder: Path) -> int:
    """End every measurement job whose run directory is beneath a folder; returns how many still ran."""
    running = [path.parent for path in folder.rglob(records.SUPERVISOR) if running_supervisor(path.parent) is not None]
    for path in running:
        end(path)
    return len(running)
