"""`aip ports`: open programs of running jobs in the browser."""

from __future__ import annotations

import argparse
import webbrowser

from aiplatform.client import output
from aiplatform.client.options import LIMIT, flag, option
from aiplatform.client.output import columns
from aiplatform.client.verbs import Verb, show_list

COLUMNS = columns("job, job name=job_name, name, port, owner, address")
JOB = option("job", help="id of the job")
NAME = option("name", help="of the port")


def _list(args: argparse.Namespace) -> None:
    rows = args.client.get(f"jobs/{args.job}/ports/") if args.job else args.client.pages("ports/", limit=args.limit)
    show_list(args, rows, COLUMNS, empty="No ports are published.")


def _open(args: argparse.Namespace) -> None:
    opened = args.client.post(f"jobs/{args.job}/ports/{args.name}/open/", {})
    output.as_json(opened) if args.json else print(opened["url"])
    if args.browser:
        webbrowser.open(opened["url"])


NOUNS = {
    "ports": (
        Verb("list", "List the ports of a job, or all accessible ports.",
             (option("job", nargs="?", help="id of the job; default: all running jobs"), LIMIT), run=_list),
        Verb("publish", "Publish a port of your job for browsers.", (
            JOB,
            option("port", type=int, help="from 40000 to 49999, on which the program listens inside the job"),
            option("--name", default="", help="name in its address"),
        ), post="jobs/{job}/ports/", once=True,
             done="Published as {row[name]}. Open it: aip ports open {args.job} {row[name]}"),
        Verb("open", "Print an address for one browser, valid once within half a minute.",
             (JOB, NAME, flag("--browser", help="also open it in the local browser")), run=_open),
        Verb("board", "Open the event files of your job in TensorBoard, in a small job.", (JOB,),
             post="jobs/{job}/board/", once=True,
             done="Job {row[id]} shows them. Once it runs: aip ports open {row[id]} tensorboard"),
        Verb("withdraw", "Unpublish a port.", (JOB, NAME),
             delete="jobs/{job}/ports/{name}/", done="Unpublished {args.name} of job {args.job}."),
    ),
}  # fmt: skip
