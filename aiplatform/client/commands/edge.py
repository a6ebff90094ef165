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
RELEASED = "{row[wanted]} is released to {row[share]} % of the devices of {row[name]}."


def _sampling(args: argparse.Namespace, row: Any) -> str:
    if not (row["keep_percent"] or row["keep_below"]):
        return f"Devices of {row['name']} store no images."
    rules = f"{row['keep_percent']} % at random, and those with a confidence below {row['keep_below']} %"
    return f"Devices of {row['name']} store images: {rules}, for {row['keep_days']} days."


def _enrolment(args: argparse.Namespace, row: Any) -> str:
    site = args.client.config.url.rstrip("/")
    return f"On the device: python3 aip-edge.pyz enrol --server {site} --code {row['code']}"


def _print_log(args: argparse.Namespace, log: Any) -> None:
    for line in log["lines"]:
        print(output.clean(f"{line['at'] or '?'} {line['text']}"))
    if log["left_out"]:
        print(f"{log['left_out']} lines of today were omitted.")


NOUNS = {
    "edge": (
        Verb("list", "List device groups.", (LIMIT,),
             get="edge-groups/", table=GROUPS, empty="No groups. Create one: aip edge create"),
        Verb("create", "Create a device group.", (
            option("name"),
            option("--days-offline", type=int, help="days a release is valid for offline devices; default: 7"),
        ), post="edge-groups/", once=True, prints="id",
             done="Created group {row[name]}. Add devices with aip edge add."),
        Verb("devices", "List the devices of a group.", (GROUP,),
             get="edge-groups/{group}/devices/", table=DEVICES, empty="No devices. Add one: aip edge add"),
        Verb("add", "Add a device; prints its one-time enrolment code.",
             (GROUP, option("name", help="name of the device")),
             post="edge-groups/{group}/enrolment/", prints="code", done=_enrolment),
        Verb("release", "Release a version to a share of the devices.", (
            GROUP, MODEL,
            option("--share", type=int, help="percent of the devices: 1, 10, 50 or 100 (the default)"),
            option("--soak-minutes", type=int, help="continue with the next share automatically after this time"),
        ), post="edge-groups/{group}/release/", done=RELEASED),
        Verb("sampling", "Configure which images devices of a group store for annotation.", (
            GROUP,
            option("--percent", type=int, field="keep_percent", help="share of all processed images, at random; 0: "
                                                                     "none"),
            option("--below", type=int, field="keep_below",
                   help="images with a lower confidence, in percent; 0: none"),
            option("--days", type=int, field="keep_days", help="days they are stored for annotation"),
        ), post="edge-groups/{group}/sampling/", done=_sampling),
        Verb("annotate", "Create a dataset from images sent by devices.",
             (GROUP, option("name", help="name of the dataset")),
             post="edge-groups/{group}/annotate/", done="Created dataset {row[dataset]} from the images."),
        Verb("log", "Print the last lines of a device.", (ID,), get="edge-devices/{id}/log/", show=_print_log),
        Verb("rollback", "Roll all devices back to the previous version.", (GROUP,),
             post="edge-groups/{group}/rollback/", done=RELEASED),
        Verb("revoke", "Revoke the token of a device.", (ID,), post="edge-devices/{id}/revoke/",
             done="The token of {row[name]} is revoked; the device keeps its current model."),
        Verb("remove", "Delete a device.", (ID, YES),
             delete="edge-devices/{id}/", confirm="Delete device {args.id}?", done="Deleted device {args.id}."),
        Verb("delete", "Delete a device group.", (GROUP, YES), delete="edge-groups/{group}/",
             confirm="Delete group {args.group} with its list of devices?", done="Deleted group {args.group}."),
    ),
}  # fmt: skip
