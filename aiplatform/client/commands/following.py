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
    repeated("--after", type=int, metavar="ID", help="a job that must complete first"),
    repeated("--after-end", type=int, metavar="ID", help="a job that must end first"),
    repeated("--outputs-of", type=int, metavar="ID", help="a job whose outputs are read"),
)
OPTIONS = (
    *PREDECESSORS,
    option("--retries", type=int, metavar="N", help="retry up to N times after a failure"),
    option(
        "--retry-pause", type=int, metavar="S", field="retry_pause_s",
        help="seconds before the first retry (30), then doubled",
    ),
)  # fmt: skip


def _describe(args: argparse.Namespace, row: Any) -> str:
    numbers = ", ".join(str(job["id"]) for job in row["follows"])
    return f"Job {args.id} depends on {numbers} now." if numbers else f"Job {args.id} has no dependencies now."


NOUNS = {
    "follow": Verb("follow", "Set the dependencies of a queued job.", (ID, *PREDECESSORS),
                   post="jobs/{id}/follow/", send={"after": [], "after_end": [], "outputs_of": []}, done=_describe),
    "arrays": (
        Verb("list", "List arrays, newest first.", (LIMIT,), get="arrays/", table=COLUMNS, empty="No arrays."),
        Verb("show", "Show one array.", (ID,), get="arrays/{id}/", record=COLUMNS),
        Verb("stop", "Stop all running and queued jobs of an array.", (ID,), post="arrays/{id}/stop/",
             done="Requested a stop of {row[requested]} jobs of array {args.id}."),
    ),
}  # fmt: skip
