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

COLUMNS = columns("id, kind, name, state, owner, cluster, position, reason=wait_sentence")
FIELDS = [
    *titled(COLUMNS),
    *columns("Expected start=eta|ago, Nodes=nodes, GPUs per node=gpus_per_node"),
    *output.PROGRESS,
    *columns("Created=created_at|ago, Message=sentence"),
]
WAITING = columns(
    "position, id=number, kind, name=name|name, owner, cluster, request=asks_for, priority=|priority, "
    "reason=sentence, expected start=eta|ago",
    name=lambda name: name or "–",
    priority=lambda row: "urgent" if row["urgent"] else row["priority"],
)
NUMBER = option("id", type=int)
FORCE = flag("--force", field="", help="kill it immediately; for cluster administrators")
LOG = (
    ID,
    flag("-f", "--follow", help="follow until the job ends"),
    option("--tail", type=int, metavar="BYTES", help="start this many bytes before the end"),
    repeated("--phase", choices=log_lines.PHASES, default=[], help="only lines of this phase"),
    option("--rank", type=int, default=0, metavar="N", help="of node N of a distributed job, from 0"),
    option("--process", type=int, default=-1, metavar="RANK", help="only lines of the process of this rank"),
)
STEERED = {
    "pause": "Pause a job: memory is kept, computation is suspended.",
    "continue": "Resume a paused job.",
    "suspend": "Suspend a job: save a checkpoint and release its GPUs until it is resumed.",
    "finish": "Finish a job early and keep the result.",
    "restore": "Requeue a job from its newest checkpoint.",
}


def force_stop(client: Client, job: int | str) -> Any:
    """Request the forced end of a job; `sentence` of the response describes the result."""
    return client.post(f"jobs/{job}/force-stop/")


def print_log(args: argparse.Namespace, route: str) -> None:
    """Print the log at `route` as the options of LOG say."""
    which = {"rank": args.rank, "phases": args.phase, "process": args.process}
    waiting.follow_log(args.client, route, follow=args.follow, tail_bytes=args.tail, **which)


def _print_queue(args: argparse.Namespace, queue: Any) -> None:
    output.table(queue["waiting"], WAITING, empty="No queued jobs.")
    if queue["total"] > len(queue["waiting"]):
        output.say(f"{queue['total']} queued in total.")


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
    done(args, args.client.post(f"jobs/{args.id}/stop/"), f"Requested a stop of job {args.id}.")


def _describe_dataset(args: argparse.Namespace, row: Any) -> str:
    return f"Dataset {output.clean(row['dataset_name'])} ({row['dataset']}) is imported from job {args.id}."


NOUNS = {
    "queue": Verb("queue", "List queued jobs of your clusters: position, reason, expected start.", (
        option("--cluster", find=lookup.cluster, help="only this cluster: id or name"),
        flag("--mine", default=None, help="only your own jobs"),
    ), get="jobs/queue/", show=_print_queue),
    "priority": Verb("priority", "Change the priority of a queued job.", (
        ID,
        option("priority", convert=resources.priority, help="0 to 99, a higher priority starts first; or: urgent"),
    ), post="jobs/{id}/priority/", done="Job {args.id} has priority {args.priority} now."),
    "jobs": (
        Verb("list", "List jobs, newest first.", (
            option("--state", help="only jobs in this state"),
            option("--kind", help="only jobs of this kind"),
            option("--cluster", find=lookup.cluster, help="only jobs of this cluster: name or id"),
            option("-q", "--search", help="only jobs whose name contains this text"),
            LIMIT,
        ), get="jobs/", table=COLUMNS, empty="No jobs."),
        Verb("show", "Show one job.", (ID,), get="jobs/{id}/", record=FIELDS),
        Verb("logs", "Print the log of a job.", LOG, run=_print_log),
        Verb("files", "List the outputs of a job.", (NUMBER,),
             get="jobs/{id}/files/", table=outputs.COLUMNS, empty="No outputs yet."),
        Verb("download", "Download the outputs of a job; interrupted downloads resume.", (
            NUMBER,
            option("--to", type=Path, metavar="FOLDER", help="target folder; default: ./aip-outputs/ID"),
        ), run=_download),
        Verb("causes", "List likely causes of the failure of a job.", (NUMBER,),
             get="jobs/{id}/causes/", table=columns("cause=sentence, line"), empty="No known cause."),
        Verb("device-errors", "List device errors of a job.", (NUMBER,), get="jobs/{id}/device-errors/",
             table=columns("at=at|ago, node, device=card, code, text"), empty="No errors."),
        media.MEDIA,
        Verb("dataset", "Create a dataset from the outputs of a job.", (
            option("id", type=int, field="job"),
            option("name", nargs="?", default="", help="default: that of the job"),
            option("--folder", default="", help="folder of its outputs; default: all"),
        ), post="training/outputs/", once=True, done=_describe_dataset),
        Verb("wait", "Wait for a job; exit code 0 if it completed, otherwise 6.", (ID,), run=_wait),
        Verb("stop", "Stop a job immediately.", (ID, FORCE), run=_stop),
        *(
            Verb(name, help, (ID,), post=f"jobs/{{id}}/{name}/", done=f"Requested to {name} job {{args.id}}.")
            for name, help in STEERED.items()
        ),
        Verb("stop-many", "Stop many jobs of any user; for administrators.",
             (option("id", nargs="+", type=int, field="jobs"),),
             post="jobs/stop/", once=True,
             done=lambda args, row: f"Requested a stop of {len(row['requested'])}; {row['over']} had ended."),
    ),
}  # fmt: skip
