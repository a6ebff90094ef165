"""`aip usage`, `aip history`, `aip decision`, `aip notifications`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from aiplatform.client import output
from aiplatform.client.commands import lookup
from aiplatform.client.commands.verbs import Noun, Nouns, Parent, command, done, paging, show_list
from aiplatform.client.output import Column

USAGE: list[Column] = [
    ("name", "name"),
    ("card hours", lambda row: f"{row['gpu_hours']:.1f}"),
    ("core hours", lambda row: f"{row['cpu_hours']:.1f}"),
    ("jobs", "jobs"),
    ("wait p50", lambda row: output.duration(row["wait_p50_s"])),
    ("wait p95", lambda row: output.duration(row["wait_p95_s"])),
]
CURVES: list[Column] = [("curve", "name"), ("mean", "mean"), ("most", "most"), ("last", "last")]
NEWS: list[Column] = [
    ("id", "id"),
    ("kind", "kind"),
    ("news", "title"),
    ("more", "text"),
    ("when", lambda row: output.ago(row["created_at"])),
    ("new", lambda row: row["read_at"] is None),
]


def add(nouns: Nouns, parent: Parent) -> None:
    verb = command(nouns, parent, "usage", usage, "Card hours, core hours, jobs and waits of a span of days.")
    verb.add_argument("--by", choices=["user", "group", "cluster"], default="user")
    verb.add_argument("--from", dest="first", metavar="DAY", help="first day, 2026-03-01; 30 days before the last one")
    verb.add_argument("--until", metavar="DAY", help="last day; today")
    verb = command(nouns, parent, "history", history, "What machines and clusters did: mean and most of each curve.")
    verb.add_argument("--span", default="1h", help="1h, 6h, 1d, 7d or 30d (1h)")
    verb.add_argument("--of", choices=["machines", "clusters"], default="machines")
    verb.add_argument("--node", help="only this machine: name or id")
    verb = command(nouns, parent, "decision", decision, "What the scheduler sees and decides now, as JSON to replay.")
    verb.add_argument("--to", type=Path, metavar="FILE", help="write it there; `manage.py simulate --replay FILE`")
    news = Noun(nouns, parent, "notifications", "What you were told.")
    verb = news.verb("list", news_list, "List your notifications, newest first.")
    verb.add_argument("--unread", action="store_true", help="only those you have not seen")
    paging(verb)
    news.verb("read", news_read, "Mark all as seen.")


def usage(args: argparse.Namespace) -> None:
    query = {"by": args.by, "from": args.first, "until": args.until}
    report = args.client.get("usage/", **{name: value for name, value in query.items() if value})
    if args.json:
        output.as_json(report)
        return
    output.table(
        [*report["rows"], report["total"]] if report["rows"] else [],
        USAGE,
        empty="Nothing ran in this span.",
    )


def history(args: argparse.Namespace) -> None:
    node = lookup.node(args.client, args.node) if args.node else None
    samples = args.client.get("history/", span=args.span, of=args.of, node=node)
    if args.json:
        output.as_json(samples)
        return
    rows = []
    for name, values in samples["series"].items():
        known = [value for value in values if value is not None]
        if known:
            rows.append({"name": name, "mean": sum(known) / len(known), "most": max(known), "last": known[-1]})
    output.table(rows, CURVES, empty="No samples in this span.")


def decision(args: argparse.Namespace) -> None:
    decided = args.client.get("cluster/decision/")
    if args.to is None:
        output.as_json(decided)
        return
    args.to.write_text(json.dumps(decided, ensure_ascii=False))
    done(args, {"file": str(args.to)}, f"Written to {args.to}.")


def news_list(args: argparse.Namespace) -> None:
    rows = args.client.pages("notifications/", limit=args.limit, unread="1" if args.unread else None)
    show_list(args, rows, NEWS, empty="Nothing to tell.")


def news_read(args: argparse.Namespace) -> None:
    answer = args.client.post("notifications/read-all/", {})
    done(args, answer, f"{answer['marked']} marked as read.")
