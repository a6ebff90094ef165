"""Cards of this node, whoever tells about them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Card:
    """A card as it is built in. `group` names cards that share a fast way (a NUMA node)."""

    index: int
    uuid: str
    name: str
    memory_mib: int
    group: int = 0
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """A card at one moment; None where the driver does not tell.

    `processes` maps process ids on the card to the memory they hold in MiB.
    """

    index: int
    util: float | None = None
    memory_used_mib: float | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    processes: dict[int, float] = field(default_factory=dict)


class Probe(Protocol):
    """Where cards come from. Both calls return within 2 s whatever the driver does."""

    simulated: bool

    def cards(self) -> list[Card]:
        """Cards of this node, in driver order; empty where there are none."""
        ...

    def read(self) -> list[Reading]:
        """One reading per card; a card that does not answer in time is left out."""
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
        load: load of a card in percent by its index; without it the cards say nothing about their load.
    """

    simulated = True
    MEMORY_MIB = 24_576

    def __init__(self, count: int, load: Callable[[int], float] | None = None) -> None:
        self.count = count
        self.load = load

    def cards(self) -> list[Card]:
        """`count` equal cards in groups of four."""
        return [
            Card(i, f"SIM-{i}", "Simulated card", self.MEMORY_MIB, group=i // 4, simulated=True)
            for i in range(self.count)
        ]

    def read(self) -> list[Reading]:
        """Load as told, memory in proportion; no figures where no load was told, since there is none to measure."""
        if self.load is None:
            return [Reading(index) for index in range(self.count)]
        readings = []
        for index in range(self.count):
            util = min(100.0, max(0.0, self.load(index)))
            readings.append(Reading(index, util, round(self.MEMORY_MIB * util / 100)))
        return readings
