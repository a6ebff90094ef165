"""Verbs of `aip pipeline` for what begins runs by itself."""

from __future__ import annotations

import argparse
from typing import Any

from aiplatform.client import output
from aiplatform.client.commands import lookup
from aiplatform.client.commands.verbs import Noun, done, pairs, show_list
from aiplatform.client.output import Column

LISTED: list[Column] = [
    ("id", "id"),
    ("pipeline", "pipeline"),
    ("kind", "kind"),
    ("on", lambda row: "yes" if row["is_on"] else "no"),
    ("schedule", lambda row: f"{row['schedule']} ({row['zone']})" if row["schedule"] else ""),
    ("next", lambda row: output.ago((row.get("next_times") or [""])[0])),
    ("owner", "owner"),
    ("what", "sentence"),
]
FIRED: list[Column] = [
    ("at", lambda row: output.ago(row.get("at"))),
    ("run", "run"),
    ("answered", "key"),
    ("what", "sentence"),
]


def add(pipeline: Noun) -> None:
    verb = pipeline.verb("triggers", listed, "List what begins runs by itself.")
    verb.add_argument("pipeline", nargs="?", help="only of this one: id or name")
    verb = pipeline.verb("trigger", create, "Let runs begin by themselves, as you.")
    verb.add_argument("pipeline", help="id or name")
    what = verb.add_mutually_exclusive_group(required=True)
    what.add_argument("--schedule", metavar="CRON", help='by the clock, such as "30 2 * * SUN"')
    what.add_argument("--dataset", help="with each new version of a dataset: id or name")
    what.add_argument("--drift", metavar="SERVICE", help="when what a service of yours is shown changes: id or name")
    what.add_argument(
        "--alarm", metavar="RULE", nargs="?", const="", help="with an alarm of the platform; any when left out"
    )
    what.add_argument("--webhook", action="store_true", help="when a signed request comes; prints the secret, once")
    verb.add_argument(
        "--zone", default="", help="time zone of the schedule, such as Europe/Berlin; your own when left out"
    )
    verb.add_argument(
        "--missed", choices=["latest", "all", "none"], default="latest", help="times that were missed (latest)"
    )
    verb.add_argument("--busy", choices=["skip", "allow", "cancel"], default="skip", help="while a run goes on (skip)")
    verb.add_argument("-p", "--param", action="append", metavar="NAME=VALUE", help="a parameter of its runs")
    verb = pipeline.verb("switch", switch, "Switch a trigger on or off.")
    verb.add_argument("trigger", help="its id")
    verb.add_argument("to", choices=["on", "off"])
    verb.add_argument("--version", type=int, help="the one that it runs from now on, which somebody else saved")
    verb = pipeline.verb("rotate", rotate, "Give a webhook a new secret, printed once; the one before holds for a day.")
    verb.add_argument("trigger", help="its id")
    verb.add_argument("--at-once", action="store_true", help="older secrets end now: somebody else may know them")
    pipeline.verb("firings", firings, "List what a trigger answered.").add_argument("trigger", help="its id")
    pipeline.verb("untrigger", delete, "Delete a trigger; its runs stay.").add_argument("trigger", help="its id")


def listed(args: argparse.Namespace) -> None:
    number = lookup.pipeline(args.client, args.pipeline) if args.pipeline else None
    rows = args.client.pages("pipeline-triggers/", pipeline=number)
    show_list(args, rows, LISTED, empty="Nothing begins runs by itself. aip pipeline trigger sets it up.")


def create(args: argparse.Namespace) -> None:
    body: dict[str, Any] = {"pipeline": lookup.pipeline(args.client, args.pipeline), "busy": args.busy}
    body |= {"parameters": pairs(args.param), **_kind(args)}
    row = args.client.post("pipeline-triggers/", body, once=True)
    if row["secret"] and not args.json:
        print(row["secret"])
    done(args, row, f"Trigger {row['id']} is on.{_after(args, row)}")


def _kind(args: argparse.Namespace) -> dict[str, Any]:
    if args.schedule is not None:
        return {"kind": "cron", "schedule": args.schedule, "zone": args.zone, "missed": args.missed}
    if args.dataset is not None:
        return {"kind": "dataset", "dataset": lookup.dataset(args.client, args.dataset)}
    if args.drift is not None:
        return {"kind": "drift", "service": lookup.service(args.client, args.drift)["id"]}
    return {"kind": "webhook"} if args.webhook else {"kind": "alarm", "rule": args.alarm}


def _after(args: argparse.Namespace, row: Any) -> str:
    """What to do, or what comes, next."""
    if row["url"]:
        return f" Deliver to {args.client.config.url}{row['url']}, signed with the secret, which is told only now."
    times = [f"{when[:16]}" for when in row["next_times"]]
    return f" Next (UTC): {', '.join(times)}." if times else ""


def switch(args: argparse.Namespace) -> None:
    body = {"is_on": args.to == "on"} | ({"version": args.version} if args.version else {})
    row = args.client.call("PATCH", f"pipeline-triggers/{args.trigger}/", body=body)
    done(args, row, f"Trigger {args.trigger} is {args.to}. It runs version {row['version']}.")


def rotate(args: argparse.Namespace) -> None:
    row = args.client.post(f"pipeline-triggers/{args.trigger}/rotate/", {"at_once": args.at_once})
    if not args.json:
        print(row["secret"])
    until = f" The one before holds until {row['older_until'][:16]} (UTC)." if row["older_until"] else ""
    done(args, row, f"This is the secret of trigger {args.trigger}, told only now.{until}")


def firings(args: argparse.Namespace) -> None:
    rows = args.client.get(f"pipeline-triggers/{args.trigger}/firings/")
    show_list(args, rows, FIRED, empty="It has not answered anything yet.")


def delete(args: argparse.Namespace) -> None:
    args.client.delete(f"pipeline-triggers/{args.trigger}/")
    done(args, None, f"Trigger {args.trigger} is deleted.")
