"""NVIDIA cards by NVML; the only file that imports pynvml.

A sick card can make the driver hang inside any call. All calls therefore run on one thread of their own:
a caller waits at most `TIMEOUT_S`, and while a call hangs further ones answer at once with nothing.
"""

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvml

from workers.telemetry.probe import Card, NoCards, Probe, Reading

log = logging.getLogger(__name__)

TIMEOUT_S = 2.0
MIB = 1024 * 1024


class Silent(Exception):
    """The driver did not answer in time."""


class NvmlProbe:
    """Cards by the NVIDIA management library.

    Raises:
        Silent: the driver hangs while it is opened.
        pynvml.NVMLError: there is no driver or no library.
    """

    simulated = False

    def __init__(self, timeout_s: float = TIMEOUT_S) -> None:
        self.timeout_s = timeout_s
        self._busy = threading.Lock()
        self._cards: list[Card] = []
        self._ask(pynvml.nvmlInit)
        self._cards = self._ask(self._describe)

    def cards(self) -> list[Card]:
        """Cards found when the probe was opened; a card that falls off the bus stays listed."""
        return list(self._cards)

    def read(self) -> list[Reading]:
        """One reading per card that answers; nothing while the driver hangs."""
        found: list[Reading] = []  # filled by the thread, so what answered before a hang is kept
        try:
            self._ask(lambda: self._readings(found))
        except Silent:
            log.warning("nvml does not answer within %.0f s", self.timeout_s)
        return list(found)

    def _ask(self, call: Callable[[], Any]) -> Any:
        """Run `call` on a thread and wait for it at most the time limit."""
        if not self._busy.acquire(blocking=False):
            raise Silent("An earlier call still hangs.")
        result: list[Any] = []
        failure: list[Exception] = []

        def run() -> None:
            try:
                result.append(call())
            except Exception as exc:  # noqa: BLE001 - raised again by the caller
                failure.append(exc)
            finally:
                self._busy.release()

        thread = threading.Thread(target=run, name="nvml", daemon=True)
        thread.start()
        thread.join(self.timeout_s)
        if failure:
            raise failure[0]
        if not result:
            raise Silent("The driver does not answer.")
        return result[0]

    def _describe(self) -> list[Card]:
        cards = []
        for index in range(pynvml.nvmlDeviceGetCount()):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
            cards.append(
                Card(
                    index,
                    _text(pynvml.nvmlDeviceGetUUID(handle)),
                    _text(pynvml.nvmlDeviceGetName(handle)),
                    int(memory.total // MIB),
                    group=_numa_node(_text(pynvml.nvmlDeviceGetPciInfo(handle).busId)),
                )
            )
        return cards

    def _readings(self, found: list[Reading]) -> None:
        for card in self._cards:
            try:
                handle = pynvml.nvmlDeviceGetHandleByIndex(card.index)
            except pynvml.NVMLError as exc:
                log.warning("card=%s lost: %s", card.index, exc)
                continue
            util = _told(lambda h: float(pynvml.nvmlDeviceGetUtilizationRates(h).gpu), handle)
            used = _told(lambda h: pynvml.nvmlDeviceGetMemoryInfo(h).used / MIB, handle)
            heat = _told(lambda h: float(pynvml.nvmlDeviceGetTemperature(h, pynvml.NVML_TEMPERATURE_GPU)), handle)
            power = _told(lambda h: pynvml.nvmlDeviceGetPowerUsage(h) / 1000, handle)
            on_card = _told(pynvml.nvmlDeviceGetComputeRunningProcesses, handle) or []
            processes = {int(p.pid): (p.usedGpuMemory or 0) / MIB for p in on_card}
            found.append(Reading(card.index, util, used, heat, power, processes))


def find_probe() -> Probe:
    """NVML where there is a driver, else a probe without cards."""
    try:
        return NvmlProbe()
    except (pynvml.NVMLError, Silent, OSError) as exc:
        log.info("no NVIDIA cards: %s", exc)
        return NoCards()


def _told(ask: Callable[[Any], Any], handle: Any) -> Any:
    """What the driver says, or None where this card or driver does not support the question."""
    try:
        return ask(handle)
    except pynvml.NVMLError:
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
