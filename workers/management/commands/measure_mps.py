"""`manage.py measure_mps`: what is gained on a free card of this machine where programs share it by MPS."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from workers.core.clock import now
from workers.core.models import Device, Node
from workers.execution import measurement_jobs, mps_gain
from workers.execution.agent import eviction_probe
from workers.resources.nodes import mps_policy
from workers.resources.nodes.telemetry.nvml import find_probe


class Command(BaseCommand):
    help = "Run programs on a free GPU of this node with time slicing and with MPS; print and store the ratio."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--card", type=int, default=None, help="index of the GPU (default: the first free one)")
        parser.add_argument("--clients", type=int, default=4, help="number of programs, 2 to 8 (default 4)")
        parser.add_argument("--seconds", type=float, default=10.0, help="duration of each round (default 10)")

    def handle(self, *args: Any, **options: Any) -> None:
        node = Node.objects.filter(name=settings.NODE).first()
        if node is None:
            raise CommandError("This node has not joined yet: start its agent first.")
        rows = node.devices.filter(kind=Device.Kind.GPU, used=0, health=Device.Health.OK, parent=None)
        free = set(rows.values_list("index", flat=True))
        wanted = [card for card in find_probe().cards() if card.index in free and options["card"] in (None, card.index)]
        if not wanted:
            raise CommandError("No such GPU is free here. Drain the node, or wait until a GPU is free.")
        arguments = {"clients": options["clients"], "seconds": options["seconds"], "folder": settings.DATA_ROOT}
        try:
            gain = mps_gain.measure(wanted[0], **arguments)
        except measurement_jobs.Failed as failed:
            raise CommandError(f"Nothing measured: {failed}") from failed
        context = {"card": wanted[0].index, "driver": eviction_probe.driver_version(), "at": now().isoformat()}
        mps_policy.keep_gain(node, {**asdict(gain), **context})
        self.stdout.write(f"time slicing {gain.alone:.0f} steps/s, MPS {gain.together:.0f} steps/s")
        self.stdout.write(f"ratio {gain.ratio:.2f} with {gain.clients} programs on GPU {wanted[0].index}")
