"""Tell the platform's own lines of a log from what the program printed."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Mapping

CODES: Mapping[str, Mapping[str, str]] = {
    "environment": {
        "attempt": "number", "retry": "number most", "machine": "node rank nodes devices", "sandbox": "tier",
        "resumes": "checkpoint", "not_limited": "", "not_reachable": "why",
    },
    "network": {"own": "", "own_with_proxy": "", "host": "", "port": "port", "meeting": "address port"},
    "variables": {"given": "number secret"},
    "image": {
        "platform": "", "container": "name", "fetching": "name done total", "layer": "number of bytes seconds",
        "engine": "layers", "packages": "",
    },
    "command": {"line": "argv", "not_started": "program why"},
    "program": {
        "exited": "code seconds", "signalled": "signal seconds", "over_time": "seconds",
        "over_memory": "limit_bytes held_bytes", "over_disk": "limit_bytes used_bytes",
        "disk_was_full": "seconds", "cut": "bytes", "stays_on_cards": "why", "stranded": "why",
        "withheld": "", "engine_away": "", "engine_restarted": "", "engine_silent": "", "unknown_end": "why",
        "lost": "", "again": "seconds number most", "starts_again": "seconds",
    },
}  # fmt: skip
"""By phase and code: the facts of a line in their order, as the platform writes them. Whatever else begins with a
phase in brackets, a program printed."""
PHASES = tuple(CODES)
# how programs that start several processes mark whose line it is: the platform and PyTorch, torchrun, mpirun
_PROCESS = re.compile(r"\[(?:rank(\d+)\]:|default(\d+)\]:|\d+,(\d+)\]<(?:stdout|stderr)>:)")
_OWN = re.compile(r'\[([a-z]+)\] ([a-z_]+)((?: [a-z_]+=(?:"(?:[^"\\]|\\.)*"|[^\s"]+))*)\Z')
_CURSOR = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-ln-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*\x1b\\|[^\[\]PX^_])")
_FACT = re.compile(r' ([a-z_]+)=(?:"(?:[^"\\]|\\.)*"|[^\s"]+)')


def phase_of(line: str) -> str:
    """Return the phase of a line of the platform's own, "" for what a program printed."""
    match = _OWN.match(line) if line.startswith("[") else None
    if match is None:
        return ""
    phase, code, facts = match.groups()
    return phase if CODES.get(phase, {}).get(code) == " ".join(_FACT.findall(facts)) else ""


def process_of(line: str) -> int:
    """Return the rank of the process that a line says it comes from, -1 where it says nothing."""
    match = _PROCESS.match(line)
    return int(next(filter(None, match.groups()))) if match else -1


def without_cursor(text: str) -> str:
    """Return a text without what clears a terminal, moves its cursor or sets its title; colors stay.

    Sequences of ECMA-48: control sequences other than SGR, operating system commands, and single escapes.
    """
    return _CURSOR.sub("", text)


class Printer:
    """Prints a log that comes in pieces cut anywhere.

    Args:
        phases: which phases to print, all of them where there are none.
        apart: print the platform's own lines to stderr, so that stdout has what the program printed and no more.
        process: print only lines of the process of this rank; -1 is all lines.
    """

    def __init__(self, phases: Collection[str] = (), *, apart: bool = False, process: int = -1) -> None:
        self.phases, self.apart, self.process = phases, apart, process
        self.processes: set[int] = set()  # that lines came from, of one that is asked for by its rank
        self._begun = ""  # a line without its end

    def add(self, text: str) -> None:
        """Print what is known of the lines by now. What cannot be a line of the platform's own does not wait."""
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            self._print(line + "\n")
        if self._begun and not self._begun.startswith("["):
            self.end()

    def end(self) -> None:
        """Print the last line as it stands."""
        begun, self._begun = self._begun, ""
        if begun:
            self._print(begun)

    def missing(self) -> str:
        """Say that no line came from the process that was asked for; "" where some did, or all were asked for."""
        if self.process < 0 or self.process in self.processes:
            return ""
        there = ", ".join(str(each) for each in sorted(self.processes - {-1}))
        if not there:
            return f"No line was printed by process {self.process}, and no line names a process: remove --process."
        return f"No line was printed by process {self.process}. Lines exist of {there}."

    def _print(self, text: str) -> None:
        phase = phase_of(text.rstrip("\n"))
        if self.process >= 0:
            self.processes.add(own := process_of(text))
            if own != self.process:
                return
        if self.phases and (phase or PHASES[-1]) not in self.phases:
            return
        stream = sys.stderr if phase and self.apart else sys.stdout
        stream.write(without_cursor(text) if stream.isatty() else text)
        stream.flush()
