"""NVIDIA cards by NVML; the only file that imports pynvml.

A sick card can make the driver hang inside any call. Every card is therefore asked on a thread of its own:
the caller waits at most `TIMEOUT_S` for all of them, and a card that hangs is not asked again until it answers.
"""

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pynvml

from workers.resources.nodes.telemetry.links import groups
from workers.resources.nodes.telemetry.probe import Card, Fault, NoCards, Probe, Reading, Sharing

log = logging.getLogger(__name__)

TIMEOUT_S = 2.0
MIB = 1024 * 1024
SLICES = 100
"""Index of the first MIG slice of card 0; card 1 begins `SLICES_PER_CARD` later."""
SLICES_PER_CARD = 16


class Silent(Exception):
    """The driver did not answer in time."""


class Question:
    """One call on a thread of its own."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self._result: list[Any] = []
        self._failure: list[Exception] = []
        self.thread = threading.Thread(target=self._run, name="nvml", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self._result.append(self._call())
        except Exception as exc:  # noqa: BLE001 - raised again by the caller
            self._failure.append(exc)

    def answer(self, until: float) -> Any:
        """What the call returned or raised.

        Raises:
            Silent: nothing came until then (on the monotonic clock).
        """
        self.thread.join(max(0.0, until - time.monotonic()))
        if self._failure:
            raise self._failure[0]
        if not self._result:
            raise Silent("The driver does not answer.")
        return self._result[0]


class NvmlProbe:
    """Cards by the NVIDIA management library.

    Raises:
        Silent: the driver hangs while it is opened.
        pynvml.NVMLError: there is no driver or no library.
    """

    simulated = False

    def __init__(self, timeout_s: float = TIMEOUT_S) -> None:
        self.timeout_s = timeout_s
        self._hanging: dict[int, Question] = {}
        until = time.monotonic() + timeout_s
        Question(pynvml.nvmlInit).answer(until)
        self._cards: list[Card] = Question(_describe).answer(until)

    def cards(self) -> list[Card]:
        """Cards found when the probe was opened; a card that falls off the bus stays listed."""
        return list(self._cards)

    def read(self) -> list[Reading]:
        """One reading per GPU; one that hangs or is lost carries the fault."""
        until = time.monotonic() + self.timeout_s
        requested: dict[int, Question] = {}
        for card in self._cards:
            before = self._hanging.get(card.index)
            if before is None or not before.thread.is_alive():
                requested[card.index] = Question(partial(_read, card))
        readings = []
        for card in self._cards:
            question = requested.get(card.index)
            try:
                if question is None:
                    readings.append(Reading(card.index, fault=Fault.HUNG))
                    continue
                readings.append(question.answer(until))
                self._hanging.pop(card.index, None)
            except Silent:
                log.warning("card=%s does not answer within %.0f s", card.index, self.timeout_s)
                self._hanging[card.index] = requested[card.index]
                readings.append(Reading(card.index, fault=Fault.HUNG))
            except pynvml.NVMLError as exc:
                log.warning("card=%s lost: %s", card.index, exc)
                readings.append(Reading(card.index, fault=Fault.VANISHED))
        return readings


def _describe() -> list[Card]:
    cards = []
    count = pynvml.nvmlDeviceGetCount()
    handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(count)]
    buses = [_text(pynvml.nvmlDeviceGetPciInfo(handle).busId) for handle in handles]
    grouped = groups(buses, [linked(handle) for handle in handles], [_numa_node(bus) for bus in buses])
    for index, handle in enumerate(handles):
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
        card = Card(
            index,
            _text(pynvml.nvmlDeviceGetUUID(handle)),
            _text(pynvml.nvmlDeviceGetName(handle)),
            int(memory.total // MIB),
            group=grouped[index],
        )
        cards += _slices(handle, card) or [card]
    return cards


def _slices(handle: Any, card: Card) -> list[Card]:
    """The MIG instances of a partitioned GPU; the GPU itself is then no device any more."""
    mode = _query(pynvml.nvmlDeviceGetMigMode, handle)
    if not mode or mode[0] != pynvml.NVML_DEVICE_MIG_ENABLE:
        return []
    slices = []
    for number in range(min(SLICES_PER_CARD, _query(pynvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0)):
        part = _query(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, number)
        if part is None:  # places may be empty
            continue
        slices.append(
            Card(
                SLICES + card.index * SLICES_PER_CARD + number,
                _text(pynvml.nvmlDeviceGetUUID(part)),
                _text(pynvml.nvmlDeviceGetName(part)),
                int(pynvml.nvmlDeviceGetMemoryInfo(part).total // MIB),
                group=card.group,
                parent=card.index,
            )
        )
    return slices


def _read(card: Card) -> Reading:
    """All figures of a card now.

    Raises:
        pynvml.NVMLError: it is not there any more.
    """
    card_handle = pynvml.nvmlDeviceGetHandleByIndex(card.index if card.parent is None else card.parent)
    handle = card_handle if card.parent is None else pynvml.nvmlDeviceGetHandleByUUID(card.uuid.encode())
    lost: list[pynvml.NVMLError] = []

    def query(function: Callable[[Any], Any], target: Any = handle) -> Any:
        return _query(function, target, lost=lost)

    util = query(lambda h: float(pynvml.nvmlDeviceGetUtilizationRates(h).gpu))
    used = query(lambda h: pynvml.nvmlDeviceGetMemoryInfo(h).used / MIB)
    heat = query(lambda h: float(pynvml.nvmlDeviceGetTemperature(h, pynvml.NVML_TEMPERATURE_GPU)), card_handle)
    power = query(lambda h: pynvml.nvmlDeviceGetPowerUsage(h) / 1000, card_handle)
    on_card = query(pynvml.nvmlDeviceGetComputeRunningProcesses) or []
    on_card += query(pynvml.nvmlDeviceGetMPSComputeRunningProcesses) or []  # clients of MPS are in this list alone
    errors = query(
        lambda h: int(
            pynvml.nvmlDeviceGetTotalEccErrors(h, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC)
        ),
        card_handle,
    )
    if lost:
        raise lost[0]
    processes = {int(p.pid): (p.usedGpuMemory or 0) / MIB for p in on_card}
    fault = Fault.ECC if errors else None
    return Reading(card.index, util, used, heat, power, processes, errors, fault)


def linked(handle: Any) -> list[str]:
    """Bus ids at the other ends of a card's NVLinks; a switch is an end that several cards share."""
    ends = []
    for link in range(pynvml.NVML_NVLINK_MAX_LINKS):
        state = _query(pynvml.nvmlDeviceGetNvLinkState, handle, link)
        if state is None:  # no such link
            break
        if state:
            end = _query(pynvml.nvmlDeviceGetNvLinkRemotePciInfo, handle, link)
            ends += [_text(end.busId)] if end is not None else []
    return ends


