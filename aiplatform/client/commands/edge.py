"""`aip edge`: groups of devices outside of the cluster."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from aiplatform.client import output
from aiplatform.client.commands import lookup, registry, versioned
from aiplatform.client.commands.verbs import Noun, Nouns, Parent, done, paging, show_list
from aiplatform.client.output import Column

GROUPS: list[Column] = [
    ("id", "id"),
    ("name", "name"),
    ("model", "wanted"),
    ("share", lambda row: f"{row['share']} %{' (halted)' if row['halted'] else ''}" if row["wanted"] else ""),
    ("devices", "devices"),
    ("made", lambda row: output.ago(row.get("created_at"))),
]
DEVICES: list[Column] = [
    ("id", "id"),
    ("name", "name"),
    ("state", lambda row: row["outcome"] if row["enrolled"] else "not enrolled"),
    ("runs", lambda row: row["package"][:12]),
    ("requests", lambda row: row["counters"].get("requests", "")),
    ("seen", lambda row: output.ago(row.get("seen_at"))),
    ("detail", "detail"),
]


def add(nouns: Nouns, parent: Parent) -> None:
    edge = Noun(nouns, parent, "edge", "Groups of devices outside of the cluster.")
    paging(edge.verb("list", groups, "List groups."))
    verb = edge.verb("create", create, "Make a group.")
    verb.add_argument("name")
    verb.add_argument("--days-offline", type=int, help="so long a device believes a release; 7 when left out")
    edge.verb("devices", devices, "List the devices of a group.").add_argument("group", help="id or name")
    verb = edge.verb("add", add_device, "Add a device; prints the one-time code that it is enrolled with.")
    verb.add_argument("group", help="id or name")
    verb.add_argument("name", help="of the device")
    verb = edge.verb("release", release, "Let a share of the devices run a version.")
    verb.add_argument("group", help="id or name")
    verb.add_argument("model", help=registry.VERSION)
    verb.add_argument("--share", type=int, help="percent of the devices: 1, 10, 50 or 100 (the default)")
    verb.add_argument("--soak-minutes", type=int, help="go on to the next share by itself after so long")
    verb = edge.verb("sampling", sampling, "Say which pictures the devices of a group keep for annotation.")
    verb.add_argument("group", help="id or name")
    verb.add_argument("--percent", type=int, help="of all that they answer, by chance; 0: none")
    verb.add_argument("--below", type=int, help="with an answer of a lower score, in percent; 0: none")
    verb.add_argument("--days", type=int, help="that they wait for annotation")
    verb = edge.verb("annotate", annotate, "Make a dataset of the pictures that devices sent.")
    verb.add_argument("group", help="id or name")
    verb.add_argument("name", help="of the dataset")
    edge.verb("log", log, "Print the last lines of a device.").add_argument("id")
    edge.verb("rollback", roll_back, "Let all devices run what the group ran before.").add_argument("group")
    edge.verb("revoke", revoke, "End the token of a device.").add_argument("id")
    verb = edge.verb("remove", remove, "Forget a device.")
    verb.add_argument("id")
    verb.add_argument("--yes", action="store_true", help="do not ask")
    verb = edge.verb("delete", delete, "Remove a group.")
    verb.add_argument("group", help="id or name")
    verb.add_argument("--yes", action="store_true", help="do not ask")


def groups(args: argparse.Namespace) -> None:
    rows = args.client.pages("edge-groups/", limit=args.limit)
    show_list(args, rows, GROUPS, empty="No groups. aip edge create makes one.")


def create(args: argparse.Namespace) -> None:
    fields: dict[str, Any] = {"name": args.name}
    if args.days_offline is not None:
        fields["days_offline"] = args.days_offline
    row = args.client.post("edge-groups/", fields, once=True)
    if not args.json:
        print(row["id"])
    done(args, row, f"Group {row['name']} is there. Add devices with aip edge add.")


def devices(args: argparse.Namespace) -> None:
    rows = args.client.get(f"edge-groups/{_group(args)}/devices/")
    show_list(args, rows, DEVICES, empty="No devices. aip edge add adds one.")


def add_device(args: argparse.Namespace) -> None:
    row = args.client.post(f"edge-groups/{_group(args)}/enrolment/", {"name": args.name})
    if not args.json:
        print(row["code"])
    site = args.client.config.url.rstrip("/")
    done(args, row, f"On the device: python3 aip-edge.pyz enrol --server {site} --code {row['code']}")


def release(args: argparse.Namespace) -> None:
    fields: dict[str, Any] = {"version": lookup.model_version(args.client, args.model)}
    if args.share is not None:
        fields["share"] = args.share
    if args.soak_minutes is not None:
        fields["soak_minutes"] = args.soak_minutes
    _said(args, args.client.post(f"edge-groups/{_group(args)}/release/", fields))


def sampling(args: argparse.Namespace) -> None:
    given = {f"keep_{name}": getattr(args, name) for name in ("percent", "below", "days")}
    fields = {name: value for name, value in given.items() if value is not None}
    row = args.client.post(f"edge-groups/{_group(args)}/sampling/", fields)
    if not (row["keep_percent"] or row["keep_below"]):
        done(args, row, f"Devices of {row['name']} keep no pictures.")
        return
    said = f"{row['keep_percent']} % by chance, and those with a score below {row['keep_below']} %"
    done(args, row, f"Devices of {row['name']} keep pictures: {said}, for {row['keep_days']} days.")


def annotate(args: argparse.Namespace) -> None:
    row = args.client.post(f"edge-groups/{_group(args)}/annotate/", {"name": args.name})
    done(args, row, f"Dataset {row['dataset']} is made of the pictures.")


def log(args: argparse.Namespace) -> None:
    found = args.client.get(f"edge-devices/{args.id}/log/")
    if args.json:
        done(args, found, "")
        return
    for line in found["lines"]:
        print(output.clean(f"{line['at'] or '?'} {line['text']}"))
    if found["left_out"]:
        print(f"{found['left_out']} lines of today were left out.")


def roll_back(args: argparse.Namespace) -> None:
    _said(args, args.client.post(f"edge-groups/{_group(args)}/rollback/", {}))


def _said(args: argparse.Namespace, row: Mapping[str, Any]) -> None:
    done(args, row, f"{row['wanted']} goes to {row['share']} % of the devices of {row['name']}.")


def revoke(args: argparse.Namespace) -> None:
    row = args.client.post(f"edge-devices/{args.id}/revoke/", {})
    done(args, row, f"The token of {row['name']} is revoked; it keeps the model that it runs.")


def remove(args: argparse.Namespace) -> None:
    route = f"edge-devices/{args.id}/"
    versioned.remove(args, route, question=f"Remove device {args.id}?", removed=f"Device {args.id} is removed.")


def delete(args: argparse.Namespace) -> None:
    route, name = f"edge-groups/{_group(args)}/", args.group
    question = f"Remove group {name} with its list of devices?"
    versioned.remove(args, route, question=question, removed=f"Group {name} is removed.")


def _group(args: argparse.Namespace) -> int:
    return lookup.edge_group(args.client, args.group)
