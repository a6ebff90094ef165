"""`aip follow`, `aip arrays`, and the options by which a job follows others and is retried."""

from __future__ import annotations

import argparse
from typing import Any

from aiplatform.client.options import LIMIT, option, repeated
from aiplatform.client.output import columns
from aiplatform.client.verbs import Verb

COLUMNS = columns(
    "id, name, indices, owner, cluster, states=states|counts",
    counts=lambda states: ", ".join(f"{number} {state}" for state, number in sorted(states.items())),
)
ID = option("id", type=int)
PREDECESSORS = (
    repeated("--after", type=int, metavar="ID", help="a job that has to complete first"),
    repeated("--after-end", type=int, metavar="ID", help="a job that has to end first"),
    repeated("--outputs-of", type=int, metavar="ID", help="a job whose outputs it reads"),
)
OPTIONS = (
    *PREDECESSORS,
    option("--retries", type=int, metavar="N", help="start it again up to N times where it fails"),
    option(
        "--retry-pause", type=int, metavar="S", field="retry_pause_s",
        help="seconds before the first retry (30), then doubled",
    ),
)  # fmt: skip


def _describe(args: argparse.Namespace, row: Any) -> str:
    numbers = ", ".join(str(job["id"]) for job in row["follows"])
    return f"Job {args.id} follows {numbers} now." if numbers else f"Job {args.id} follows no job now."


NOUNS = {
    "follow": Verb("follow", "Let a waiting job follow these jobs, and no others.", (ID, *PREDECESSORS),
                   post="jobs/{id}/follow/", send={"after": [], "after_end": [], "outputs_of": []}, done=_describe),
    "arrays": (
        Verb("list", "List arrays, newest first.", (LIMIT,), get="arrays/", table=COLUMNS, empty="No arrays."),
        Verb("show", "Show one array.", (ID,), get="arrays/{id}/", record=COLUMNS),
        Verb("stop", "Stop all of its jobs that have not ended.", (ID,), post="arrays/{id}/stop/",
             done="Asked {row[requested]} jobs of array {args.id} to stop."),
    ),
}  # fmt: skip
