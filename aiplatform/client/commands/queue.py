"""`aip queue`, `aip jobs`: running and waiting jobs of every kind."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from aiplatform.client import log_lines, output, waiting
from aiplatform.client.commands import lookup, media, outputs, resources
from aiplatform.client.http import Client
from aiplatform.client.options import ID, LIMIT, flag, option, repeated
from aiplatform.client.output import columns, titled
from aiplatform.client.verbs import Verb, done

COLUMNS = columns("id, kind, name, state, owner, cluster, place=position, why it waits=wait_sentence")
FIELDS = [
    *titled(COLUMNS),
    *columns("Starts about=eta|ago, Nodes=nodes, Cards per node=gpus_per_node"),
    *output.PROGRESS,
    *columns("Made=created_at|ago, What happened=sentence"),
]
WAITING = columns(
    "place=position, id=number, kind, name=name|name, owner, cluster, asks for=asks_for, priority=|priority, "
    "why it waits=sentence, starts about=eta|ago",
    name=lambda name: name or "–",
    priority=lambda row: "urgent" if row["urgent"] else row["priority"],
)
NUMBER = option("id", type=int)
FORCE = flag("--force", field="", help="kill it at once; for those in charge")
LOG = (
    ID,
    flag("-f", "--follow", help="go on until the job ends"),
    option("--tail", type=int, metavar="BYTES", help="begin this many bytes before the end"),
    repeated("--phase", choices=log_lines.PHASES, default=[], help="only lines of this phase"),
    option("--rank", type=int, default=0, metavar="N", help="of machine N of a job on several, from 0"),
    option("--process", type=int, default=-1, metavar="RANK", help="only lines of the process of this rank"),
)
STEERED = {
    "pause": "Pause it: memory is kept, computing stops.",
    "continue": "Let a paused job go on.",
    "suspend": "Save and give its cards back; it waits until it is continued.",
    "finish": "End it now and keep the result.",
    "restore": "Queue it again from its newest checkpoint.",
}


def force_stop(client: Client, job: int | str) -> Any:
    """Request the forced end of a job; `sentence` of the response describes the result."""
    return client.post(f"jobs/{job}/force-stop/")


def print_log(args: argparse.Namespace, route: str) -> None:
    """Print the log at `route` as the options of LOG say."""
    which = {"rank": args.rank, "phases": args.phase, "process": args.process}
    waiting.follow_log(args.client, route, follow=args.follow, tail_bytes=args.tail, **which)


def _print_queue(args: argparse.Namespace, queue: Any) -> None:
    output.table(queue["waiting"], WAITING, empty="Nothing waits.")
    if queue["total"] > len(queue["waiting"]):
        output.say(f"{queue['total']} wait in all.")


def _print_log(args: argparse.Namespace) -> None:
    print_log(args, f"jobs/{args.id}/log/")


def _download(args: argparse.Namespace) -> None:
    folder = args.to or outputs.folder_of(args.id)
    done(args, {"folder": str(folder)}, outputs.bring_back(args.client, args.id, folder, quiet=args.json))


def _wait(args: argparse.Namespace) -> int:
    row = waiting.until_over(args.client, f"jobs/{args.id}/")
    if args.json:
        output.as_json(row)
    return waiting.exit_code(row)


def _stop(args: argparse.Namespace) -> None:
    if args.force:
        row = force_stop(args.client, args.id)
        done(args, row, row["sentence"])
        return
    done(args, args.client.post(f"jobs/{args.id}/stop/"), f"Asked to stop job {args.id}.")


def _describe_dataset(args: argparse.Namespace, row: Any) -> str:
    return f"Dataset {output.clean(row['dataset_name'])} ({row['dataset']}) is imported from job {args.id}."


NOUNS = {
    "queue": Verb("queue", "What waits in your clusters: place, reason, about when it starts.", (
        option("--cluster", find=lookup.cluster, help="only this cluster: id or name"),
        flag("--mine", default=None, help="only your own jobs"),
    ), get="jobs/queue/", show=_print_queue),
    "priority": Verb("priority", "Give a waiting job another priority.", (
        ID,
        option("priority", convert=resources.priority, help="0 to 99, a higher one starts first; or: urgent"),
    ), post="jobs/{id}/priority/", done="Job {args.id} has priority {args.priority} now."),
    "jobs": (
        Verb("list", "List jobs, newest first.", (
            option("--state", help="only jobs in this state"),
            option("--kind", help="only jobs of this kind"),
            option("--cluster", find=lookup.cluster, help="only jobs of this cluster: name or id"),
            option("-q", "--search", help="only jobs whose name contains this"),
            LIMIT,
        ), get="jobs/", table=COLUMNS, empty="No jobs."),
        Verb("show", "Show one job.", (ID,), get="jobs/{id}/", record=FIELDS),
        Verb("logs", "Print a job's log.", LOG, run=_print_log),
        Verb("files", "List what a job gave back.", (NUMBER,),
             get="jobs/{id}/files/", table=outputs.COLUMNS, empty="No outputs yet."),
        Verb("download", "Fetch what a job gave back; a download that was cut goes on.", (
            NUMBER,
            option("--to", type=Path, metavar="FOLDER", help="where it goes; ./aip-outputs/ID when left out"),
        ), run=_download),
        Verb("causes", "List likely causes of the failure of a job.", (NUMBER,),
             get="jobs/{id}/causes/", table=columns("cause=sentence, line"), empty="No cause is known."),
        Verb("device-errors", "List errors of the devices that a job used.", (NUMBER,), get="jobs/{id}/device-errors/",
             table=columns("at=at|ago, node, device=card, code, text"), empty="No errors."),
        media.MEDIA,
        Verb("dataset", "Make a dataset of what a job gave back.", (
            option("id", type=int, field="job"),
            option("name", nargs="?", default="", help="that of the job when left out"),
            option("--folder", default="", help="of its outputs; all of them when left out"),
        ), post="training/outputs/", once=True, done=_describe_dataset),
        Verb("wait", "Wait for a job; leaves with 0 when it ended well and 6 when not.", (ID,), run=_wait),
        Verb("stop", "End it at once.", (ID, FORCE), run=_stop),
        *(
            Verb(name, help, (ID,), post=f"jobs/{{id}}/{name}/", done=f"Asked to {name} job {{args.id}}.")
            for name, help in STEERED.items()
        ),
        Verb("stop-many", "End many at once, whoever they belong to; for administrators.",
             (option("id", nargs="+", type=int, field="jobs"),),
             post="jobs/stop/", once=True,
             done=lambda args, row: f"Asked to stop {len(row['requested'])}; {row['over']} had ended."),
    ),
}  # fmt: skip
