"""`manage.py node`: machines of the cluster, for scripts of operators. `manage.py node-token` is its `node token`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from aiplatform import env
from aiplatform.lib.errors import DomainError
from workers.core.models import Node
from workers.resources.nodes import eviction_policy, lifecycle, mps_policy

ACTS = {"drain": lifecycle.drain, "undrain": lifecycle.undrain, "remove": lifecycle.remove} | {
    "evict": eviction_policy.allow,
    "keep": eviction_policy.forbid,
    "mps-on": mps_policy.allow,
    "mps-off": mps_policy.forbid,
}


class Command(BaseCommand):
    help = (
        "token: create a one-time token · list · drain NAME · undrain NAME · remove NAME · evict NAME · keep "
        "NAME · mps-on NAME · mps-off NAME"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("verb", choices=["token", "list", *ACTS])
        parser.add_argument("name", nargs="?", help="name of the node")
        parser.add_argument("--hours", type=int, default=24, help="validity of the token (default 24)")
        parser.add_argument("--quiet", action="store_true", help="print only the token")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if options["verb"] == "token":
                self._token(options["hours"], quiet=options["quiet"])
            elif options["verb"] == "list":
                for node in Node.objects.exclude(state=Node.State.REMOVED):
                    self.stdout.write(f"{node.name}\t{node.state}\t{node.address}")
            else:
                named_node = Node.objects.filter(name=options["name"]).first()
                if named_node is None:
                    raise CommandError(f"No node named {options['name']}.")
                node = ACTS[options["verb"]](named_node)
                self.stdout.write(f"{node.name}: {node.state}")
        except DomainError as refusal:
            raise CommandError(refusal.message) from refusal

    def _token(self, hours: int, *, quiet: bool) -> None:
        _row, secret = lifecycle.make_token(lifetime=timedelta(hours=hours))
        if quiet:
            self.stdout.write(secret)
            return
        self.stdout.write(f"On the new node, within {hours} h (the token is shown only once):\n")
        self.stdout.write(f"  {lifecycle.join_command(secret, env.BASE_URL)}")
