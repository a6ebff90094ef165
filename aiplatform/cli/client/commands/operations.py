"""`aip usage`, `aip alarms`, `aip notifications`: what was used, what is wrong, what one was told."""

from __future__ import annotations

import argparse

from aiplatform.cli.client import output
from aiplatform.cli.client.commands.verbs import Noun, Nouns, Parent, command, done, paging, show_list
from aiplatform.cli.client.output import Column

USAGE: list[Column] = [
    ("name", "name"),
    ("card hours", lambda row: f"{row['gpu_hours']:.1f}"),
    ("core hours", lambda row: f"{row['cpu_hours']:.1f}"),
    ("jobs", "jobs"),
    ("wait p50", lambda row: output.duration(row["wait_p50_s"])),
    ("wait p95", lambda row: output.duration(row["wait_p95_s"])),
]
ALARMS: list[Column] = [
    ("id", "id"),
    ("severity", "severity"),
    ("alarm", "sentence"),
    ("since", lambda row: output.ago(row["seen_at"])),
    ("over", lambda row: output.ago(row["ended_at"])),
]
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
    alarms = Noun(nouns, parent, "alarms", "What is wrong with the platform, for those who manage it.")
    verb = alarms.verb("list", alarm_list, "List alarms, newest first.")
    verb.add_argument("--state", choices=["firing", "pending", "ended"], default="firing")
    paging(verb)
    verb = alarms.verb("silence", silence, "Tell nobody of an alarm for a while.")
    verb.add_argument("id")
    verb.add_argument("--hours", type=float, default=4.0)
    news = Noun(nouns, parent, "notifications", "What you were told.")
    verb = news.verb("list", news_list, "List your notifications, newest first.")
    verb.add_argument("--unread", action="store_true", help="only those you have not seen")
    paging(verb)
    news.verb("read", news_read, "Mark all as seen.")


def usage(args: argparse.Namespace) -> None:
    asked = {"by": args.by, "from": args.first, "until": args.until}
    found = args.client.get("usage/", **{name: value for name, value in asked.items() if value})
    if args.json:
        output.as_json(found)
        return
    output.table([*found["rows"], found["total"]] if found["rows"] else [], USAGE, empty="Nothing ran in this span.")


def alarm_list(args: argparse.Namespace) -> None:
    rows = args.client.pages("alarms/", limit=args.limit, state=args.state)
    show_list(args, rows, ALARMS, empty="Nothing is wrong that a rule knows of.")


def silence(args: argparse.Namespace) -> None:
    found = args.client.post(f"alarms/{args.id}/silence/", {"hours": args.hours})
    done(args, found, f"Silenced until {found['until']}.")


def news_list(args: argparse.Namespace) -> None:
    rows = args.client.pages("notifications/", limit=args.limit, unread="1" if args.unread else None)
    show_list(args, rows, NEWS, empty="Nothing to tell.")


def news_read(args: argparse.Namespace) -> None:
    found = args.client.post("notifications/read-all/", {})
    done(args, found, f"{found['marked']} marked as read.")
