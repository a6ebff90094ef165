"""`aip usage`, `aip history`, `aip decision`, `aip notifications`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from aiplatform.client import output
from aiplatform.client.commands import lookup
from aiplatform.client.options import LIMIT, flag, option
from aiplatform.client.output import columns
from aiplatform.client.verbs import Verb, done

USAGE = columns(
    "name, GPU hours=gpu_hours|.1f, core hours=cpu_hours|.1f, jobs, wait p50=wait_p50_s|duration, wait "
    "p95=wait_p95_s|duration"
)
CURVES = columns("curve=name, mean, most, last")
NOTIFICATIONS = columns(
    "id, kind, news=title, more=text, when=created_at|ago, new=|unread", unread=lambda row: row["read_at"] is None
)


def _print_usage(args: argparse.Namespace, report: Any) -> None:
    rows = [*report["rows"], report["total"]] if report["rows"] else []
    output.table(rows, USAGE, empty="No jobs ran in this period.")


def _print_history(args: argparse.Namespace, samples: Any) -> None:
    rows = []
    for name, series in samples["series"].items():
        values = [value for value in series if value is not None]
        if values:
            rows.append({"name": name, "mean": sum(values) / len(values), "most": max(values), "last": values[-1]})
    output.table(rows, CURVES, empty="No samples in this period.")


def _print_decision(args: argparse.Namespace) -> None:
    decision = args.client.get("cluster/decision/")
    if args.to is None:
        output.as_json(decision)
        return
    args.to.write_text(json.dumps(decision, ensure_ascii=False))
    done(args, {"file": str(args.to)}, f"Written to {args.to}.")


NOUNS = {
    "usage": Verb("usage", "GPU hours, core hours, jobs and waiting times of a period.", (
        option("--by", choices=["user", "group", "cluster"], default="user"),
        option("--from", dest="first", field="from", metavar="DAY",
               help="first day, 2026-03-01; 30 days before the last one"),
        option("--until", metavar="DAY", help="last day; today"),
    ), get="usage/", show=_print_usage),
    "history": Verb("history", "Usage history of nodes and clusters: mean and maximum of each metric.", (
        option("--span", default="1h", help="1h, 6h, 1d, 7d or 30d (1h)"),
        option("--of", choices=["machines", "clusters"], default="machines"),
        option("--node", find=lookup.node, help="only this node: name or id"),
    ), get="history/", show=_print_history),
    "decision": Verb("decision", "Current input and decisions of the scheduler, as JSON to replay.", (
        option("--to", type=Path, metavar="FILE", help="target file; for `manage.py simulate --replay FILE`"),
    ), run=_print_decision),
    "notifications": (
        Verb("list", "List your notifications, newest first.", (
            flag("--unread", help="only unread ones", convert=lambda unread: "1" if unread else None),
            LIMIT,
        ), get="notifications/", table=NOTIFICATIONS, empty="No events."),
        Verb("read", "Mark all as read.",
             post="notifications/read-all/", done="{row[marked]} marked as read."),
    ),
}  # fmt: skip
