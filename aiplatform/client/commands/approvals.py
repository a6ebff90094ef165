"""`aip approvals`: what waits for an approval of a cluster, and the answers."""

from __future__ import annotations

import argparse

from aiplatform.client.commands import lookup
from aiplatform.client.commands.verbs import Noun, Nouns, Parent, done, paging, show_list
from aiplatform.client.output import Column

COLUMNS: list[Column] = [
    ("id", "id"),
    ("job", "job"),
    ("name", "job_name"),
    ("kind", "kind"),
    ("owner", "owner"),
    ("cluster", "cluster"),
    ("answer", "answer"),
    ("word", "word"),
]


def add(nouns: Nouns, parent: Parent) -> None:
    approvals = Noun(nouns, parent, "approvals", "Jobs that wait for somebody in charge of their cluster.")
    verb = approvals.verb("list", approval_list, "List approvals, newest first.")
    verb.add_argument("--answer", choices=["open", "granted", "denied"], help="only these")
    verb.add_argument("--cluster", help="only of this cluster: name or id")
    paging(verb)
    for name, sentence in (("grant", "Let the job start."), ("refuse", "Refuse it; the job ends as stopped.")):
        verb = approvals.verb(name, answer, sentence)
        verb.add_argument("id")
        verb.add_argument("--word", default="", help="a word to the owner")


def approval_list(args: argparse.Namespace) -> None:
    cluster = lookup.cluster(args.client, args.cluster) if args.cluster else None
    rows = args.client.pages("approvals/", limit=args.limit, answer=args.answer, cluster=cluster)
    show_list(args, rows, COLUMNS, empty="Nothing waits for an approval.")


def answer(args: argparse.Namespace) -> None:
    row = args.client.post(f"approvals/{args.id}/answer/", {"grant": args.verb == "grant", "word": args.word})
    done(args, row, f"Approval {args.id}: {row['answer']}.")
