"""How fast a version answers on each kind of hardware: as devices say, and as measurements on nodes found.

What a device says is its own word. It is kept within bounds and shown; nothing is chosen or refused by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from statistics import median
from typing import Any

from aiplatform.lib.numbers import finite
from aiplatform.lib.parsers import is_sound
from aiplatform.lib.registry import Registry, dotted_name
from inference.registry.models import ModelTask, ModelVersion

LONGEST = 100
MOST_READ = 10_000  # of what devices and nodes said of a version, the newest
MOST_KINDS = 50
CPU = "CPUExecutionProvider"
OPENVINO = "OpenVINO"
#: Speeds from outside of the cluster: ids of versions → (id, values as in `HardwareSpeed`, and "node": "").
SOURCES: Registry[Callable[[Iterable[int]], list[tuple[int, dict[str, Any]]]]] = Registry(
    "source of speeds", name=dotted_name
)


@dataclass(frozen=True)
class HardwareSpeed:
    """One kind of hardware: which, how many of it, and the median of what each of them said."""

    hardware: str  # name of the card, else of the processor
    machine: str  # its architecture; "" where nobody said so
    threads: int
    provider: str  # what ran the model: a name of ONNX Runtime's, or OpenVINO
    devices: int  # outside of the cluster
    nodes: tuple[str, ...]  # of the cluster
    p50_ms: float
    p95_ms: float
    memory_mib: float | None


def to_text(value: Any) -> str:
    return value.strip()[:LONGEST] if isinstance(value, str) and is_sound(value) else ""


def of(version: ModelVersion) -> list[HardwareSpeed]:
    """Kinds of hardware that a version was timed on, the fastest first; for whoever sees the version."""
    return of_many([version.pk]).get(version.pk, [])


def of_many(versions: Iterable[int]) -> dict[int, list[HardwareSpeed]]:
    """The same for several versions, by their keys."""
    found: dict[int, dict[tuple[Any, ...], list[dict[str, Any]]]] = {}
    for version, said in [*chain.from_iterable(source(versions) for source in SOURCES), *_of_nodes(versions)]:
        kind = tuple(said[name] for name in ("hardware", "machine", "threads", "provider"))
        found.setdefault(version, {}).setdefault(kind, []).append(said)
    return {
        version: sorted((_kind(said) for said in kinds.values()), key=lambda row: row.p50_ms)[:MOST_KINDS]
        for version, kinds in found.items()
    }


def _of_nodes(versions: Iterable[int]) -> list[tuple[int, dict[str, Any]]]:
    """The newest measurement of each node in each setting."""
    tasks = ModelTask.objects.filter(version__in=versions, act=ModelTask.Act.MEASURE).exclude(figures={})
    newest: dict[tuple[Any, ...], tuple[int, dict[str, Any]]] = {}
    for version, figures in tasks.order_by("-pk").values_list("version_id", "figures")[:MOST_READ]:
        said: dict[str, Any] = {
            "hardware": to_text(figures.get("card")) or to_text(figures.get("processor")),
            **{name: to_text(figures.get(name)) for name in ("machine", "provider", "node")},
            **{name: finite(figures.get(name)) for name in ("p50_ms", "p95_ms", "memory_mib")},
            "threads": int(finite(figures.get("threads")) or 0),
        }
        if said["p50_ms"] is None:
            continue
        said["p95_ms"] = said["p50_ms"] if said["p95_ms"] is None else said["p95_ms"]
        key = (version, *(said[name] for name in ("node", "hardware", "machine", "threads", "provider")))
        newest.setdefault(key, (version, said))
    return list(newest.values())


def _kind(said: list[dict[str, Any]]) -> HardwareSpeed:
    first, nodes = said[0], sorted({one["node"] for one in said if one["node"]})
    memory = [one["memory_mib"] for one in said if one["memory_mib"] is not None]
    return HardwareSpeed(
        hardware=first["hardware"],
        machine=first["machine"],
        threads=first["threads"],
        provider=first["provider"],
        devices=sum(1 for one in said if not one["node"]),
        nodes=tuple(nodes),
        p50_ms=median(one["p50_ms"] for one in said),
        p95_ms=median(one["p95_ms"] for one in said),
        memory_mib=median(memory) if memory else None,
    )
