"""Start a program for the switches `-hint` and `-CloseDelay`: show a line for five seconds first, wait after its end.

Copied into a run that uses one of them. Standard library only; the program runs in this very
process, so signals and exit codes are its own.
"""

import os
import runpy
import signal
import sys
import time
from pathlib import Path
from typing import Any


def main() -> None:
    first = os.environ.get("RANK", "0") == "0"
    hint = os.environ.get("AIP_HINT", "")
    if first and hint:
        sys.stdout.write(f"{hint}\n")
        sys.stdout.flush()
    if hint:
        time.sleep(float(os.environ.get("AIP_HINT_S", "5")))
    target = sys.argv[1]
    signals = _signals()
    try:
        if target == "-m":
            sys.argv = sys.argv[2:]
            sys.path[0] = str(Path.cwd())
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        else:
            sys.argv = sys.argv[1:]
            sys.path[0] = str(Path(target).resolve().parent)
            runpy.run_path(target, run_name="__main__")
    finally:
        _wait(float(os.environ.get("AIP_CLOSE_DELAY_S", "0")), signals)


class _Ending(Exception):
    """A signal requested the end of the job."""


def _signals() -> int:
    """Return a pipe that gets the number of each signal that a handler of the program takes."""
    pipe, end = os.pipe()
    os.set_blocking(pipe, False)
    os.set_blocking(end, False)
    signal.set_wakeup_fd(end, warn_on_full_buffer=False)
    os.register_at_fork(after_in_child=lambda: signal.set_wakeup_fd(-1))
    return pipe


def _wait(seconds: float, signals: int) -> None:
    """Wait, unless the job was requested to end, before or meanwhile."""
    try:
        signal.signal(signal.SIGTERM, _end)
        if not _heard_term(signals):
            time.sleep(seconds)
    except _Ending:
        pass


def _end(*_signal: Any) -> None:
    raise _Ending


def _heard_term(pipe: int) -> bool:
    try:
        return signal.SIGTERM in os.read(pipe, 4096)
    except BlockingIOError:
        return False


if __name__ == "__main__":
    main()
