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
    return (
        f" Installed packages of jobs are stored there ({counted}): these jobs start nowhere else." if counted else ""
    )


COLUMNS = columns(
    "id, name, state, devices=|devices, cores=cpu_cores, address, last heartbeat=heartbeat_at|ago",
    devices=_free_devices,
)
FIELDS = titled(COLUMNS) + columns(
    "Drained=drain, Stores packages of=keeps|counted, Images and temporary files=scratch, Advice=advice, MPS=|mps",
    counted=_counted, mps=_mps,
)  # fmt: skip
EVENTS = columns("when=at|ago, device, event=sentence, by")
DEVICES = columns(
    "node, device=|name, model, used=|use, memory=memory_mib|gib, TFLOPS=known|rates, GB/s=known.bandwidth, health, "
    "why=health_note, simulated=simulated|mark",
    name=lambda row: f"{row['kind']}{row['index']}",
    use=lambda row: f"{row['used']}/{row['capacity']}",
    gib=lambda mib: f"{mib / 1024:.0f} GiB" if mib else "",
    rates=_rates,
)
TOKENS = columns("id, token=prefix, created by=made_by, valid until=expires_at, node")
NODE = option("node", find=node, help="name or id")
DONE = "{row[name]} is {row[state]}."

NOUNS = {
    "nodes": (
        Verb("list", "List nodes.", (option("--state", help="only nodes in this state"), LIMIT),
             get="nodes/", table=COLUMNS, empty="No nodes."),
        Verb("show", "Show one node.", (NODE,), get="nodes/{node}/", record=FIELDS),
        Verb("events", "Print the event log of a node.", (NODE,),
             get="nodes/{node}/events/", table=EVENTS, empty="No events."),
        Verb("devices", "List devices with their usage; 8 shares per GPU or CPU slot.", (
            option("--node", find=node, help="only of this node: name or id"),
            option("--kind", help="only these: gpu, npu or cpu"),
        ), get="devices/", table=DEVICES, empty="No devices."),
        Verb("drain", "Start no new jobs on a node; running jobs continue.", (NODE,),
             post="nodes/{node}/drain/",
             done=lambda args, row: f"{row['name']} is {row['state']}.{_held_back(row)}"),
        Verb("undrain", "Accept jobs on a node again.", (NODE,), post="nodes/{node}/undrain/", done=DONE),
        Verb("evict", "Allow evictions of jobs from "
                      "the GPUs of a node.", (NODE,), post="nodes/{node}/evict/", done=DONE),
        Verb("keep", "Forbid evictions on a node.", (NODE,), post="nodes/{node}/keep/", done=DONE),
        Verb("mps-on", "Let jobs on GPU shares compute at the same time, with CUDA MPS.", (NODE,),
             post="nodes/{node}/mps-on/", done=DONE),
        Verb("mps-off", "Disable MPS for new jobs on a node.", (NODE,), post="nodes/{node}/mps-off/", done=DONE),
        Verb("remove", "Remove a node from the cluster; rejected while jobs run there.", (NODE, YES),
             post="nodes/{node}/remove/", confirm="Remove {args.node} from the cluster?",
             done="Removed {row[name]}."),
        Verb("token", "Create a one-time token to join a node.",
             (option("--hours", type=int, default=24, help="validity in hours (24)"),),
             post="nodes/tokens/", prints="token"),
        Verb("tokens", "List tokens.", get="nodes/tokens/", table=TOKENS, empty="No tokens."),
        Verb("revoke", "Delete a token.", (ID,), delete="nodes/tokens/{id}/", done="The token was deleted."),
    ),
}  # fmt: skip
