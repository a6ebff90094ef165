"""Verbs of `aip pipeline` for triggers, which start runs."""

from __future__ import annotations

import argparse
from typing import Any

from aiplatform.client.commands import lookup
from aiplatform.client.options import either, flag, option, pairs, repeated
from aiplatform.client.output import ago, columns
from aiplatform.client.verbs import Verb

TRIGGERS = columns(
    "id, pipeline, kind, on=|on, schedule=|schedule, next=next_times|next, owner, what=sentence",
    on=lambda row: "yes" if row["is_on"] else "no",
    schedule=lambda row: f"{row['schedule']} ({row['zone']})" if row["schedule"] else "",
    next=lambda times: ago((times or [""])[0]),
)
FIRINGS = columns("at=at|ago, run, answered=key, what=sentence")
TRIGGER = option("trigger", help="its id")


def _cron(args: argparse.Namespace) -> dict[str, str]:
    """Kind of the trigger; a schedule has further fields."""
    if args.schedule is not None:
        return {"kind": "cron", "zone": args.zone, "missed": args.missed}
    kinds = ("dataset", "drift", "alarm")
    return {"kind": next((kind for kind in kinds if getattr(args, kind) is not None), "webhook")}


def _describe_new(args: argparse.Namespace, row: Any) -> str:
    return f"Trigger {row['id']} is on.{_next_step(args, row)}"


def _next_step(args: argparse.Namespace, row: Any) -> str:
    if row["url"]:
        return f" Deliver to {args.client.config.url}{row['url']}, signed with the secret, which is told only now."
    times = [f"{time[:16]}" for time in row["next_times"]]
    return f" Next (UTC): {', '.join(times)}." if times else ""


def _describe_rotation(args: argparse.Namespace, row: Any) -> str:
    until = f" The one before holds until {row['older_until'][:16]} (UTC)." if row["older_until"] else ""
    return f"This is the secret of trigger {args.trigger}, told only now.{until}"


def _find_service(client: Any, name: str) -> int:
    return int(lookup.service(client, name)["id"])


VERBS = (
    Verb("triggers", "List what begins runs by itself.",
         (option("pipeline", nargs="?", find=lookup.pipeline, help="only of this one: id or name"),),
         get="pipeline-triggers/", table=TRIGGERS,
         empty="Nothing begins runs by itself. aip pipeline trigger sets it up."),
    Verb("trigger", "Let runs begin by themselves, as you.", (
        option("pipeline", find=lookup.pipeline, help="id or name"),
        either(
            option("--schedule", metavar="CRON", help='by the clock, such as "30 2 * * SUN"'),
            option("--dataset", find=lookup.dataset, help="with each new version of a dataset: id or name"),
            option("--drift", metavar="SERVICE", field="service", find=_find_service,
                   help="when what a service of yours is shown changes: id or name"),
            option("--alarm", metavar="RULE", nargs="?", const="", field="rule",
                   help="with an alarm of the platform; any when left out"),
            flag("--webhook", field="", help="when a signed request comes; prints the secret, once"),
            required=True,
        ),
        option("--zone", default="", field="",
               help="time zone of the schedule, such as Europe/Berlin; your own when left out"),
        option("--missed", choices=["latest", "all", "none"], default="latest", field="",
               help="times that were missed (latest)"),
        option("--busy", choices=["skip", "allow", "cancel"], default="skip", help="while a run goes on (skip)"),
        repeated("-p", "--param", metavar="NAME=VALUE", field="parameters", convert=pairs, default=[],
                 help="a parameter of its runs"),
    ), post="pipeline-triggers/", send=_cron, once=True, prints="secret", done=_describe_new),
    Verb("switch", "Switch a trigger on or off.", (
        TRIGGER,
        option("to", choices=["on", "off"], field="is_on", convert=lambda state: state == "on"),
        option("--version", type=int, help="the one that it runs from now on, which somebody else saved"),
    ), patch="pipeline-triggers/{trigger}/",
         done="Trigger {args.trigger} is {args.to}. It runs version {row[version]}."),
    Verb("rotate", "Give a webhook a new secret, printed once; the one before holds for a day.", (
        TRIGGER, flag("--at-once", help="older secrets end now: somebody else may know them"),
    ), post="pipeline-triggers/{trigger}/rotate/", prints="secret", done=_describe_rotation),
    Verb("firings", "List what a trigger answered.", (TRIGGER,),
         get="pipeline-triggers/{trigger}/firings/", table=FIRINGS, empty="It has not answered anything yet."),
    Verb("untrigger", "Delete a trigger; its runs stay.", (TRIGGER,),
         delete="pipeline-triggers/{trigger}/", done="Trigger {args.trigger} is deleted."),
)  # fmt: skip
