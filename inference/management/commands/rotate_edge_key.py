"""`manage.py rotate_edge_key`: sign releases to edge devices with a new key, for instance after a theft."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from accounts.services import audit
from inference.delivery.edge import keys


class Command(BaseCommand):
    """Devices learn the new key with the next release that they fetch, signed by the one before."""

    help = "Sign releases to edge devices with a new key; devices update automatically."

    def handle(self, *args: Any, **options: Any) -> None:
        number = keys.rotate()
        audit.record(None, "edge_key_rotated", number=number)
        self.stdout.write(
            f"Releases are signed with key {number} from now on. Devices receive it with their next request."
        )