def sharing(uuid: str, timeout_s: float = TIMEOUT_S) -> Sharing | None:
    """What decides whether a GPU may be shared by MPS; None where the driver gives no answer in time."""
    try:
        answer = Question(partial(_sharing, uuid)).answer(time.monotonic() + timeout_s)
    except (pynvml.NVMLError, Silent, OSError) as exc:
        log.warning("card=%s does not tell how it may be shared: %s", uuid, exc)
        return None
    return answer if isinstance(answer, Sharing) else None


def _sharing(uuid: str) -> Sharing:
    pynvml.nvmlInit()  # the process that launches has no probe
    try:
        handle = pynvml.nvmlDeviceGetHandleByUUID(uuid.encode())
        major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
        mode = pynvml.nvmlDeviceGetComputeMode(handle)
    finally:
        pynvml.nvmlShutdown()
    names = {pynvml.NVML_COMPUTEMODE_DEFAULT: "default", pynvml.NVML_COMPUTEMODE_PROHIBITED: "prohibited"}
    return Sharing((int(major), int(minor)), names.get(mode, "exclusive"))


def find_probe() -> Probe:
    """NVML where there is a driver, else a probe without cards."""
    try:
        return NvmlProbe()
    except (pynvml.NVMLError, Silent, OSError) as exc:
        log.info("no NVIDIA cards: %s", exc)
        return NoCards()


def _query(function: Callable[..., Any], handle: Any, *more: Any, lost: list[pynvml.NVMLError] | None = None) -> Any:
    """Return the driver's answer, or None where this GPU or driver does not support the question.

    Args:
        lost: gets the error where it means that the card is gone.
    """
    try:
        return function(handle, *more)
    except pynvml.NVMLError as exc:
        if lost is not None and exc.value == pynvml.NVML_ERROR_GPU_IS_LOST:
            lost.append(exc)
        return None


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _numa_node(bus_id: str) -> int:
    """NUMA node of a PCI device; 0 where the kernel does not say."""
    domain, _, rest = bus_id.lower().partition(":")
    try:
        return max(0, int(Path(f"/sys/bus/pci/devices/{domain[-4:]}:{rest}/numa_node").read_text()))
    except (OSError, ValueError):
        return 0
