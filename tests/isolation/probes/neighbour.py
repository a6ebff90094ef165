"""A job that others are tried on: it leaves things where a job may leave them, says where, and waits."""

import contextlib
import json
import os
import signal
import socket

from tests.isolation.probes.aim import libc


def main(told):
    """Runs until it is killed."""
    about = json.loads(told)
    name = f"aip-{about['name']}"
    libc.shmget(about["key"], 8, 0o1600)
    listens = socket.socket(socket.AF_UNIX)
    listens.bind(f"\0{name}")
    listens.listen()
    left = {"temporary": f"/tmp/{name}", "shared": f"/dev/shm/{name}", "output": os.environ["RUN"] + "/outputs/data"}
    for path in left.values():
        with contextlib.suppress(OSError), open(path, "w") as file:
            file.write("canary")
    print(json.dumps(left), flush=True)
    signal.signal(signal.SIGTERM, lambda *_: None)
    while True:
        signal.pause()
