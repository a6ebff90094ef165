"""A web process that begins to accept connections when a file is there (AIP_TEST_GO); SIGTERM ends it."""

import os
import select
import socket
import time
from pathlib import Path

listener = socket.socket(fileno=int(os.environ["AIP_LISTENER_FD"]))
go = Path(os.environ["AIP_TEST_GO"])
if not go.exists():
    print(f"{os.getpid()} has not begun to accept", flush=True)
while not go.exists():
    time.sleep(0.01)
poll = select.epoll()
poll.register(listener.fileno(), select.EPOLLIN)
while True:
    poll.poll()
