"""`aip alarms`: rules, alarms, and who is notified."""

from __future__ import annotations

import argparse

from aiplatform.client import output
from aiplatform.client.errors import NOT_FOUND, ClientError
from aiplatform.client.http import Client
from aiplatform.client.options import ID, LIMIT, either, flag, option
from aiplatform.client.output import columns
from aiplatform.client.verbs import Verb, done

SEVERITIES = ("info", "warning", "critical")
ALARMS = columns("id, severity, alarm=sentence, since=seen_at|ago, over=ended_at|ago")
RULES = columns(
    "rule=key, on=enabled, severity, threshold=|threshold, lasts=for_s|duration, is sent=send, what it says=label",
    threshold=lambda row: f"{row['threshold']:g} {row['unit']}" if row["unit"] else "",
)
ADDRESSES = columns("id, by=channel, to=target, from severity=least, on=enabled")


def _find_rule(client: Client, key: str) -> int:
    for row in client.pages("alarm-rules/"):
        if row["key"] == key:
            return int(row["id"])
    raise ClientError(f"There is no rule {key}. See: aip alarms rules", NOT_FOUND)


def _add_address(args: argparse.Namespace) -> None:
    channel = "webhook" if args.target.startswith(("https://", "http://")) else "mail"
    row = args.client.post("alarm-addresses/", {"channel": channel, "target": args.target, "least": args.least})
    done(args, row, f"{output.clean(row['target'])} is told from {row['least']} on; its number is {row['id']}.")
    if row["secret"] and not args.json:
        print(row["secret"])
        output.say("This secret signs what it is sent.")


NOUNS = {
    "alarms": (
        Verb("list", "List alarms, newest first.",
             (option("--state", choices=["firing", "pending", "ended"], default="firing"), LIMIT),
             get="alarms/", table=ALARMS, empty="No alerts."),
        Verb("silence", "Tell nobody of an alarm for a while.", (ID, option("--hours", type=float, default=4.0)),
             post="alarms/{id}/silence/", done="Silenced until {row[until]}."),
        Verb("rules", "List the rules as they are set.", get="alarm-rules/", table=RULES),
        Verb("rule", "Change when a rule raises its alarm; what is left out stays.", (
            option("rule", find=_find_rule, help="its word, as the list shows it"),
            either(flag("--on", dest="enabled", default=None), option("--off", dest="enabled", action="store_false")),
            option("--severity", choices=SEVERITIES),
            option("--threshold", type=float, metavar="N", help="in the rule's own unit"),
            option("--for", dest="for_s", type=int, metavar="S", help="seconds it must last"),
            either(flag("--send", dest="send", default=None, help="mail and webhooks go out"),
                   option("--no-send", dest="send", action="store_false", help="only the page shows it")),
        ), patch="alarm-rules/{rule}/", table=RULES,
             unchanged="Say what to change: --on, --off, --severity, --threshold, --for, --send or --no-send."),
        Verb("addresses", "List who is told.",
             get="alarm-addresses/", table=ADDRESSES, empty="Nobody is told by mail or webhook."),
        Verb("tell", "Tell one more address.", (
            option("target", help="a mail address, or the https address of a webhook"),
            option("--least", choices=SEVERITIES, default="warning", help="from this severity on (warning)"),
        ), run=_add_address),
        Verb("untell", "Tell an address of nothing any more.", (ID,),
             delete="alarm-addresses/{id}/", done="It is told of nothing any more."),
    ),
}  # fmt: skip
