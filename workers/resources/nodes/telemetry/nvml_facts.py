"""What NVML says of the GPUs of this node beyond telemetry: versions, modes, clocks, limits and links."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pynvml

from workers.resources.nodes.telemetry import nvml

TIMEOUT_S = 10.0


def read(timeout_s: float = TIMEOUT_S) -> dict[str, Any]:
    """Facts of the driver and of each GPU, JSON-ready; what a GPU or driver does not support is left out.

    Returns:
        {"driver", "cuda_driver", "gpus": [{"index", "uuid", "name", …}], "links": [[word of GPU i to GPU j]]}; {} where
        there is no driver, or it does not answer.
    """
    try:
        answer = nvml.Question(_read).answer(time.monotonic() + timeout_s)
    except (pynvml.NVMLError, nvml.Silent, OSError):
        return {}
    return answer if isinstance(answer, dict) else {}


def _read() -> dict[str, Any]:
    pynvml.nvmlInit()
    handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
    cuda = _or_none(pynvml.nvmlSystemGetCudaDriverVersion_v2)
    return {
        "driver": _text(_or_none(pynvml.nvmlSystemGetDriverVersion)),
        "cuda_driver": f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else None,
        "gpus": [_gpu(index, handle) for index, handle in enumerate(handles)],
        "links": [[_link(first, other) for other in handles] for first in handles],
    }


def _gpu(index: int, handle: Any) -> dict[str, Any]:
    modes = {
        pynvml.NVML_COMPUTEMODE_DEFAULT: "default",
        pynvml.NVML_COMPUTEMODE_PROHIBITED: "prohibited",
        pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS: "exclusive process",
    }
    memory = _or_none(pynvml.nvmlDeviceGetMemoryInfo, handle)
    capability = _or_none(pynvml.nvmlDeviceGetCudaComputeCapability, handle)
    mig, ecc = _or_none(pynvml.nvmlDeviceGetMigMode, handle), _or_none(pynvml.nvmlDeviceGetEccMode, handle)
    mode = _or_none(pynvml.nvmlDeviceGetComputeMode, handle)
    bus = _or_none(pynvml.nvmlDeviceGetPciInfo, handle)
    generation = _or_none(pynvml.nvmlDeviceGetMaxPcieLinkGeneration, handle)
    width = _or_none(pynvml.nvmlDeviceGetMaxPcieLinkWidth, handle)
    facts = {
        "index": index,
        "uuid": _text(_or_none(pynvml.nvmlDeviceGetUUID, handle)),
        "name": _text(_or_none(pynvml.nvmlDeviceGetName, handle)),
        "bus": _text(bus.busId) if bus else None,
        "memory_mib": memory.total // nvml.MIB if memory else None,
        "compute_capability": ".".join(map(str, capability)) if capability else None,
        "compute_mode": modes.get(mode, str(mode)) if mode is not None else None,
        "mig": bool(mig[0]) if mig else None,
        "ecc": bool(ecc[0]) if ecc else None,
        "persistence": _flag(_or_none(pynvml.nvmlDeviceGetPersistenceMode, handle)),
        "power_limit_w": _in_thousands(_or_none(pynvml.nvmlDeviceGetEnforcedPowerLimit, handle)),
        "power_limit_default_w": _in_thousands(_or_none(pynvml.nvmlDeviceGetPowerManagementDefaultLimit, handle)),
        "clock_sm_mhz": _or_none(pynvml.nvmlDeviceGetClockInfo, handle, pynvml.NVML_CLOCK_SM),
        "clock_sm_max_mhz": _or_none(pynvml.nvmlDeviceGetMaxClockInfo, handle, pynvml.NVML_CLOCK_SM),
        "clock_memory_max_mhz": _or_none(pynvml.nvmlDeviceGetMaxClockInfo, handle, pynvml.NVML_CLOCK_MEM),
        "pcie": f"{generation}.0 x{width}" if generation and width else None,
    }
    return {name: value for name, value in facts.items() if value is not None}


def _link(first: Any, other: Any) -> str:
    """How two GPUs are joined, in the words of `nvidia-smi topo -m`."""
    if first is other:
        return "X"
    ends = {end.lower() for end in nvml.linked(first)}
    bus = _or_none(pynvml.nvmlDeviceGetPciInfo, other)
    if ends and bus and (_text(bus.busId) or "").lower() in ends:
        return "NVLink"
    if ends & {end.lower() for end in nvml.linked(other)}:
        return "NVSwitch"
    labels = {
        pynvml.NVML_TOPOLOGY_INTERNAL: "PCIe (same board)", pynvml.NVML_TOPOLOGY_SINGLE: "PCIe (one switch)",
        pynvml.NVML_TOPOLOGY_MULTIPLE: "PCIe (switches)", pynvml.NVML_TOPOLOGY_HOSTBRIDGE: "PCIe (host bridge)",
        pynvml.NVML_TOPOLOGY_NODE: "PCIe (NUMA node)", pynvml.NVML_TOPOLOGY_SYSTEM: "PCIe (between sockets)",
    }  # fmt: skip
    return labels.get(_or_none(pynvml.nvmlDeviceGetTopologyCommonAncestor, first, other), "unknown")


def _or_none(ask: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return ask(*arguments)
    except pynvml.NVMLError:
        return None


def _text(value: str | bytes | None) -> str | None:
    return value.decode() if isinstance(value, bytes) else value


def _flag(value: int | None) -> bool | None:
    return None if value is None else bool(value)


def _in_thousands(value: int | None) -> float | None:
    return None if value is None else value / 1000
