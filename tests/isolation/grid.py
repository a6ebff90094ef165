"""Runs the probes as a job in one setting, and draws the grid of all settings."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path

from tests.isolation import ground
from tests.isolation.ground import MEMORY_BYTES, PROCESSES, ROOT, Ground, Setting
from tests.isolation.probes import run as probes
from workers.supervisor import records, sandbox, tiers

PAGE = ROOT / "aiplatform/docs/isolation.md"
NAMES = {0: "0 plain", 1: "1 Landlock", 2: "2 bubblewrap", 3: "3 own uid, cgroups", 4: "4 container"}
BEGIN, END = "<!-- grid: written by python -m tests.isolation -->", "<!-- end of grid -->"


def name(setting: Setting) -> str:
    """The setting as a column of the page is headed."""
    return f"{NAMES[setting.tier]}{', root inside' if setting.root_inside else ''}{'' if setting.is_root else ' *'}"


@cache
def offered() -> list[Setting]:
    """What this machine can try: all tiers of a platform that is root, and of one that is an ordinary user."""
    found = []
    if os.geteuid() == 0:
        best = tiers.best_tier(at_most=sandbox.OWN_UID)[0]
        found = [Setting(tier, True) for tier in range(best + 1)]
        found += [Setting(best, True, root_inside=True)] if best >= sandbox.BUBBLEWRAP else []
        if ground.containers():
            found.append(Setting(sandbox.CONTAINER, True))
    with tempfile.TemporaryDirectory(prefix="aip-isolation-") as folder:
        here = Ground(Path(folder), Setting(0, False))
        here.make()
        best = ground.best_for_ordinary_user(here)
    found += [Setting(tier, False) for tier in range(best + 1)]
    return found + ([Setting(best, False, root_inside=True)] if best >= sandbox.BUBBLEWRAP else [])


def run(setting: Setting) -> dict[str, str]:
    """What each probe found: possible or refused."""
    with tempfile.TemporaryDirectory(prefix="aip-isolation-") as folder:
        here = Ground(Path(folder), setting)
        aims = here.make()
        with ground.neighbours(here) as jobs, ground.listeners(here.folder, setting.platform_uid) as sockets:
            return _tried(here, aims | jobs | sockets)


def _tried(here: Ground, aims: dict[str, object]) -> dict[str, str]:
    sleep_s = 86_000 + here.setting.tier * 100 + os.getpid() % 100
    job = here.job("run", ["run", "targets.json"])
    aims |= {"run": str(job.path), "input": str(job.path / "input/data"), "sleep": sleep_s}
    records.write(job.path / "code/targets.json", aims | {"processes": PROCESSES, "memory_bytes": MEMORY_BYTES})
    (job.path / "code/targets.json").chmod(0o644)
    job.start()
    record = job.wait()
    found = dict(line["found"] for line in job.said() if "found" in line)
    begun = [line["tries"] for line in job.said() if "tries" in line]
    if begun and begun[-1] not in found and record["limit"] == "memory":
        found[begun[-1]] = "refused"  # the kernel ended the job by its bound
    left = ground.sleeping(sleep_s)
    ground.end_sleepers(left)
    found["outlive_the_job"] = "possible" if left else "refused"
    missing = {probe.__name__ for probe in probes.PROBES} - found.keys()
    assert not missing, (missing, record, job.lines()[-5:])
    return found


def drawn(found: dict[Setting, dict[str, str]]) -> str:
    """The grid in Markdown: a table for each subject, a row for each probe."""
    parts = []
    for subject, tried in probes.SUBJECTS.items():
        parts += [
            f"### {subject}",
            _row("a job tries to …", [name(setting) for setting in found]),
            "|---" * (len(found) + 1) + "|",
        ]
        parts += [
            _row(_words(probe.__name__), [found[setting][probe.__name__] for setting in found]) for probe in tried
        ]
        parts.append("")
    refused = [str(sum(answer == "refused" for answer in answers.values())) for answers in found.values()]
    parts += [f"### In all\n{_row('', [name(setting) for setting in found])}", "|---" * (len(found) + 1) + "|"]
    parts.append(_row(f"**refused of {len(probes.PROBES)}**", [f"**{count}**" for count in refused]))
    return "\n".join(parts)


def _row(first: str, cells: list[str]) -> str:
    return f"| {first} | {' | '.join(cells)} |"


def _words(probe: str) -> str:
    return probe.replace("_", " ")


def published() -> dict[str, dict[str, str]]:
    """Answers of the page by column and probe."""
    found: dict[str, dict[str, str]] = {}
    columns: list[str] = []
    for line in PAGE.read_text().partition(BEGIN)[2].partition(END)[0].splitlines():
        first, *cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if first in ("a job tries to …", ""):
            columns = cells
        for column, cell in zip(columns, cells, strict=False):
            if cell in ("possible", "refused"):
                found.setdefault(column, {})[first.replace(" ", "_")] = cell
    return found
