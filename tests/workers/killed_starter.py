"""`python -I -S killed_starter.py MAIN RUN STEP WHOM`: start a supervisor, and be killed at a step of that.

Steps are calls of the kernel by whoever makes them, starter or supervisor, counted from 0. `WHOM` is "process" for the
starter alone, or "group" for all that did not leave it yet, as a restart of its Celery worker does.
"""

import os
import runpy
import signal
import sys

CALLS = ("pipe", "fork", "setsid", "chdir", "open", "read", "write", "fsync", "replace", "dup2", "close")


def main(program: str, run: str, step: int, whom: str) -> None:
    starter, left = os.getpid(), [step]

    def watched(call):
        def counted(*args, **named):
            if left[0] == 0 and starter in (os.getpid(), os.getppid()):  # else it has ended by itself
                (os.killpg if whom == "group" else os.kill)(starter, signal.SIGKILL)
            left[0] -= 1
            return call(*args, **named)

        return counted

    for name in CALLS:
        setattr(os, name, watched(getattr(os, name)))
    sys.argv = [program, run]
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
