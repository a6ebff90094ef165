"""`aip alarms`: rules, alarms, and who is notified."""

from __future__ import annotations

import argparse

from aiplatform.client import output
from aiplatform.client.commands.verbs import Noun, Nouns, Parent, done, paging, show_list
from aiplatform.client.errors import NOT_FOUND, USAGE, ClientError
from aiplatform.client.http import Client
from aiplatform.client.output import Column

SEVERITIES = ("info", "warning", "critical")
ALARMS: list[Column] = [
    ("id", "id"),
    ("severity", "severity"),
    ("alarm", "sentence"),
    ("since", lambda row: output.ago(row["seen_at"])),
    ("over", lambda row: output.ago(row["ended_at"])),
]
RULES: list[Column] = [
    ("rule", "key"),
    ("on", "enabled"),
    ("severity", "severity"),
    ("threshold", lambda row: f"{row['threshold']:g} {row['unit']}" if row["unit"] else ""),
    ("lasts", lambda row: output.duration(row["for_s"])),
    ("is sent", "send"),
    ("what it says", "label"),
]
ADDRESSES: list[Column] = [
    ("id", "id"),
    ("by", "channel"),
    ("to", "target"),
    ("from severity", "least"),
    ("on", "enabled"),
]


def add(nouns: Nouns, parent: Parent) -> None:
    alarms = Noun(nouns, parent, "alarms", "What is wrong with the platform, for those who manage it.")
    verb = alarms.verb("list", alarm_list, "List alarms, newest first.")
    verb.add_argument("--state", choices=["firing", "pending", "ended"], default="firing")
    paging(verb)
    verb = alarms.verb("silence", silence, "Tell nobody of an alarm for a while.")
    verb.add_argument("id")
    verb.add_argument("--hours", type=float, default=4.0)
    alarms.verb("rules", rules, "List the rules as they are set.")
    verb = alarms.verb("rule", rule, "Change when a rule raises its alarm; what is left out stays.")
    verb.add_argument("rule", help="its word, as the list shows it")
    switch = verb.add_mutually_exclusive_group()
    switch.add_argument("--on", dest="enabled", action="store_true", default=None)
    switch.add_argument("--off", dest="enabled", action="store_false")
    verb.add_argument("--severity", choices=SEVERITIES)
    verb.add_argument("--threshold", type=float, metavar="N", help="in the rule's own unit")
    verb.add_argument("--for", dest="for_s", type=int, metavar="S", help="seconds it must last")
    sends = verb.add_mutually_exclusive_group()
    sends.add_argument("--send", dest="send", action="store_true", default=None, help="mail and webhooks go out")
    sends.add_argument("--no-send", dest="send", action="store_false", help="only the page shows it")
    alarms.verb("addresses", addresses, "List who is told.")
    verb = alarms.verb("tell", tell, "Tell one more address.")
    verb.add_argument("target", help="a mail address, or the https address of a webhook")
    verb.add_argument("--least", choices=SEVERITIES, default="warning", help="from this severity on (warning)")
    alarms.verb("untell", untell, "Tell an address of nothing any more.").add_argument("id")


def alarm_list(args: argparse.Namespace) -> None:
    rows = args.client.pages("alarms/", limit=args.limit, state=args.state)
    show_list(args, rows, ALARMS, empty="Nothing is wrong that a rule knows of.")


def silence(args: argparse.Namespace) -> None:
    alarm = args.client.post(f"alarms/{args.id}/silence/", {"hours": args.hours})
    done(args, alarm, f"Silenced until {alarm['until']}.")


def rules(args: argparse.Namespace) -> None:
    show_list(args, args.client.pages("alarm-rules/"), RULES)


def rule(args: argparse.Namespace) -> None:
    given = {name: getattr(args, name) for name in ("enabled", "severity", "threshold", "for_s", "send")}
    body = {name: value for name, value in given.items() if value is not None}
    if not body:
        raise ClientError(
            "Say what to change: --on, --off, --severity, --threshold, --for, --send or --no-send.", USAGE
        )
    row = args.client.call("PATCH", f"alarm-rules/{_rule(args.client, args.rule)}/", body=body)
    show_list(args, [row], RULES) if not args.json else output.as_json(row)


def addresses(args: argparse.Namespace) -> None:
    show_list(args, args.client.pages("alarm-addresses/"), ADDRESSES, empty="Nobody is told by mail or webhook.")


def tell(args: argparse.Namespace) -> None:
    channel = "webhook" if args.target.startswith(("https://", "http://")) else "mail"
    row = args.client.post("alarm-addresses/", {"channel": channel, "target": args.target, "least": args.least})
    done(args, row, f"{output.clean(row['target'])} is told from {row['least']} on; its number is {row['id']}.")
    if row["secret"] and not args.json:
        print(row["secret"])
        output.say("This secret signs what it is sent.")


def untell(args: argparse.Namespace) -> None:
    args.client.delete(f"alarm-addresses/{args.id}/")
    done(args, None, "It is told of nothing any more.")


def _rule(client: Client, key: str) -> int:
    for row in client.pages("alarm-rules/"):
        if row["key"] == key:
            return int(row["id"])
    raise ClientError(f"There is no rule {key}. See: aip alarms rules", NOT_FOUND)
