"""`aip clusters`, `aip extend`, `aip requests`: shares of the machines, and more time in them."""

from __future__ import annotations

import argparse
from typing import Any

from aiplatform.cli.client.commands import lookup
from aiplatform.cli.client.commands.verbs import Noun, Nouns, Parent, command, done, paging, show_list, show_one
from aiplatform.cli.client.output import Column


def _cards(row: dict[str, Any]) -> str:
    parts = []
    for one in row.get("devices") or []:
        most = "all" if one["guaranteed"] is None else str(one["guaranteed"])
        parts.append(f"{most} {one['kind']}{' + idle ones' if one['borrows'] else ''}")
    return ", ".join(parts) or "all"


def _hours(row: dict[str, Any]) -> str:
    seconds = row.get("max_runtime_s")
    return "no limit" if seconds is None else f"{seconds / 3600:g} h"


COLUMNS: list[Column] = [("id", "id"), ("name", "name"), ("cards", _cards), ("longest", _hours)]
FIELDS: list[Column] = [
    ("Id", "id"),
    ("Name", "name"),
    ("Cards", _cards),
    ("Maximum run time", _hours),
    ("Running jobs per person", "jobs_per_user"),
    ("Environments per person", "environments_per_user"),
]
REQUESTS: list[Column] = [
    ("id", "id"),
    ("job", "job"),
    ("name", "job_name"),
    ("owner", "owner"),
    ("hours", "hours"),
    ("why", "reason"),
    ("answer", "answer"),
]


def add(nouns: Nouns, parent: Parent) -> None:
    clusters = Noun(nouns, parent, "clusters", "Virtual clusters: who may use how much of the machines.")
    paging(clusters.verb("list", cluster_list, "List the clusters you belong to."))
    clusters.verb("show", show, "Show one cluster.").add_argument("cluster", help="name or id")
    clusters.verb("use", use, "Make it the one your new jobs take.").add_argument("cluster", help="name or id")
    verb = command(nouns, parent, "extend", extend, "Ask for more run time for a job.")
    verb.add_argument("job", help="id of the job")
    verb.add_argument("--hours", type=float, required=True, help="how much longer")
    verb.add_argument("--reason", required=True, help="why; who decides reads it")
    requests = Noun(nouns, parent, "requests", "Requests for more run time.")
    verb = requests.verb("list", request_list, "List requests, newest first.")
    verb.add_argument("--answer", choices=["open", "granted", "denied"], help="only these")
    paging(verb)
    for name, sentence in (("grant", "Grant one; counts at once."), ("deny", "Deny one.")):
        verb = requests.verb(name, answer, sentence)
        verb.add_argument("id")
        verb.add_argument("--word", default="", help="a word to the owner")
        if name == "grant":
            verb.add_argument("--hours", type=float, help="where it differs from what was asked for")


def cluster_list(args: argparse.Namespace) -> None:
    rows = args.client.pages("clusters/", limit=args.limit)
    show_list(args, rows, COLUMNS, empty="You belong to no cluster. Ask an administrator.")


def show(args: argparse.Namespace) -> None:
    show_one(args, args.client.get(f"clusters/{lookup.cluster(args.client, args.cluster)}/"), FIELDS)


def use(args: argparse.Namespace) -> None:
    row = args.client.post(f"clusters/{lookup.cluster(args.client, args.cluster)}/current/")
    done(args, row, f"New jobs go to {row['name']}.")


def extend(args: argparse.Namespace) -> None:
    row = args.client.post(f"jobs/{args.job}/extend/", {"hours": args.hours, "reason": args.reason}, once=True)
    done(args, row, f"Asked for {args.hours:g} h more for job {args.job}.")


def request_list(args: argparse.Namespace) -> None:
    rows = args.client.pages("time-requests/", limit=args.limit, answer=args.answer)
    show_list(args, rows, REQUESTS, empty="Nobody asks for more time.")


def answer(args: argparse.Namespace) -> None:
    body: dict[str, object] = {"grant": args.verb == "grant", "word": args.word}
    if args.verb == "grant" and args.hours:
        body["hours"] = args.hours
    row = args.client.post(f"time-requests/{args.id}/answer/", body)
    done(args, row, f"Request {args.id}: {row['answer']}.")
