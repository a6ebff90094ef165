"""CPU slots: what jobs without cards take of the processors, and how people are told what is counted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import F, Sum
from django.utils.translation import ngettext

from aiplatform.lib import units
from workers.core.models import Device, Node
from workers.core.models.nodes import SHARES_PER_DEVICE


@dataclass(frozen=True)
class CpuSlots:
    """Slots that nodes offer and those that are free; `cores` is the number of cores behind them."""

    free: float
    all: float
    cores: int

    @property
    def legend(self) -> str:
        """What a slot is, with these numbers; empty without nodes."""
        if not self.cores:
            return ""
        if self.all > self.cores:
            text = ngettext(
                "A job uses one CPU slot per requested core. %(cores)s core is offered as %(slots)s slots, "
                "because few jobs keep a core busy all the time.",
                "A job uses one CPU slot per requested core. %(cores)s cores are offered as %(slots)s slots, "
                "because few jobs keep a core busy all the time.",
                self.cores,
            )
        else:
            text = ngettext(
                "A job uses one CPU slot per requested core. Slots offered for %(cores)s core: %(slots)s.",
                "A job uses one CPU slot per requested core. Slots offered for %(cores)s cores: %(slots)s.",
                self.cores,
            )
        return text % {"cores": self.cores, "slots": units.number(self.all)}


def there() -> CpuSlots:
    """Those of all machines that are up."""
    live = Device.objects.filter(kind=Device.Kind.CPU, health=Device.Health.OK, node__state=Node.State.LIVE)
    sums = live.aggregate(all=Sum("capacity"), free=Sum(F("capacity") - F("used")), cores=Sum("node__cpu_cores"))
    return _slots(sums["free"] or 0, sums["all"] or 0, sums["cores"] or 0)


def for_devices(devices: Iterable[Device]) -> CpuSlots:
    """Slots of these CPU devices, whose nodes are loaded."""
    rows = list(devices)
    return _slots(
        sum(row.capacity - row.used for row in rows),
        sum(row.capacity for row in rows),
        sum(row.node.cpu_cores for row in rows),
    )


def _slots(free_shares: int, shares: int, cores: int) -> CpuSlots:
    return CpuSlots(free_shares / SHARES_PER_DEVICE, shares / SHARES_PER_DEVICE, cores)
