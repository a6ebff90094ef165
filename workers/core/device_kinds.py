"""Kinds of devices and the rules by which they are handed out, as data. Pure.

A further accelerator is one more line of `KINDS`; nothing else names a kind except where people read it.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeviceKind:
    """What the planner knows of one kind of device.

    Attributes:
        counts: cards a job may ask for per node; empty means any number the node has.
        crosses_groups: whether the cards of one job may lie in several groups of a node. Where they may not,
            a job may still take whole groups (all eight cards of a node are two whole groups).
        distributed_count: cards per node that a job over several nodes must ask for; None means any allowed count.
        shareable: whether several jobs may hold shares of one card.
    """

    name: str
    label: str
    counts: tuple[int, ...] = ()
    crosses_groups: bool = True
    distributed_count: int | None = None
    shareable: bool = True

    def allows(self, count: int, nodes: int) -> bool:
        """Whether a job over `nodes` nodes may ask for `count` cards on each."""
        if self.counts and count not in self.counts:
            return False
        return nodes == 1 or count == 0 or self.distributed_count in (None, count)


GPU = DeviceKind("gpu", "GPU")
NPU = DeviceKind(
    "npu", "NPU", counts=(0, 1, 2, 4, 8), crosses_groups=False, distributed_count=8, shareable=False
)  # Ascend servers: cards 0-3 and 4-7 are one ring each
CPU = DeviceKind("cpu", "CPU")

KINDS: dict[str, DeviceKind] = {kind.name: kind for kind in (GPU, NPU, CPU)}


def rules(name: str) -> DeviceKind:
    """The rules of a kind; an unknown one is assigned like a GPU."""
    return KINDS.get(name) or DeviceKind(name, name.upper())
