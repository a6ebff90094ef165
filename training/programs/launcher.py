"""Start the processes of a command on one machine and tell each its place among all of them.

Runs inside the job, from the run directory, as `python launch.py layout.json`; standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

GRACE_S = 15.0
"""How long the others have after TERM once one of them failed."""
LOOK_S = 0.05
READ_S = 1.0
UNENDED_S = 1.0
"""So long the begin of a line waits for its end, then it is shown as it is."""
CHUNK = 65536
_ENDS = re.compile(rb"(?<=\n)|(?<=\r)(?!\n)")  # of lines, and of the states of a progress bar
WAIT_S = 0.5
SHELLS = ("sh", "bash", "dash")
STARTED_BY_THE_FIRST = ("mpi", "first")
"""Here the first machine starts whatever runs on the others, by `aip-rsh`; those wait until it is over."""


def main(layout_file: str) -> int:
    """Become the only process of this node, or start several and exit with the first failure's code."""
    layout = json.loads(Path(layout_file).read_text(encoding="utf-8"))
    rank = int(os.environ.get("AIP_NODE_RANK", "0"))
    argv = layout["worker"] if rank and layout["worker"] else layout["argv"]
    node_env = machine_environment(layout, rank)
    if rank and layout["launcher"] in STARTED_BY_THE_FIRST:
        return _wait(Path(layout["over"]))
    if layout["launcher"] == "first":
        return _become(argv, node_env)
    if layout["launcher"] == "mpi":
        return _become([*mpirun(layout), *argv], node_env)
    if layout["launcher"] == "torchrun":
        with contextlib.suppress(FileNotFoundError):  # none is installed, or its own Python is elsewhere
            _become(["torchrun", *torchrun(layout, rank), *argv], node_env)
        return _become([sys.executable, "-m", "torch.distributed.run", *torchrun(layout, rank), *argv], node_env)
    if layout["processes"] == 1:
        return _become(argv, node_env | place(layout, rank, 0))
    every = [os.environ | node_env | part for part in _places(layout, rank)]
    started = [
        subprocess.Popen(argv, env=process_env, process_group=0, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # noqa: S603 - the person's own
        for process_env in every
    ]
    readers = _marked(started, [process_env["RANK"] for process_env in every])
    code = _look_after(started)
    for reader in readers:
        reader.join(READ_S)  # what a process left in the background may hold its output open
        if reader.is_alive():
            reader.finish()
    return code


def _marked(processes: list[subprocess.Popen[bytes]], ranks: list[str]) -> list[_Reader]:
    """Pass on what the processes print, each line with the rank of its process before it, as PyTorch marks its own."""
    log = _Log()
    readers = [
        _Reader(process.stdout.fileno(), f"[rank{rank}]:".encode(), log)
        for process, rank in zip(processes, ranks, strict=True)
        if process.stdout is not None
    ]
    for reader in readers:
        reader.start()
    return readers


class _Log:
    """Output of several processes in one file; a line continued after another process's output is marked again."""

    def __init__(self) -> None:
        self.whole = threading.RLock()
        self.unended = b""  # the mark of the process that began the last line, while that has no end

    def write(self, pieces: list[bytes], mark: bytes) -> None:
        """Write lines of one process; the last may be the begin of one."""
        with self.whole:
            parts = []
            for piece in pieces:
                if self.unended != mark:
                    parts += [b"\n"] if self.unended else []
                    parts += [] if piece.startswith(mark) else [mark, b" "]
                parts.append(piece)
                self.unended = b"" if piece.endswith((b"\n", b"\r")) else mark
            data = b"".join(parts)
            with contextlib.suppress(OSError):  # of a full disk: the processes go on, as they would without a log
                while data:
                    data = data[os.write(1, data) :]

    def end(self, mark: bytes) -> None:
        """End the line that a process left without an end."""
        with self.whole:
            if self.unended == mark:
                self.write([b"\n"], mark)


class _Reader(threading.Thread):
    """Reads what one process prints, and passes it on by lines; what stays without an end does not wait for it."""

    def __init__(self, source: int, mark: bytes, log: _Log) -> None:
        super().__init__(daemon=True)
        self.source, self.mark, self.log, self.begun = source, mark, log, b""

    def run(self) -> None:
        """Read until no process has the pipe open any more."""
        while True:
            if self.begun and not select.select([self.source], [], [], UNENDED_S)[0]:
                self._flush()
            elif data := os.read(self.source, CHUNK):
                self._came(data)
            else:
                return self.finish()

    def _came(self, data: bytes) -> None:
        with self.log.whole:
            *lines, self.begun = _ENDS.split(self.begun + data)
            if len(self.begun) >= CHUNK:
                lines, self.begun = [*lines, self.begun + b"\n"], b""
            self.log.write(lines, self.mark)

    def _flush(self) -> None:
        with self.log.whole:
            begun, self.begun = self.begun, b""
            self.log.write([begun] if begun else [], self.mark)

    def finish(self) -> None:
        """Pass on what has no end, and end it."""
        self._flush()
        self.log.end(self.mark)


def machine_environment(layout: dict[str, Any], rank: int) -> dict[str, str]:
    """Return the variables of all processes of this node: the rendezvous address and the other nodes."""
    nodes = layout["nodes"]
    variables = {
        "MASTER_ADDR": nodes[0]["address"],
        "MASTER_PORT": str(nodes[0]["port"]),
        "NODE_RANK": str(rank),
        "NNODES": str(len(nodes)),
        "AIP_PROCESSES": str(layout["processes"]),
    }
    if len(nodes) > 1:
        workers = [f"{node['address']}:{node['port']}" for node in nodes]
        task = {"type": "worker", "index": rank}
        variables["TF_CONFIG"] = json.dumps({"cluster": {"worker": workers}, "task": task})
    return variables


def place(layout: dict[str, Any], rank: int, local: int) -> dict[str, str]:
    """The place of one process, in the words that launchers agree on."""
    each = layout["processes"]
    return {
        "RANK": str(rank * each + local),
        "LOCAL_RANK": str(local),
        "GROUP_RANK": str(rank),
        "WORLD_SIZE": str(len(layout["nodes"]) * each),
        "LOCAL_WORLD_SIZE": str(each),
    }


def torchrun(layout: dict[str, Any], rank: int) -> list[str]:
    """The options of torchrun, which then starts the processes."""
    nodes = layout["nodes"]
    return [
        f"--nnodes={len(nodes)}",
        f"--node-rank={rank}",
        f"--nproc-per-node={layout['processes']}",
        f"--master-addr={nodes[0]['address']}",
        f"--master-port={nodes[0]['port']}",
        "--no-python",
    ]


def mpirun(layout: dict[str, Any]) -> list[str]:
    """The mpirun that the job finds, and its options; Open MPI and the family of MPICH read different host files.

    A program that is not there is named by the error of starting it.
    """
    total = str(len(layout["nodes"]) * layout["processes"])
    try:
        done = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=False)  # noqa: S607 - the job's own
        is_mpich = any(name in done.stdout for name in ("HYDRA", "MPICH", "Intel"))
    except OSError:
        is_mpich = False
    files = ["-f", layout["machinefile"]] if is_mpich else ["--hostfile", layout["hostfile"]]
    return ["mpirun", *files, "-np", total]


