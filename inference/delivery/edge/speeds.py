"""Speeds that devices report. They are checked and shown; nothing is chosen or refused by them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from aiplatform.lib.numbers import finite
from inference.delivery.edge.models import DeviceSpeed, EdgeDevice
from inference.registry.hardware_speeds import CPU, MAX_READ, OPENVINO, to_text

MAX_MS, MAX_MIB, MAX_RUNS, MAX_THREADS = 600_000.0, float(4 << 20), 10_000, 4096


def record(device: EdgeDevice, report: Any, *, hardware: Mapping[str, Any]) -> None:
    """Store the measured speed of the package that a device runs; invalid reports are skipped."""
    if not isinstance(report, Mapping) or (columns := _to_columns(report, hardware)) is None:
        return
    packages = (package for package in (device.group.wanted, device.group.before) if package is not None)
    version = next((candidate.version_id for candidate in packages if candidate.sha256 == report.get("package")), None)
    if version is None:
        return
    row = DeviceSpeed.objects.filter(device=device, version=version).first()
    if row is None or any(getattr(row, name) != value for name, value in columns.items()):
        DeviceSpeed.objects.update_or_create(device=device, version_id=version, defaults=columns)


def _to_columns(report: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the columns of a speed report; None where a time is missing or impossible."""
    p50, p95, memory = (finite(report.get(name)) for name in ("p50_ms", "p95_ms", "memory_mib"))
    runs, threads = finite(report.get("runs")), finite(report.get("threads"))
    if p50 is None or p95 is None or not 0 < p50 <= p95 <= MAX_MS:
        return None
    if runs is None or not 1 <= runs <= MAX_RUNS or threads is None or not 1 <= threads <= MAX_THREADS:
        return None
    provider = to_text(report.get("provider"))
    names = ("model", "processor", "machine") if provider in (CPU, OPENVINO) else ("card", "model", "processor")
    return {
        "hardware": next((name for name in (to_text(facts.get(key)) for key in names) if name), ""),
        "machine": to_text(facts.get("machine")),
        "threads": int(threads),
        "provider": provider,
        "runtime": to_text(report.get("runtime")),
        "p50_ms": p50,
        "p95_ms": p95,
        "runs": int(runs),
        "memory_mib": memory if memory is not None and 0 <= memory <= MAX_MIB else None,
    }


def of_devices(versions: Iterable[int]) -> list[tuple[int, dict[str, Any]]]:
    names = ("hardware", "machine", "threads", "provider", "p50_ms", "p95_ms", "memory_mib")
    rows = DeviceSpeed.objects.filter(version__in=versions).values("version_id", *names)[:MAX_READ]
    return [(row["version_id"], row | {"node": ""}) for row in rows]
