"""`python -I -S …/cuda_checkpoint.py evict|restore|probe LIBRARY`: a job's CUDA memory off its cards, and back on them.

A process of its own, started by the supervisor whose child it is: a driver that hangs or falls takes nobody along.
It acts on every CUDA process below its parent and answers in lines of JSON, of which the last says how it went.
Whatever it finds half done it goes on with, by what the driver says of each process, so it may be killed and started
again at any point.

The driver's part: https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__CHECKPOINT.html (driver 570 and later).
"""

import ctypes
import json
import os
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.realpath(__file__).rsplit("/", 3)[0])  # -I leaves nothing on the path but the stdlib

from workers.supervisor import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

LIBRARY = "libcuda.so.1"
RUNNING, LOCKED, CHECKPOINTED, FAILED = range(4)  # CUprocessState
LOCK_MS = 20_000  # how long a process may take to come to a place where it can be locked
_CALLS = ("GetState", "Lock", "Checkpoint", "Restore", "Unlock")
_ARGS_BYTES = 64  # every CUcheckpoint…Args has this size; zeros mean the defaults
_ROUNDS = 5  # of looking for further CUDA processes while those found are locked already


class Refused(Exception):
    """The driver, or what runs, does not allow it; the message says which call and why."""


class Half(Refused):
    """It was refused on the way, and the way back failed as well."""


class Driver:
    """The checkpoint calls of one CUDA driver.

    Args:
        library: name or path of the driver's library.
        start: whether to start the driver; without that nothing can be called.

    Raises:
        Refused: there is none, it is too old, or it does not start.
    """

    def __init__(self, library: str = LIBRARY, *, start: bool = True) -> None:
        try:
            self._cuda = ctypes.CDLL(library)
        except OSError as exc:
            raise Refused(f"no CUDA driver: {exc}") from exc
        missing = [call for call in _CALLS if not hasattr(self._cuda, f"cuCheckpointProcess{call}")]
        if missing:
            raise Refused(f"the driver has no cuCheckpointProcess{missing[0]}; it is older than 570")
        if start:
            self._check("cuInit", self._cuda.cuInit(0))

    def state(self, pid: int) -> "int | None":
        """Return RUNNING, LOCKED, CHECKPOINTED or FAILED; None for a process that does not use CUDA."""
        result = ctypes.c_int(-1)
        code = self._cuda.cuCheckpointProcessGetState(ctypes.c_int(pid), ctypes.byref(result))
        return result.value if code == 0 else None

    def lock(self, pid: int) -> None:
        """Hold every further CUDA call of the process; RUNNING becomes LOCKED."""
        args = (ctypes.c_uint * (_ARGS_BYTES // 4))(LOCK_MS)
        self._call("Lock", pid, args)

    def checkpoint(self, pid: int) -> None:
        """Wait for its work, copy its memory to the host and let the card go; LOCKED becomes CHECKPOINTED."""
        self._call("Checkpoint", pid)

    def restore(self, pid: int) -> None:
        """Bring its memory back onto the same card; CHECKPOINTED becomes LOCKED."""
        self._call("Restore", pid)

    def unlock(self, pid: int) -> None:
        """Let its CUDA calls go on; LOCKED becomes RUNNING."""
        self._call("Unlock", pid)

    def _call(self, name: str, pid: int, args: "ctypes.Array[ctypes.c_uint] | None" = None) -> None:
        call = getattr(self._cuda, f"cuCheckpointProcess{name}")
        zeros = (ctypes.c_uint * (_ARGS_BYTES // 4))()
        self._check(f"cuCheckpointProcess{name}", call(ctypes.c_int(pid), ctypes.byref(args or zeros)))

    def _check(self, call: str, code: int) -> None:
        if code:
            word = ctypes.c_char_p()
            self._cuda.cuGetErrorName(ctypes.c_int(code), ctypes.byref(word))
            raise Refused(f"{call} says {(word.value or b'error').decode()} ({code})")


def evict(driver: Driver, pids: "Callable[[], Iterable[int]]") -> int:
    """Move all CUDA processes of a tree off their cards, all or none; return how many.

    Every one is locked before the first is moved, so that none waits for work of another that is gone.

    Args:
        pids: the processes of the tree now; asked again after locking, as one may have started another.

    Raises:
        Refused: none uses CUDA, or one could not be moved; all are where they were.
        Half: and that could not be undone; `restore` may be tried again.
    """
    states: dict[int, int] = {}
    try:
        for _round in range(_ROUNDS):
            states = _states(driver, pids())
            new = [pid for pid, state in states.items() if state == RUNNING]
            if FAILED in states.values():
                raise Refused("a process failed in the driver before")
            for pid in new:
                driver.lock(pid)
            if not new:
                break
        else:
            raise Refused("it starts further CUDA processes all the time")
        if not states:
            raise Refused("none of its processes uses CUDA")
        for pid, state in states.items():
            if state == LOCKED:
                driver.checkpoint(pid)
    except Refused as exc:
        try:
            restore(driver, pids)
        except Refused as worse:
            raise Half(f"{exc}; and on the way back: {worse}") from exc
        raise
    return len(states)


def restore(driver: Driver, pids: "Callable[[], Iterable[int]]") -> int:
    """Bring all CUDA processes of a tree back onto their cards and let them go on; return how many.

    Raises:
        Refused: one could not be brought back. Calling again goes on where this ended.
    """
    for pid, state in _states(driver, pids()).items():
        if state == CHECKPOINTED:
            driver.restore(pid)
    states = _states(driver, pids())
    for pid, state in states.items():
        if state == FAILED:
            raise Refused(f"process {pid} failed in the driver")
        if state == LOCKED:
            driver.unlock(pid)
    return len(states)


def _states(driver: Driver, pids: "Iterable[int]") -> "dict[int, int]":
    """What the driver says of those that use CUDA, by pid."""
    states = {pid: driver.state(pid) for pid in processes.alive(pids)}
    return {pid: state for pid, state in states.items() if state is not None}


def main(argv: "list[str]") -> int:
    """Act on what runs below our parent, and say how it went: {"ok", "processes"} or {"ok", "why"}."""
    verb, library = argv[1:]
    parent, me = os.getppid(), os.getpid()

    def pids() -> "list[int]":
        return [pid for pid in processes.descendants(parent) if pid != me]

    try:
        driver = Driver(library, start=verb != "probe")
        if verb == "probe":
            print(json.dumps({"ok": True}))
            return 0
        print(json.dumps({"begun": verb}), flush=True)  # whoever finds only this knows that things may be half done
        count = {"evict": evict, "restore": restore}[verb](driver, pids)
        answer: dict[str, object] = {"ok": True, "processes": count}
    except Refused as exc:
        answer = {"ok": False, "why": str(exc), "half": isinstance(exc, Half)}
    print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
