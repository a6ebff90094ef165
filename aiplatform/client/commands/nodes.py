"""`aip nodes`: nodes and the tokens with which further ones join."""

from __future__ import annotations

from typing import Any

from aiplatform.client.commands.lookup import node
from aiplatform.client.options import ID, LIMIT, YES, option
from aiplatform.client.output import columns, titled
from aiplatform.client.verbs import Verb


def _rates(device: dict[str, Any] | None) -> str:
    """Peak rates of a GPU of the catalogue; empty for any other."""
    rates = device or {}
    return ", ".join(f"{name} {rates[name]:g}" for name in ("fp64", "fp32", "mixed") if rates.get(name) is not None)


def _free_devices(row: Any) -> str:
    devices = [device for device in row.get("devices", ()) if device["kind"] != "cpu"]
    free = sum(device["used"] == 0 and device["health"] == "ok" for device in devices)
    return f"{free} of {len(devices)} free" if devices else "none"


def _mps(row: Any) -> str:
    notes = " ".join([*(row.get("mps_not") or []), row.get("mps_gain") or ""]).strip()
    return f"{'allowed' if row.get('mps') else 'off'}{'. ' if notes else ''}{notes}"


def _counted(jobs: dict[str, int] | None) -> str:
    states = {"live": "running", "waiting": "waiting", "over": "stopped"}
    return ", ".join(f"{(jobs or {})[key]} {state}" for key, state in states.items() if (jobs or {}).get(key))


def _held_back(row: Any) -> str:
    """The jobs that a drained node keeps from starting."""
    counted = _counted(row.get("keeps"))
    return f" Own packages of jobs lie there ({counted}): these start nowhere else." if counted else ""


COLUMNS = columns(
    "id, name, state, cards=|devices, cores=cpu_cores, address, heard of=heartbeat_at|ago", devices=_free_devices
)
FIELDS = titled(COLUMNS) + columns(
    "Drained=drain, Keeps packages of=keeps|counted, Images and temporary files=scratch, Advice=advice, MPS=|mps",
    counted=_counted, mps=_mps,
)  # fmt: skip
EVENTS = columns("when=at|ago, device, what happened=sentence, by")
DEVICES = columns(
    "node, device=|name, model, used=|use, memory=memory_mib|gib, TFLOPS=known|rates, GB/s=known.bandwidth, health, "
    "why=health_note, simulated=simulated|mark",
    name=lambda row: f"{row['kind']}{row['index']}",
    use=lambda row: f"{row['used']}/{row['capacity']}",
    gib=lambda mib: f"{mib / 1024:.0f} GiB" if mib else "",
    rates=_rates,
)
TOKENS = columns("id, token=prefix, made by=made_by, until=expires_at, node")
NODE = option("node", find=node, help="name or id")
DONE = "{row[name]} is {row[state]}."

NOUNS = {
    "nodes": (
        Verb("list", "List machines.", (option("--state", help="only machines in this state"), LIMIT),
             get="nodes/", table=COLUMNS, empty="No machines."),
        Verb("show", "Show one machine.", (NODE,), get="nodes/{node}/", record=FIELDS),
        Verb("events", "Print a machine's event log.", (NODE,),
             get="nodes/{node}/events/", table=EVENTS, empty="Nothing to tell."),
        Verb("devices", "List cards and processors with what of them is used; 8 shares to a card or a CPU slot.", (
            option("--node", find=node, help="only of this machine: name or id"),
            option("--kind", help="only these: gpu, npu or cpu"),
        ), get="devices/", table=DEVICES, empty="No devices."),
        Verb("drain", "Start nothing new there; what runs goes on.", (NODE,),
             post="nodes/{node}/drain/",
             done=lambda args, row: f"{row['name']} is {row['state']}.{_held_back(row)}"),
        Verb("undrain", "Let it take work again.", (NODE,), post="nodes/{node}/undrain/", done=DONE),
        Verb("evict", "Let unwilling work be moved off its cards.", (NODE,), post="nodes/{node}/evict/", done=DONE),
        Verb("keep", "Move no further work off its cards.", (NODE,), post="nodes/{node}/keep/", done=DONE),
        Verb("mps-on", "Let jobs on shares of its cards compute at the same time, by CUDA MPS.", (NODE,),
             post="nodes/{node}/mps-on/", done=DONE),
        Verb("mps-off", "Let no further job use MPS there.", (NODE,), post="nodes/{node}/mps-off/", done=DONE),
        Verb("remove", "Take it out of the cluster; refused while work runs there.", (NODE, YES),
             post="nodes/{node}/remove/", confirm="Take {args.node} out of the cluster?",
             done="{row[name]} is removed."),
        Verb("token", "Make a one-time token with which a machine joins.",
             (option("--hours", type=int, default=24, help="how long it may be used (24)"),),
             post="nodes/tokens/", prints="token"),
        Verb("tokens", "List tokens.", get="nodes/tokens/", table=TOKENS, empty="No tokens."),
        Verb("revoke", "Make a token worthless.", (ID,), delete="nodes/tokens/{id}/", done="The token was deleted."),
    ),
}  # fmt: skip
