"""The job of a chaos run: says by itself when it ran and what it printed. Standard library only.

    python witness.py LINES PAUSE_S EXIT_CODE [HABIT]

Every process writes its own witness file, so that a second run of the same attempt shows as a second file.
A line is printed first and witnessed after: the log may hold one line more than the witness, never fewer.
HABIT is how it misbehaves; see `HABITS`.
"""

import ctypes
import json
import os
import signal
import sys
import time
import uuid
from pathlib import Path

PTRACE_ATTACH = 16
FLOOD_BYTES = 6 << 20


def main() -> int:
    lines, pause_s, code = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    before, halfway, after = HABITS[sys.argv[4]] if len(sys.argv) > 4 else (None, None, None)
    out = Path(os.environ["AIP_OUTPUT_DIR"]) / f"witness-{uuid.uuid4().hex}.jsonl"
    job, attempt = int(os.environ["AIP_JOB_ID"]), int(os.environ["AIP_ATTEMPT"])

    def tell(event: str, **more: int) -> None:
        at = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        row = {"job": job, "attempt": attempt, "event": event, "at": at, **more}
        os.write(witness, (json.dumps(row) + "\n").encode())

    witness = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)
    tell("start")
    if before:
        before()
    for number in range(1, lines + 1):
        os.write(1, f"line {number:06d} of job {job} attempt {attempt}\n".encode())
        tell("line", line=number)
        if halfway and number == lines // 2:
            halfway()
        time.sleep(pause_s)
    tell("stop")
    if after:
        after()
    return code


def ignore_term() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def leave_daemons() -> None:
    """Two processes that hold on to nothing of their parent, one deaf, each in a session of its own."""
    for deaf in (False, True):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                if deaf:
                    ignore_term()
                _sleep_for_ever()
            os._exit(0)
        os.wait()


def flood() -> None:
    block = b"x" * 99 + b"\n"
    for _part in range(FLOOD_BYTES // len(block) // 100):
        os.write(1, block * 100)


def stand_still() -> None:
    """Stop a child, and then the process itself: nobody inside will ever wake it."""
    child = os.fork()
    if child == 0:
        _sleep_for_ever()
    os.kill(child, signal.SIGSTOP)
    os.kill(os.getpid(), signal.SIGSTOP)


def hold_the_first() -> None:
    """Attach to the first process of the sandbox, which stands still from then on, and never let go.

    Where there is no process namespace the first process is not the job's to touch.
    """
    if "bwrap" not in Path("/proc/1/comm").read_text():
        return
    if os.fork() == 0:
        ctypes.CDLL(None, use_errno=True).ptrace(PTRACE_ATTACH, 1, None, None)
        _sleep_for_ever()


def _sleep_for_ever() -> None:
    while True:
        time.sleep(60)


#: Name → what is done before the first line, in the middle, after the last line.
HABITS = {
    "good": (None, None, None),
    "deaf": (ignore_term, None, None),
    "daemons": (leave_daemons, None, None),
    "flood": (None, None, flood),
    "still": (None, stand_still, None),
    "tracer": (None, hold_the_first, None),
}
#: These never end by themselves: somebody has to stop them.
STUCK = frozenset({"still", "tracer"})


if __name__ == "__main__":
    sys.exit(main())
