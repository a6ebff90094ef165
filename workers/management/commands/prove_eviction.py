"""`manage.py prove_eviction`: whether work can be moved off this machine's cards and back, seen on one of them."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from aiplatform.lib import wording
from workers.core.clock import now
from workers.core.models import Device, Node
from workers.execution import measurement_jobs, tickets
from workers.execution.agent import eviction_probe, eviction_proof
from workers.resources.nodes import eviction_policy
from workers.resources.nodes.telemetry.nvml import find_probe


class Command(BaseCommand):
    help = "Train on a free GPU of this node, evict the training, resume it, compare; store the result."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--card", type=int, default=None, help="index of the GPU (default: the first free one)")

    def handle(self, *args: Any, **options: Any) -> None:
        node = Node.objects.filter(name=settings.NODE).first()
        if node is None:
            raise CommandError("This node has not joined yet: start its agent first.")
        probe = find_probe()
        free = set(
            node.devices.filter(kind=Device.Kind.GPU, used=0, health=Device.Health.OK).values_list("index", flat=True)
        )
        wanted = [card for card in probe.cards() if card.index in free and options["card"] in (None, card.index)]
        if not wanted:
            raise CommandError("No such GPU is free here. Drain the node, or wait until a GPU is free.")
        proof = {"driver": eviction_probe.driver_version(), "tier": tickets.tier()[0], "at": now().isoformat()}
        try:
            proof_result = eviction_proof.prove(probe, wanted[0], folder=settings.DATA_ROOT)
        except measurement_jobs.Failed as failed:
            message = wording.message("node.eviction_not_proven", why=str(failed))
            eviction_policy.keep_proof(node, {**proof, "ok": False, "seconds": 0.0, "message": message.as_json()})
            raise CommandError(f"Not verified: {failed}") from failed
        facts = {
            "mib": proof_result.held_mib,
            "out_s": proof_result.out_s,
            "back_s": proof_result.back_s,
            "steps": proof_result.steps,
        }
        message = wording.message("node.eviction_proven", **facts)
        eviction_policy.keep_proof(
            node,
            {
                **proof,
                "ok": True,
                "message": message.as_json(),
                "seconds": round(proof_result.out_s + proof_result.back_s, 2),
            },
        )
        self.stdout.write(str(message))
        self.stdout.write("An operator can allow evictions on the node page now, or with: manage.py node evict NAME")
