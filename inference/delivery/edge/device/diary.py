"""The last lines of the agent and of its model: on the disk, so that they survive a crash."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from pathlib import Path

from .durable import write

MAX_BYTES = 64 << 10
AT_ONCE = 16 << 10  # in a report
A_DAY = 256 << 10  # that are sent
LONGEST = 500  # characters of a line


class Diary:
    """Numbered lines; a number is the time in ms since 1970, increased where the clock stops or goes back."""

    def __init__(self, path: Path) -> None:
        self.path, self.lock = path, threading.Lock()
        self.lines: deque[tuple[int, str]] = deque()
        self.bytes = self.last = 0
        self.day, self.sent_today = 0, 0
        with contextlib.suppress(OSError):
            for line in path.read_text("utf-8", errors="replace").splitlines():
                number, tab, text = line.partition("\t")
                if tab and number.isdecimal() and len(number) < 16:  # a line that a power cut tore is none
                    self._append(int(number), text)

    def add(self, text: str) -> None:
        """Add a line; errors of the disk are ignored."""
        line_text = " ".join(text.split())[:LONGEST]
        if not line_text:
            return
        with self.lock, contextlib.suppress(OSError):
            self._append(max(self.last + 1, time.time_ns() // 1_000_000), line_text)
            if self.path.exists() and self.path.stat().st_size > 2 * MAX_BYTES:
                write(self.path, "".join(f"{number}\t{line}\n" for number, line in self.lines).encode())
            else:
                with self.path.open("a", encoding="utf-8") as out:
                    out.write(f"{self.last}\t{line_text}\n")

    def _append(self, number: int, text: str) -> None:
        self.lines.append((number, text))
        self.last = max(self.last, number)
        self.bytes += len(text.encode())
        while self.bytes > MAX_BYTES:
            self.bytes -= len(self.lines.popleft()[1].encode())

    def lines_after(self, last_sent: int) -> list[tuple[int, str]]:
        """Return the next lines to send, oldest first; none once the daily limit is used up."""
        today = int(time.time()) // 86_400
        if today != self.day:
            self.day, self.sent_today = today, 0
        lines: list[tuple[int, str]] = []
        room = min(AT_ONCE, A_DAY - self.sent_today)
        with self.lock:
            for number, text in self.lines:
                if number > last_sent:
                    room -= len(text.encode())
                    if room < 0:
                        break
                    lines.append((number, text))
        return lines

    def sent(self, lines: list[tuple[int, str]]) -> None:
        """Count sent lines against the daily limit."""
        self.sent_today += sum(len(text.encode()) for _number, text in lines)
