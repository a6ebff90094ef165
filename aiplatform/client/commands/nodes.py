"""`aip nodes`: machines."""

from __future__ import annotations

import argparse
from typing import Any

from aiplatform.client import output
from aiplatform.client.commands.lookup import node
from aiplatform.client.commands.verbs import Noun, Nouns, Parent, confirm, done, paging, show_list, show_one
from aiplatform.client.output import Column


def _rates(known: dict[str, Any]) -> str:
    """Peak rates of a card of the catalogue; empty for any other."""
    return ", ".join(f"{name} {known[name]:g}" for name in ("fp64", "fp32", "mixed") if known.get(name) is not None)


def _cards(row: Any) -> str:
    cards = [device for device in row.get("devices", ()) if device["kind"] != "cpu"]
    free = sum(device["used"] == 0 and device["health"] == "ok" for device in cards)
    return f"{free} of {len(cards)} free" if cards else "none"


def _mps(row: Any) -> str:
    said = " ".join([*(row.get("mps_not") or []), row.get("mps_gain") or ""]).strip()
    return f"{'allowed' if row.get('mps') else 'off'}{'. ' if said else ''}{said}"


COLUMNS: list[Column] = [
    ("id", "id"),
    ("name", "name"),
    ("state", "state"),
    ("cards", _cards),
    ("cores", "cpu_cores"),
    ("address", "address"),
    ("heard of", lambda row: output.ago(row.get("heartbeat_at"))),
]
FIELDS: list[Column] = [
    *((heading.capitalize(), source) for heading, source in COLUMNS),
    ("Drained", "drain"),
    ("Keeps packages of", lambda row: _counted(row.get("keeps") or {})),
    ("Images and temporary files", "scratch"),
    ("Advice", "advice"),
    ("MPS", _mps),
]
EVENTS: list[Column] = [
    ("when", lambda row: output.ago(row.get("at"))),
    ("device", "device"),
    ("what happened", "sentence"),
    ("by", "by"),
]
DEVICES: list[Column] = [
    ("node", "node"),
    ("device", lambda row: f"{row['kind']}{row['index']}"),
    ("model", "model"),
    ("used", lambda row: f"{row['used']}/{row['capacity']}"),
    ("memory", lambda row: f"{row['memory_mib'] / 1024:.0f} GiB" if row["memory_mib"] else ""),
    ("TFLOPS", lambda row: _rates(row.get("known") or {})),
    ("GB/s", lambda row: str((row.get("known") or {}).get("bandwidth", ""))),
    ("health", "health"),
    ("why", "health_note"),
    ("simulated", lambda row: "yes" if row["simulated"] else ""),
]
TOKENS: list[Column] = [
    ("id", "id"),
    ("token", "prefix"),
    ("made by", "made_by"),
    ("until", "expires_at"),
    ("node", "node"),
]


def add(nouns: Nouns, parent: Parent) -> None:
    nodes = Noun(nouns, parent, "nodes", "Machines: look, drain, remove, let further ones join.")
    verb = nodes.verb("list", node_list, "List machines.")
    verb.add_argument("--state", help="only machines in this state")
    paging(verb)
    nodes.verb("show", show, "Show one machine.").add_argument("node", help="name or id")
    nodes.verb("events", events, "Print a machine's event log.").add_argument("node", help="name or id")
    verb = nodes.verb(
        "devices", devices, "List cards and processors with what of them is used; 8 shares to a card or a CPU slot."
    )
    verb.add_argument("--node", help="only of this machine: name or id")
    verb.add_argument("--kind", help="only these: gpu, npu or cpu")
    nodes.verb("drain", request, "Start nothing new there; what runs goes on.").add_argument("node", help="name or id")
    nodes.verb("undrain", request, "Let it take work again.").add_argument("node", help="name or id")
    nodes.verb("evict", request, "Let unwilling work be moved off its cards.").add_argument("node", help="name or id")
    nodes.verb("keep", request, "Move no further work off its cards.").add_argument("node", help="name or id")
    verb = nodes.verb("mps-on", request, "Let jobs on shares of its cards compute at the same time, by CUDA MPS.")
    verb.add_argument("node", help="name or id")
    verb = nodes.verb("mps-off", request, "Let no further job use MPS there.")
    verb.add_argument("node", help="name or id")
    verb = nodes.verb("remove", remove, "Take it out of the cluster; refused while work runs there.")
    verb.add_argument("node", help="name or id")
    verb.add_argument("-y", "--yes", action="store_true", help="do not ask")
    verb = nodes.verb("token", token, "Make a one-time token with which a machine joins.")
    verb.add_argument("--hours", type=int, default=24, help="how long it may be used (24)")
    nodes.verb("tokens", tokens, "List tokens.")
    nodes.verb("revoke", revoke, "Make a token worthless.").add_argument("id")


def node_list(args: argparse.Namespace) -> None:
    rows = args.client.pages("nodes/", limit=args.limit, state=args.state)
    show_list(args, rows, COLUMNS, empty="No machines.")


def show(args: argparse.Namespace) -> None:
    show_one(args, args.client.get(f"nodes/{node(args.client, args.node)}/"), FIELDS)


def events(args: argparse.Namespace) -> None:
    rows = args.client.get(f"nodes/{node(args.client, args.node)}/events/")
    show_list(args, rows, EVENTS, empty="Nothing to tell.")


def devices(args: argparse.Namespace) -> None:
    filters = {"node": node(args.client, args.node) if args.node else None, "kind": args.kind}
    show_list(args, args.client.pages("devices/", **filters), DEVICES, empty="No devices.")


def request(args: argparse.Namespace) -> None:
    row = args.client.post(f"nodes/{node(args.client, args.node)}/{args.verb}/")
    done(args, row, f"{row['name']} is {row['state']}.{_held_back(row) if args.verb == 'drain' else ''}")


def _counted(keeps: dict[str, int]) -> str:
    words = {"live": "running", "waiting": "waiting", "over": "stopped"}
    return ", ".join(f"{keeps[key]} {word}" for key, word in words.items() if keeps.get(key))


def _held_back(row: Any) -> str:
    """What a drained machine keeps from starting."""
    counted = _counted(row.get("keeps") or {})
    return f" Own packages of jobs lie there ({counted}): these start nowhere else." if counted else ""


def remove(args: argparse.Namespace) -> None:
    node_id = node(args.client, args.node)
    confirm(args, f"Take {args.node} out of the cluster?")
    row = args.client.post(f"nodes/{node_id}/remove/")
    done(args, row, f"{row['name']} is removed.")


def token(args: argparse.Namespace) -> None:
    row = args.client.post("nodes/tokens/", {"hours": args.hours})
    if args.json:
        output.as_json(row)
    else:
        print(row["token"])


def tokens(args: argparse.Namespace) -> None:
    show_list(args, args.client.pages("nodes/tokens/"), TOKENS, empty="No tokens.")


def revoke(args: argparse.Namespace) -> None:
    args.client.delete(f"nodes/tokens/{args.id}/")
    done(args, None, "The token is gone.")
