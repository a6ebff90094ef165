"""Where the files lie in which a program reports: a bounded search, which remembers folders that rest."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from workers.jobs.output.reporting import csv_files, projector, sdk_media, trainer_state

ROOTS = ("outputs", "code")
"""Below the run directory: where a program's outputs go, and the folder it works in (`runs/` of SummaryWriter)."""
MAX_ENTRIES = 20_000
"""Names read in one search. A folder of more is looked at as far as that goes."""
MAX_FOLDERS = 2_000
MAX_FOUND = 300
MAX_DEPTH = 12
MAX_PATH_LENGTH = 400
RESTS_S = 2.0  # a folder that changed so lately may have changed again within the clock's step
OWN_EVENTS = ".aip"  # of presets, which say the same in metrics.jsonl
PACE = 20  # a search is made again after so many times what it took
SOONEST_S = 1.0


def reader_of(name: str) -> str:
    """Which reader a file of this name is for, "" for none."""
    if name == sdk_media.NAME:
        return "media"
    if "tfevents" in name and not name.endswith((".tmp", ".profile-empty", OWN_EVENTS)):
        return "events"
    if name == trainer_state.NAME:
        return "trainer_state"
    if name == projector.NAME:
        return "projector"
    if name.endswith(".jsonl"):
        return "lines"
    return "csv" if csv_files.NAMED.match(name) else ""


@dataclass
class _Folder:
    changed_ns: int
    folders: list[str]
    files: list[str]
    entries: int = 0


@dataclass
class Search:
    """The search of one attempt. It holds only caches: a restarted process searches once more."""

    root: Path
    since: float = 0.0  # unix time: files of the code that are older came with it
    clock: Callable[[], float] = time.monotonic
    more: bool = False  # there are folders or files that were not looked at
    settled: dict[str, str] = field(default_factory=dict)  # files that were read to their end, and how they were then
    last: str = ""  # the file that was read last
    _known: dict[str, _Folder] = field(default_factory=dict)
    _found: list[str] = field(default_factory=list)
    _next: float = float("-inf")

    def files(self, *, at_once: bool = False) -> list[str]:
        """Paths of files with a reader, relative to the run directory, at most 300 of them."""
        if not at_once and self.clock() < self._next:
            return self._found
        started_at = self.clock()
        before, self._known, self.more = self._known, {}, False
        paths: list[str] = []
        waiting = deque(ROOTS)
        entries = 0
        while waiting:
            path = waiting.popleft()
            folder = self._folder(path, before.get(path), MAX_ENTRIES - entries)
            if folder is None:
                continue
            if folder is not before.get(path):
                entries += folder.entries
            self._known[path] = folder
            paths += folder.files
            waiting.extend(folder.folders)
            if entries >= MAX_ENTRIES or len(self._known) >= MAX_FOLDERS:
                self.more = self.more or bool(waiting)
                break
        self.more = self.more or len(paths) > MAX_FOUND
        self._found = sorted(paths[:MAX_FOUND], key=lambda item: (reader_of(item.rpartition("/")[2]) != "media", item))
        self._next = started_at + max(SOONEST_S, PACE * (self.clock() - started_at))
        return self._found

    def _folder(self, path: str, cached: _Folder | None, limit: int) -> _Folder | None:
        """Scan one folder, or return the cached scan where it has not changed since."""
        try:
            changed_ns = (self.root / path).lstat().st_mtime_ns
            if cached and cached.changed_ns == changed_ns and time.time() - changed_ns / 1e9 > RESTS_S:
                return cached
            scanned = _Folder(changed_ns, [], [])
            with os.scandir(self.root / path) as listing:
                for count, entry in enumerate(listing):
                    if count >= limit:
                        self.more = True
                        break
                    self._add_entry(f"{path}/{entry.name}", entry, scanned)
        except (OSError, UnicodeError):
            return None
        return scanned

    def _add_entry(self, path: str, entry: os.DirEntry[str], into: _Folder) -> None:
        into.entries += 1
        if len(path) > MAX_PATH_LENGTH or not path.isprintable():
            return
        if entry.is_dir(follow_symlinks=False):
            if path.count("/") <= MAX_DEPTH and entry.name not in (".git", "__pycache__", "node_modules", ".venv"):
                into.folders.append(path)
        elif reader_of(entry.name) and entry.is_file(follow_symlinks=False) and self._is_new(path, entry):
            into.files.append(path)

    def _is_new(self, path: str, entry: os.DirEntry[str]) -> bool:
        """Whether this run wrote it: with its code may have come what an earlier one left."""
        return path.startswith("outputs/") or entry.stat(follow_symlinks=False).st_mtime >= self.since
