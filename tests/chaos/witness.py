"""The job of a chaos run: says by itself when it ran and what it printed. Standard library only.

    python witness.py LINES PAUSE_S EXIT_CODE

Every process writes its own witness file, so that a second run of the same attempt shows as a second file.
A line is printed first and witnessed after: the log may hold one line more than the witness, never fewer.
"""

import json
import os
import sys
import time
import uuid
from pathlib import Path


def main() -> int:
    lines, pause_s, code = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    out = Path(os.environ["AIP_OUTPUT_DIR"]) / f"witness-{uuid.uuid4().hex}.jsonl"
    job, attempt = int(os.environ["AIP_JOB_ID"]), int(os.environ["AIP_ATTEMPT"])

    def tell(event: str, **more: int) -> None:
        at = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        row = {"job": job, "attempt": attempt, "event": event, "at": at, **more}
        os.write(witness, (json.dumps(row) + "\n").encode())

    witness = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)
    tell("start")
    for number in range(1, lines + 1):
        os.write(1, f"line {number:06d} of job {job} attempt {attempt}\n".encode())
        tell("line", line=number)
        time.sleep(pause_s)
    tell("stop")
    return code


if __name__ == "__main__":
    sys.exit(main())