def _wait(over: Path) -> int:
    """Wait until the first node's part is over; what it starts here runs in parallel."""
    while not over.exists():
        time.sleep(WAIT_S)
    return 0


def _places(layout: dict[str, Any], rank: int) -> Iterator[dict[str, str]]:
    return (place(layout, rank, local) for local in range(layout["processes"]))


def _become(argv: list[str], variables: dict[str, str]) -> NoReturn:
    os.execvpe(argv[0], argv, os.environ | variables)  # noqa: S606 - the person's own command, in their sandbox


def _look_after(processes: list[subprocess.Popen[bytes]]) -> int:
    """Wait for all processes; once one fails, or the job is requested to end, end the others."""
    signals: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: signals.append(number))
    failed, deadline = 0, 0.0
    while None in (states := [process.poll() for process in processes]):
        codes = [code for code in states if code]
        failed = failed or (codes[0] if codes else 0)
        if (failed or signals) and not deadline:
            deadline = time.monotonic() + GRACE_S
            _send(processes, signal.SIGTERM)
        if deadline and time.monotonic() > deadline and not signals:
            _send(processes, signal.SIGKILL)
        time.sleep(LOOK_S)
    failed = failed or next((process.returncode for process in processes if process.returncode), 0)
    return failed if failed >= 0 else 128 - failed


def _send(processes: list[subprocess.Popen[bytes]], number: int) -> None:
    """Signal each process with all that it started; TERM passes over shells, which end with what they run."""
    for process in processes:
        programs = _programs(process.pid) if number == signal.SIGTERM else []
        with contextlib.suppress(ProcessLookupError, PermissionError):
            for pid in programs:
                os.kill(pid, number)
            if not programs:
                os.killpg(process.pid, number)


def _programs(group: int) -> list[int]:
    """Return the processes of a group that are not shells."""
    pids = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            name, _bracket, rest = (folder / "stat").read_text().partition("(")[2].rpartition(")")
            if int(rest.split()[2]) == group and name not in SHELLS:
                pids.append(int(folder.name))
    return pids


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
