"""`aip edge`: groups of devices outside of the cluster."""

from __future__ import annotations

import argparse
from typing import Any

from aiplatform.client import output
from aiplatform.client.commands import lookup, registry
from aiplatform.client.options import ID, LIMIT, YES, option
from aiplatform.client.output import columns
from aiplatform.client.verbs import Verb

GROUPS = columns(
    "id, name, model=wanted, share=|share, devices, made=created_at|ago",
    share=lambda row: f"{row['share']} %{' (halted)' if row['halted'] else ''}" if row["wanted"] else "",
)
DEVICES = columns(
    "id, name, state=|state, runs=package|short, requests=counters.requests, seen=seen_at|ago, detail",
    state=lambda row: row["outcome"] if row["enrolled"] else "not enrolled",
    short=lambda package: package[:12],
)
GROUP = option("group", help="id or name", find=lookup.edge_group)
MODEL = option("model", help=registry.VERSION, field="version", find=lookup.model_version)
RELEASED = "{row[wanted]} goes to {row[share]} % of the devices of {row[name]}."


def _sampling(args: argparse.Namespace, row: Any) -> str:
    if not (row["keep_percent"] or row["keep_below"]):
        return f"Devices of {row['name']} keep no pictures."
    rules = f"{row['keep_percent']} % by chance, and those with a score below {row['keep_below']} %"
    return f"Devices of {row['name']} keep pictures: {rules}, for {row['keep_days']} days."


def _enrolment(args: argparse.Namespace, row: Any) -> str:
    site = args.client.config.url.rstrip("/")
    return f"On the device: python3 aip-edge.pyz enrol --server {site} --code {row['code']}"


def _print_log(args: argparse.Namespace, log: Any) -> None:
    for line in log["lines"]:
        print(output.clean(f"{line['at'] or '?'} {line['text']}"))
    if log["left_out"]:
        print(f"{log['left_out']} lines of today were left out.")


NOUNS = {
    "edge": (
        Verb("list", "List groups.", (LIMIT,),
             get="edge-groups/", table=GROUPS, empty="No groups. aip edge create makes one."),
        Verb("create", "Make a group.", (
            option("name"),
            option("--days-offline", type=int, help="so long a device believes a release; 7 when left out"),
        ), post="edge-groups/", once=True, prints="id",
             done="Group {row[name]} is there. Add devices with aip edge add."),
        Verb("devices", "List the devices of a group.", (GROUP,),
             get="edge-groups/{group}/devices/", table=DEVICES, empty="No devices. aip edge add adds one."),
        Verb("add", "Add a device; prints the one-time code that it is enrolled with.",
             (GROUP, option("name", help="of the device")),
             post="edge-groups/{group}/enrolment/", prints="code", done=_enrolment),
        Verb("release", "Let a share of the devices run a version.", (
            GROUP, MODEL,
            option("--share", type=int, help="percent of the devices: 1, 10, 50 or 100 (the default)"),
            option("--soak-minutes", type=int, help="go on to the next share by itself after so long"),
        ), post="edge-groups/{group}/release/", done=RELEASED),
        Verb("sampling", "Say which pictures the devices of a group keep for annotation.", (
            GROUP,
            option("--percent", type=int, field="keep_percent", help="of all that they answer, by chance; 0: none"),
            option("--below", type=int, field="keep_below",
                   help="with an answer of a lower score, in percent; 0: none"),
            option("--days", type=int, field="keep_days", help="that they wait for annotation"),
        ), post="edge-groups/{group}/sampling/", done=_sampling),
        Verb("annotate", "Make a dataset of the pictures that devices sent.",
             (GROUP, option("name", help="of the dataset")),
             post="edge-groups/{group}/annotate/", done="Dataset {row[dataset]} is made of the pictures."),
        Verb("log", "Print the last lines of a device.", (ID,), get="edge-devices/{id}/log/", show=_print_log),
        Verb("rollback", "Let all devices run what the group ran before.", (GROUP,),
             post="edge-groups/{group}/rollback/", done=RELEASED),
        Verb("revoke", "End the token of a device.", (ID,), post="edge-devices/{id}/revoke/",
             done="The token of {row[name]} is revoked; it keeps the model that it runs."),
        Verb("remove", "Forget a device.", (ID, YES),
             delete="edge-devices/{id}/", confirm="Remove device {args.id}?", done="Device {args.id} is removed."),
        Verb("delete", "Remove a group.", (GROUP, YES), delete="edge-groups/{group}/",
             confirm="Remove group {args.group} with its list of devices?", done="Group {args.group} is removed."),
    ),
}  # fmt: skip
