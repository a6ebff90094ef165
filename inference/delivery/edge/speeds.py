"""How fast a version answers on each kind of hardware: as devices say, and as measurements on nodes found.

What a device says is its own word. It is kept within bounds and shown; nothing is chosen or refused by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from aiplatform.lib.numbers import finite
from aiplatform.lib.parsers import is_sound
from inference.delivery.edge.models import DeviceSpeed, EdgeDevice
from inference.registry.models import ModelTask, ModelVersion

MOST_MS, MOST_MIB, MOST_RUNS, MOST_THREADS = 600_000.0, float(4 << 20), 10_000, 4096
LONGEST = 100
MOST_READ = 10_000  # of what devices and nodes said of a version, the newest
MOST_KINDS = 50
CPU = "CPUExecutionProvider"
OPENVINO = "OpenVINO"


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


def keep(device: EdgeDevice, given: Any, *, hardware: Mapping[str, Any]) -> None:
    """Keep what a device says of the package that it runs; what cannot be is passed over."""
    if not isinstance(given, Mapping) or (sound := _sound(given, hardware)) is None:
        return
    packages = (package for package in (device.group.wanted, device.group.before) if package is not None)
    version = next((one.version_id for one in packages if one.sha256 == given.get("package")), None)
    if version is None:
        return
    row = DeviceSpeed.objects.filter(device=device, version=version).first()
    if row is None or any(getattr(row, name) != value for name, value in sound.items()):
        DeviceSpeed.objects.update_or_create(device=device, version_id=version, defaults=sound)


def _sound(given: Mapping[str, Any], about: Mapping[str, Any]) -> dict[str, Any] | None:
    """Columns of what a device says; None where a time is missing, or none that a model can take."""
    p50, p95, memory = (finite(given.get(name)) for name in ("p50_ms", "p95_ms", "memory_mib"))
    runs, threads = finite(given.get("runs")), finite(given.get("threads"))
    if p50 is None or p95 is None or not 0 < p50 <= p95 <= MOST_MS:
        return None
    if runs is None or not 1 <= runs <= MOST_RUNS or threads is None or not 1 <= threads <= MOST_THREADS:
        return None
    provider = _word(given.get("provider"))
    names = ("model", "processor", "machine") if provider in (CPU, OPENVINO) else ("card", "model", "processor")
    return {
        "hardware": next((name for name in (_word(about.get(one)) for one in names) if name), ""),
        "machine": _word(about.get("machine")),
        "threads": int(threads),
        "provider": provider,
        "runtime": _word(given.get("runtime")),
        "p50_ms": p50,
        "p95_ms": p95,
        "runs": int(runs),
        "memory_mib": memory if memory is not None and 0 <= memory <= MOST_MIB else None,
    }


def _word(value: Any) -> str:
    return value.strip()[:LONGEST] if isinstance(value, str) and is_sound(value) else ""


def of(version: ModelVersion) -> list[HardwareSpeed]:
    """Kinds of hardware that a version was timed on, the fastest first; for whoever sees the version."""
    return of_many([version.pk]).get(version.pk, [])


def of_many(versions: Iterable[int]) -> dict[int, list[HardwareSpeed]]:
    """The same for several versions, by their keys."""
    found: dict[int, dict[tuple[Any, ...], list[dict[str, Any]]]] = {}
    for version, said in [*_of_devices(versions), *_of_nodes(versions)]:
        kind = tuple(said[name] for name in ("hardware", "machine", "threads", "provider"))
        found.setdefault(version, {}).setdefault(kind, []).append(said)
    return {
        version: sorted((_kind(said) for said in kinds.values()), key=lambda row: row.p50_ms)[:MOST_KINDS]
        for version, kinds in found.items()
    }


def _of_devices(versions: Iterable[int]) -> list[tuple[int, dict[str, Any]]]:
    names = ("hardware", "machine", "threads", "provider", "p50_ms", "p95_ms", "memory_mib")
    rows = DeviceSpeed.objects.filter(version__in=versions).values("version_id", *names)[:MOST_READ]
    return [(row["version_id"], row | {"node": ""}) for row in rows]


def _of_nodes(versions: Iterable[int]) -> list[tuple[int, dict[str, Any]]]:
    """The newest measurement of each node in each setting."""
    tasks = ModelTask.objects.filter(version__in=versions, act=ModelTask.Act.MEASURE).exclude(figures={})
    newest: dict[tuple[Any, ...], tuple[int, dict[str, Any]]] = {}
    for version, figures in tasks.order_by("-pk").values_list("version_id", "figures")[:MOST_READ]:
        said: dict[str, Any] = {
            "hardware": _word(figures.get("card")) or _word(figures.get("processor")),
            **{name: _word(figures.get(name)) for name in ("machine", "provider", "node")},
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
