"""Scripts of other people's style, unchanged, as trainings with own code: `python -m tests.bench.scripts [style …]`.

Starts a platform on a throw-away folder, sends each folder of tests/foreign by the API as *New training* does, waits,
and prints what the platform showed without a change to the script: state, seconds from start to end, exit code, device,
points of curves (of its own; of the machine), checkpoints that it can restore from, output files, and of one that
failed the likely cause. Ends with 1 where a job did not end, print or leave what its table says. The one that installs
keras into its own folder needs a package index; `--offline` leaves it out.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from aiplatform.cli.demo.main_job import connect
from aiplatform.client import tus, waiting, working_folder
from aiplatform.client.http import Client
from tests.foreign import STYLES, Style
from tests.journeys.up import first_admin, running
from tests.running import printed_in

CPUS = 1.0
INDEX = ("PIP_CERT", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "HTTPS_PROXY")
"""What pip needs here to reach its index: jobs get it as variables, as people would fill them in."""
COLUMNS = ("style", "state", "seconds", "exit", "device", "own points", "machine's", "restorable", "files")


@dataclass(frozen=True)
class Ran:
    """What the platform says of one script's job once it is over."""

    style: Style
    row: dict[str, Any]
    exit_code: int | None
    keys: list[str]
    points: dict[str, int]
    checkpoints: int
    files: list[str]
    log: str
    causes: list[str]

    @property
    def seconds(self) -> float:
        """From the start of its process to the end, without the wait for a place."""
        began, ended = (datetime.fromisoformat(self.row[name]) for name in ("started_at", "ended_at"))
        return (ended - began).total_seconds()

    def wrong(self) -> list[str]:
        """What differs from the table of styles; a sentence each."""
        style, found = self.style, []
        if self.row["state"] != style.state:
            found.append(f"{style.name} ended as {self.row['state']}, not {style.state}: {self.row['sentence']}")
        if (self.exit_code == 0) != (style.state == "succeeded"):
            found.append(f"{style.name} ended with exit code {self.exit_code}")
        if style.prints not in self.log:
            found.append(f"{style.name} did not print {style.prints!r}: {self.log[-2000:]}")
        found += [f"{style.name} left no {name}: {self.files}" for name in style.leaves if name not in self.files]
        return found

    def cells(self) -> tuple[str, ...]:
        """One line of the table, see COLUMNS."""
        own = sum(count for key, count in self.points.items() if not key.startswith("system/"))
        cards = self.row["gpus_per_node"]
        return (
            self.style.name, self.row["state"], f"{self.seconds:.1f}", str(self.exit_code),
            f"{cards} GPU" if cards else "CPU", str(own), str(sum(self.points.values()) - own),
            str(self.checkpoints), str(len(self.files)),
        )  # fmt: skip


def run(client: Client, style: Style, **more: object) -> Ran:
    """Send a script with its form, wait until its job is over, and ask the platform what it saw.

    Args:
        more: further fields of the request, such as `extra`.
    """
    upload = tus.upload(client, working_folder.pack(style.code), quiet=True)
    fields = {"name": style.name, "cpus": CPUS, **style.request, **more, "code_upload": upload}
    if style.needs_index:
        fields["variables"] = {name: os.environ[name] for name in INDEX if name in os.environ}
    made = client.post("training/jobs/", fields, once=True)
    route = f"training/jobs/{made['id']}/"
    row = waiting.until_over(client, route, every_s=0.25, quiet=True)
    curves = client.get(f"{route}metrics/")
    return Ran(
        style=style,
        row=row,
        exit_code=client.get(f"jobs/{row['job']}/")["exit_code"],
        keys=curves["keys"],
        points={key: len(points) for key, points in curves["series"].items()},
        checkpoints=len(_rows(client.get(f"{route}checkpoints/"))),
        files=[one["path"] for one in _rows(client.get(f"{route}files/"))],
        log=printed_in(client.get(f"{route}log/", tail=65_536)["text"]),
        causes=[one["sentence"] for one in _rows(client.get(f"jobs/{row['job']}/causes/"))],
    )


def _rows(answer: Any) -> list[Any]:
    return answer["results"] if isinstance(answer, dict) else answer


def main() -> int:
    """Run those that are named, or all, one after another; print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("styles", nargs="*", choices=[[], *(style.name for style in STYLES)])
    parser.add_argument("--offline", action="store_true", help="leave out what loads from a package index")
    asked = parser.parse_args()
    chosen = [style for style in STYLES if not asked.styles or style.name in asked.styles]
    chosen = [style for style in chosen if not (asked.offline and style.needs_index)]
    wrong: list[str] = []
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {CPUS:g} core for each job")
    print("{:<13}{:<11}{:>8}{:>6}{:>8}{:>12}{:>11}{:>12}{:>7}".format(*COLUMNS))
    with tempfile.TemporaryDirectory(prefix="scripts-bench-") as scratch, running(Path(scratch) / "platform") as up:
        client = connect(up.url, first_admin(up))
        for style in chosen:
            ran = run(client, style)
            print("{:<13}{:<11}{:>8}{:>6}{:>8}{:>12}{:>11}{:>12}{:>7}".format(*ran.cells()), flush=True)
            if style.state == "failed":
                last = next((line for line in reversed(ran.log.splitlines()) if line.strip()), "")
                print(f"    said by it: {last}\n    said of it: {ran.row['sentence']} {' '.join(ran.causes)}")
            wrong += ran.wrong()
    print(*wrong, sep="\n", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
