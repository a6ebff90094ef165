"""Start a program for the switches `-hint` and `-CloseDelay`: show a line for five seconds first, wait after its end.

Copied into a run that uses one of them. Standard library only; the program runs in this very
process, so signals and exit codes are its own.
"""

import os
import runpy
import sys
import time
from pathlib import Path


def main() -> None:
    first = os.environ.get("RANK", "0") == "0"
    hint = os.environ.get("AIP_HINT", "")
    if first and hint:
        sys.stdout.write(f"{hint}\n")
        sys.stdout.flush()
    if hint:
        time.sleep(float(os.environ.get("AIP_HINT_S", "5")))
    target = sys.argv[1]
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
        time.sleep(float(os.environ.get("AIP_CLOSE_DELAY_S", "0")))


if __name__ == "__main__":
    main()
