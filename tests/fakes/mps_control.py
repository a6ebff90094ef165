"""A stand-in for `nvidia-cuda-mps-control`: daemon, control socket, process id file, and the tables it prints.

`install` writes it to a folder as a program of that name. Beside it lie `calls` (a JSON line for each start, with user
and variables, and for each word the daemon was told), `clients` (lines "PID CARD" for `ps`), and `fails`: what it says
instead of starting.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

NAME = "nvidia-cuda-mps-control"

_SOURCE = """
import json, os, socket, sys
here, pipe = os.path.dirname(os.path.abspath(__file__)), os.environ["CUDA_MPS_PIPE_DIRECTORY"]
place = os.path.join(pipe, "control")

def note(**about):
    with open(os.path.join(here, "calls"), "a") as file:
        file.write(json.dumps(about) + "\\n")

def answer(word):
    if word == "ps":
        rows = open(os.path.join(here, "clients")).read().split("\\n")
        cells = [row.split() for row in rows if row.strip()]
        head = "PID       ID    SERVER    DEVICE    NAMESPACE    COMMAND"
        return "\\n".join([head, *(f"{pid} 1 77 {card} 4026531836 python" for pid, card in cells)])
    return "77" if word == "get_server_list" else ""

def serve():
    if os.path.exists(place):
        os.unlink(place)
    door = socket.socket(socket.AF_UNIX)
    door.bind(place)
    door.listen()
    with open(os.path.join(pipe, "nvidia-cuda-mps-control.pid"), "w") as file:
        file.write(str(os.getpid()))
    while True:
        asked, _ = door.accept()
        word = asked.recv(200).decode().strip()
        note(told=word)
        if word == "quit":
            return
        asked.sendall(answer(word).encode())
        asked.close()

if sys.argv[1:] == ["-d"]:
    note(started=True, uid=os.geteuid(), shm=os.listdir("/dev/shm"), env=dict(os.environ))
    if os.path.exists(os.path.join(here, "fails")):
        sys.exit(open(os.path.join(here, "fails")).read())
    if os.fork() == 0:
        os.setsid()
        serve()
else:
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(place)
        link.sendall(sys.stdin.read().encode())
        link.shutdown(socket.SHUT_WR)
        print(link.recv(1 << 16).decode())
"""


class FakeControl:
    """The program in a folder that every user may enter."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.chmod(0o755)
        program = folder / NAME
        program.write_text(f"#!{Path(sys.executable).resolve()} -IS\n{_SOURCE}")
        program.chmod(0o755)
        for name in ("calls", "clients"):
            (folder / name).touch()
            (folder / name).chmod(0o666)

    def calls(self) -> list[dict]:
        return [json.loads(line) for line in (self.folder / "calls").read_text().splitlines()]

    def starts(self) -> list[dict]:
        return [call for call in self.calls() if call.get("started")]

    def clients(self, *rows: tuple[int, str]) -> None:
        """Let `ps` name these programs: process id and card."""
        (self.folder / "clients").write_text("".join(f"{pid} {card}\n" for pid, card in rows))

    def fails(self, words: str) -> None:
        (self.folder / "fails").write_text(words)
