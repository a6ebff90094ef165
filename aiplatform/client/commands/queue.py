"""`aip queue`, `aip jobs`: running and waiting jobs of every kind."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from aiplatform.client import log_lines, output, waiting
from aiplatform.client.commands import lookup, media, outputs, resources
from aiplatform.client.commands.verbs import Noun, Nouns, Parent, command, done, paging, show_list, show_one
from aiplatform.client.http import Client
from aiplatform.client.output import Column

COLUMNS: list[Column] = [
    ("id", "id"),
    ("kind", "kind"),
    ("name", "name"),
    ("state", "state"),
    ("owner", "owner"),
    ("cluster", "cluster"),
    ("place", "position"),
    ("why it waits", "wait_sentence"),
]
FIELDS: list[Column] = [
    *((heading.capitalize(), source) for heading, source in COLUMNS),
    ("Starts about", lambda row: output.ago(row.get("eta"))),
    ("Nodes", "nodes"),
    ("Cards per node", "gpus_per_node"),
    *output.PROGRESS,
    ("Made", lambda row: output.ago(row.get("created_at"))),
    ("What happened", "sentence"),
]


WAITING: list[Column] = [
    ("place", "position"),
    ("id", "number"),
    ("kind", "kind"),
    ("name", lambda row: row["name"] or "–"),
    ("owner", "owner"),
    ("cluster", "cluster"),
    ("asks for", "asks_for"),
    ("priority", lambda row: "urgent" if row["urgent"] else row["priority"]),
    ("why it waits", "sentence"),
    ("starts about", lambda row: output.ago(row["eta"])),
]


def add(nouns: Nouns, parent: Parent) -> None:
    verb = command(nouns, parent, "queue", queue, "What waits in your clusters: place, reason, about when it starts.")
    verb.add_argument("--cluster", help="only this cluster: id or name")
    verb.add_argument("--mine", action="store_true", help="only your own jobs")
    verb = command(nouns, parent, "priority", priority, "Give a waiting job another priority.")
    verb.add_argument("id")
    verb.add_argument("priority", help="0 to 99, a higher one starts first; or: urgent")
    jobs = Noun(nouns, parent, "jobs", "Jobs of every kind.")
    verb = jobs.verb("list", job_list, "List jobs, newest first.")
    verb.add_argument("--state", help="only jobs in this state")
    verb.add_argument("--kind", help="only jobs of this kind")
    verb.add_argument("--cluster", help="only jobs of this cluster: name or id")
    verb.add_argument("-q", "--search", help="only jobs whose name contains this")
    paging(verb)
    jobs.verb("show", show, "Show one job.").add_argument("id")
    logs(jobs.verb("logs", job_logs, "Print a job's log."))
    jobs.verb("files", files, "List what a job gave back.").add_argument("id", type=int)
    verb = jobs.verb("download", fetch, "Fetch what a job gave back; a download that was cut goes on.")
    verb.add_argument("id", type=int)
    verb.add_argument("--to", type=Path, metavar="FOLDER", help="where it goes; ./aip-outputs/ID when left out")
    media.add(jobs)
    verb = jobs.verb("dataset", dataset, "Make a dataset of what a job gave back.")
    verb.add_argument("id", type=int)
    verb.add_argument("name", nargs="?", default="", help="that of the job when left out")
    verb.add_argument("--folder", default="", help="of its outputs; all of them when left out")
    verb = jobs.verb("wait", wait, "Wait for a job; leaves with 0 when it ended well and 6 when not.")
    verb.add_argument("id")
    for name, sentence in (
        ("pause", "Pause it: memory is kept, computing stops."),
        ("continue", "Let a paused job go on."),
        ("suspend", "Save and give its cards back; it waits until it is continued."),
        ("stop", "End it at once."),
        ("finish", "End it now and keep the result."),
        ("restore", "Queue it again from its newest checkpoint."),
    ):
        verb = jobs.verb(name, steer, sentence)
        verb.add_argument("id")
        if name == "stop":
            force_option(verb)
    verb = jobs.verb("stop-many", stop_many, "End many at once, whoever they belong to; for administrators.")
    verb.add_argument("id", nargs="+", type=int)


def force_option(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--force", action="store_true", help="kill it at once; for those in charge")


def force_stop(client: Client, job: int | str) -> Any:
    """Ask for the forced end of a job; its `sentence` says what comes of that."""
    return client.post(f"jobs/{job}/force-stop/")


def logs(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("id")
    verb.add_argument("-f", "--follow", action="store_true", help="go on until the job ends")
    verb.add_argument("--tail", type=int, metavar="BYTES", help="begin this many bytes before the end")
    verb.add_argument("--phase", action="append", choices=log_lines.PHASES, default=[], help="only lines of this phase")
    verb.add_argument("--rank", type=int, default=0, metavar="N", help="of machine N of a job on several, from 0")
    verb.add_argument("--process", type=int, default=-1, metavar="RANK", help="only lines of the process of this rank")


def print_log(args: argparse.Namespace, route: str) -> None:
    """Print the log at `route` as the options of `logs` say."""
    which = {"rank": args.rank, "phases": args.phase, "process": args.process}
    waiting.follow_log(args.client, route, follow=args.follow, tail_bytes=args.tail, **which)


def queue(args: argparse.Namespace) -> None:
    filters = {
        "cluster": lookup.cluster(args.client, args.cluster) if args.cluster else None,
        "mine": args.mine or None,
    }
    jobs = args.client.get("jobs/queue/", **{name: str(value) for name, value in filters.items() if value is not None})
    if args.json:
        output.as_json(jobs)
        return
    output.table(jobs["waiting"], WAITING, empty="Nothing waits.")
    if jobs["total"] > len(jobs["waiting"]):
        output.say(f"{jobs['total']} wait in all.")


def priority(args: argparse.Namespace) -> None:
    row = args.client.post(f"jobs/{args.id}/priority/", {"priority": resources.priority(args.priority)})
    done(args, row, f"Job {args.id} has priority {args.priority} now.")


def job_list(args: argparse.Namespace) -> None:
    filters = {"state": args.state, "kind": args.kind, "search": args.search}
    filters["cluster"] = lookup.cluster(args.client, args.cluster) if args.cluster else None
    rows = args.client.pages("jobs/", limit=args.limit, **filters)
    show_list(args, rows, COLUMNS, empty="No jobs.")


def show(args: argparse.Namespace) -> None:
    show_one(args, args.client.get(f"jobs/{args.id}/"), FIELDS)


def job_logs(args: argparse.Namespace) -> None:
    print_log(args, f"jobs/{args.id}/log/")


def files(args: argparse.Namespace) -> None:
    show_list(args, args.client.get(f"jobs/{args.id}/files/"), outputs.COLUMNS, empty="No outputs yet.")


def dataset(args: argparse.Namespace) -> None:
    row = args.client.post("training/outputs/", {"job": args.id, "name": args.name, "folder": args.folder}, once=True)
    done(args, row, f"Dataset {output.clean(row['dataset_name'])} ({row['dataset']}) is imported from job {args.id}.")


def fetch(args: argparse.Namespace) -> None:
    folder = args.to or outputs.folder_of(args.id)
    done(args, {"folder": str(folder)}, outputs.bring_back(args.client, args.id, folder, quiet=args.json))


def wait(args: argparse.Namespace) -> int:
    row = waiting.until_over(args.client, f"jobs/{args.id}/")
    if args.json:
        output.as_json(row)
    return waiting.exit_code(row)


def steer(args: argparse.Namespace) -> None:
    if getattr(args, "force", False):
        row = force_stop(args.client, args.id)
        done(args, row, row["sentence"])
        return
    row = args.client.post(f"jobs/{args.id}/{args.verb}/")
    done(args, row, f"Asked to {args.verb} job {args.id}.")


def stop_many(args: argparse.Namespace) -> None:
    answer = args.client.post("jobs/stop/", {"jobs": args.id}, once=True)
    done(args, answer, f"Asked to stop {len(answer['requested'])}; {answer['over']} had ended.")
