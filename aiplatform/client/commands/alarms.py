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
    "rule=key, on=enabled, severity, threshold=|threshold, lasts=for_s|duration, sent=send, description=label",
    threshold=lambda row: f"{row['threshold']:g} {row['unit']}" if row["unit"] else "",
)
ADDRESSES = columns("id, method=channel, to=target, from severity=least, on=enabled")


def _find_rule(client: Client, key: str) -> int:
    for row in client.pages("alarm-rules/"):
        if row["key"] == key:
            return int(row["id"])
    raise ClientError(f"Rule {key} not found. See: aip alarms rules", NOT_FOUND)


def _add_address(args: argparse.Namespace) -> None:
    channel = "webhook" if args.target.startswith(("https://", "http://")) else "mail"
    row = args.client.post("alarm-addresses/", {"channel": channel, "target": args.target, "least": args.least})
    done(args, row, f"{output.clean(row['target'])} is notified from severity {row['least']}; number {row['id']}.")
    if row["secret"] and not args.json:
        print(row["secret"])
        output.say("This secret signs the messages.")


NOUNS = {
    "alarms": (
        Verb("list", "List alerts, newest first.",
             (option("--state", choices=["firing", "pending", "ended"], default="firing"), LIMIT),
             get="alarms/", table=ALARMS, empty="No alerts."),
        Verb("silence", "Silence an alert for a while.", (ID, option("--hours", type=float, default=4.0)),
             post="alarms/{id}/silence/", done="Silenced until {row[until]}."),
        Verb("rules", "List alert rules.", get="alarm-rules/", table=RULES),
        Verb("rule", "Change an alert rule; omitted values are kept.", (
            option("rule", find=_find_rule, help="key, as shown in the list"),
            either(flag("--on", dest="enabled", default=None), option("--off", dest="enabled", action="store_false")),
            option("--severity", choices=SEVERITIES),
            option("--threshold", type=float, metavar="N", help="in the unit of the rule"),
            option("--for", dest="for_s", type=int, metavar="S", help="minimum duration in seconds"),
            either(flag("--send", dest="send", default=None, help="send e-mails and webhooks"),
                   option("--no-send", dest="send", action="store_false", help="show on the page only")),
        ), patch="alarm-rules/{rule}/", table=RULES,
             unchanged="Specify a change: --on, --off, --severity, --threshold, --for, --send or --no-send."),
        Verb("addresses", "List recipients of alerts.",
             get="alarm-addresses/", table=ADDRESSES, empty="No recipients by e-mail or webhook."),
        Verb("tell", "Add a recipient.", (
            option("target", help="e-mail address, or https address of a webhook"),
            option("--least", choices=SEVERITIES, default="warning", help="minimum severity (warning)"),
        ), run=_add_address),
        Verb("untell", "Remove a recipient.", (ID,),
             delete="alarm-addresses/{id}/", done="The recipient is removed."),
    ),
}  # fmt: skip
