"""`aip extend`, `aip requests`: request and grant more run time."""

from __future__ import annotations

import argparse

from aiplatform.client.commands import lookup
from aiplatform.client.commands.verbs import Noun, Nouns, Parent, command, done, paging, show_list
from aiplatform.client.output import Column

REQUESTS: list[Column] = [
    ("id", "id"),
    ("job", "job"),
    ("name", "job_name"),
    ("owner", "owner"),
    ("cluster", "cluster"),
    ("hours", "hours"),
    ("why", "reason"),
    ("answer", "answer"),
    ("word", "word"),
]


def add(nouns: Nouns, parent: Parent) -> None:
    verb = command(nouns, parent, "extend", extend, "Ask for more run time for a job.")
    verb.add_argument("job", help="id of the job")
    verb.add_argument("--hours", type=float, required=True, help="how much longer")
    verb.add_argument("--reason", required=True, help="why; who decides reads it")
    requests = Noun(nouns, parent, "requests", "Requests for more run time.")
    verb = requests.verb("list", request_list, "List requests, newest first.")
    verb.add_argument("--answer", choices=["open", "granted", "denied"], help="only these")
    verb.add_argument("--cluster", help="only of this cluster: name or id")
    verb.add_argument("--job", help="only of this job")
    paging(verb)
    for name, sentence in (("grant", "Grant one; counts at once."), ("deny", "Deny one.")):
        verb = requests.verb(name, answer, sentence)
        verb.add_argument("id")
        verb.add_argument("--word", default="", help="a word to the owner")
        if name == "grant":
            verb.add_argument("--hours", type=float, help="where it differs from what was asked for")


def extend(args: argparse.Namespace) -> None:
    row = args.client.post(f"jobs/{args.job}/extend/", {"hours": args.hours, "reason": args.reason}, once=True)
    done(args, row, f"Asked for {args.hours:g} h more for job {args.job}.")


def request_list(args: argparse.Namespace) -> None:
    cluster = lookup.cluster(args.client, args.cluster) if args.cluster else None
    rows = args.client.pages("time-requests/", limit=args.limit, answer=args.answer, cluster=cluster, job=args.job)
    show_list(args, rows, REQUESTS, empty="Nobody asks for more time.")


def answer(args: argparse.Namespace) -> None:
    body: dict[str, object] = {"grant": args.verb == "grant", "word": args.word}
    if args.verb == "grant" and args.hours:
        body["hours"] = args.hours
    row = args.client.post(f"time-requests/{args.id}/answer/", body)
    done(args, row, f"Request {args.id}: {row['answer']}.")
