"""What an MPS daemon says of its clients, read from the tables it prints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Program:
    """A program that computes through a daemon. `card` is a prefix of its GPU's unique id; "" where unknown."""

    pid: int
    card: str = ""

    def is_on(self, uuid: str) -> bool:
        """Whether it computes on this card, or may."""
        return not self.card or uuid.startswith(self.card)


def listed(ask: Callable[..., str | None]) -> list[Program] | None:
    """The clients of a daemon; None where it does not answer.

    `ps` names the card of each; a daemon that does not know it is asked for the lists of its servers and their clients.

    Args:
        ask: sends words to the daemon and returns its answer, None where there is none.
    """
    table = ask("ps")
    if table is None:
        return None
    heading, *rows = table.splitlines() or [""]
    columns = heading.split()
    if "PID" in columns and "DEVICE" in columns:
        pid, card = columns.index("PID"), columns.index("DEVICE")
        cells = [row.split() for row in rows]
        return [Program(int(row[pid]), row[card]) for row in cells if len(row) > card and row[pid].isdecimal()]
    servers = _numbers(ask("get_server_list"))
    return [Program(number) for server in servers for number in _numbers(ask("get_client_list", str(server)))]


def _numbers(output: str | None) -> list[int]:
    return [int(word) for word in (output or "").split() if word.isascii() and word.isdecimal()]
