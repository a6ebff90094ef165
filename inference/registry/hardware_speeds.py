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

MAX_LENGTH = 100
MAX_READ = 10_000  # of what devices and nodes said of a version, the newest
MAX_KINDS = 50
CPU = "CPUExecutionProvider"
OPENVINO = "OpenVINO"
#: Speeds from outside of the cluster: ids of versions → (id, values as in `HardwareSpeed`, and "node": "").
SOURCES: Registry[Callable[[Iterable[int]], list[tuple[int, dict[str, Any]]]]] = Registry(
    "source of speeds", name=dotted_name
)


@dataclass(frozen=True)
class HardwareSpeed:
    """A kind of hardware: its name, the number of devices, and the medians of their measurements."""

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
    return value.strip()[:MAX_LENGTH] if isinstance(value, str) and is_sound(value) else ""


def for_version(version: ModelVersion) -> list[HardwareSpeed]:
    """Return the kinds of hardware that a version was measured on, the fastest first. The caller checks visibility."""
    return for_versions([version.pk]).get(version.pk, [])


def for_versions(versions: Iterable[int]) -> dict[int, list[HardwareSpeed]]:
    """Return the kinds of hardware of several versions by their keys."""
    groups: dict[int, dict[tuple[Any, ...], list[dict[str, Any]]]] = {}
    for version, measurement in [
        *chain.from_iterable(source(versions) for source in SOURCES),
        *_node_measurements(versions),
    ]:
        kind = tuple(measurement[name] for name in ("hardware", "machine", "threads", "provider"))
        groups.setdefault(version, {}).setdefault(kind, []).append(measurement)
    return {
        version: sorted((_kind(measurement) for measurement in kinds.values()), key=lambda row: row.p50_ms)[:MAX_KINDS]
        for version, kinds in groups.items()
    }


def _node_measurements(versions: Iterable[int]) -> list[tuple[int, dict[str, Any]]]:
    """Return the newest measurement of each node in each setting."""
    tasks = ModelTask.objects.filter(version__in=versions, act=ModelTask.Act.MEASURE).exclude(figures={})
    newest: dict[tuple[Any, ...], tuple[int, dict[str, Any]]] = {}
    for version, figures in tasks.order_by("-pk").values_list("version_id", "figures")[:MAX_READ]:
        measurement: dict[str, Any] = {
            "hardware": to_text(figures.get("card")) or to_text(figures.get("processor")),
            **{name: to_text(figures.get(name)) for name in ("machine", "provider", "node")},
            **{name: finite(figures.get(name)) for name in ("p50_ms", "p95_ms", "memory_mib")},
            "threads": int(finite(figures.get("threads")) or 0),
        }
        if measurement["p50_ms"] is None:
            continue
        measurement["p95_ms"] = measurement["p50_ms"] if measurement["p95_ms"] is None else measurement["p95_ms"]
        key = (version, *(measurement[name] for name in ("node", "hardware", "machine", "threads", "provider")))
        newest.setdefault(key, (version, measurement))
    return list(newest.values())


def _kind(measurements: list[dict[str, Any]]) -> HardwareSpeed:
    first, nodes = measurements[0], sorted({row["node"] for row in measurements if row["node"]})
    memory = [row["memory_mib"] for row in measurements if row["memory_mib"] is not None]
    return HardwareSpeed(
        hardware=first["hardware"],
        machine=first["machine"],
        threads=first["threads"],
        provider=first["provider"],
        devices=sum(1 for row in measurements if not row["node"]),
        nodes=tuple(nodes),
        p50_ms=median(row["p50_ms"] for row in measurements),
        p95_ms=median(row["p95_ms"] for row in measurements),
        memory_mib=median(memory) if memory else None,
    )
