"""Card probe: a protocol that reports the cards of this node, and a simulated one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol


class Fault(StrEnum):
    """What is wrong with a card, as far as its driver shows."""

    HUNG = "hung"  # a question about it was not answered within 2 s
    VANISHED = "vanished"  # it fell off the bus
    ECC = "ecc"  # memory errors that could not be corrected


@dataclass(frozen=True, slots=True)
class Card:
    """A card as it is built in. `group` names cards that share a fast way (NVLink, else a NUMA node).

    `parent` is the index of the card that a MIG slice was cut from, None for a whole card.
    """

    index: int
    uuid: str
    name: str
    memory_mib: int
    group: int = 0
    simulated: bool = False
    kind: str = "gpu"
    parent: int | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """A card at one moment; None where the driver does not tell.

    `processes` maps process ids on the card to the memory they hold in MiB. `ecc_errors` counts those that
    could not be corrected since the driver was loaded. `fault` says that the rest is missing or not to be trusted.
    """

    index: int
    util: float | None = None
    memory_used_mib: float | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    processes: dict[int, float] = field(default_factory=dict)
    ecc_errors: int | None = None
    fault: Fault | None = None
    kind: str = "gpu"


@dataclass(frozen=True, slots=True)
class Sharing:
    """What decides whether programs may share a card by CUDA MPS.

    `capability` is CUDA's compute capability (8, 0); `mode` is its compute mode: default, exclusive or prohibited.
    """

    capability: tuple[int, int]
    mode: str


class Probe(Protocol):
    """Where cards come from. Both calls return within 2 s whatever the driver does."""

    simulated: bool

    def cards(self) -> list[Card]:
        """Cards of this node, in driver order; empty where there are none."""
        ...

    def read(self) -> list[Reading]:
        """One reading per card, also of one that does not answer."""
        ...


class NoCards:
    """A node without cards."""

    simulated = False

    def cards(self) -> list[Card]:
        """Nothing is built in."""
        return []

    def read(self) -> list[Reading]:
        """Nothing to read."""
        return []


class FakeProbe:
    """Cards that exist only here, for tests and for trying the cluster pages; work on them runs on the processor.

    Args:
        count: how many GPUs; `npus` how many cards of the kind NPU beside them.
        load: load of a card in percent by its index; without it the cards say nothing about their load.
        faults: what is wrong with a card, by its index.
        processes: process ids on a card, by its index.
    """

    simulated = True
    MEMORY_MIB = 24_576

    def __init__(
        self,
        count: int,
        load: Callable[[int], float] | None = None,
        *,
        npus: int = 0,
        faults: Mapping[int, Fault] | None = None,
        processes: Mapping[int, list[int]] | None = None,
    ) -> None:
        self.count, self.npus = count, npus
        self.load = load
        self.faults, self.on_card = dict(faults or {}), dict(processes or {})

    def cards(self) -> list[Card]:
        """Equal cards in groups of four."""
        gpus = [
            Card(i, f"SIM-{i}", "Simulated GPU", self.MEMORY_MIB, group=i // 4, simulated=True)
            for i in range(self.count)
        ]
        npus = [
            Card(i, f"SIM-NPU-{i}", "Simulated NPU", self.MEMORY_MIB, group=i // 4, simulated=True, kind="npu")
            for i in range(self.npus)
        ]
        return gpus + npus

    def read(self) -> list[Reading]:
        """Load as configured, memory in proportion; no values without a configured load."""
        readings = []
        for card in self.cards():
            gpu = card.kind == "gpu"
            util = min(100.0, max(0.0, self.load(card.index))) if self.load and gpu else None
            used = None if util is None else round(self.MEMORY_MIB * util / 100)
            readings.append(
                Reading(
                    card.index,
                    util,
                    used,
                    processes=dict.fromkeys(self.on_card.get(card.index, ()) if gpu else (), 100.0),
                    fault=self.faults.get(card.index) if gpu else None,
                    kind=card.kind,
                )
            )
        return readings
