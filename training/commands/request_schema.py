"""What a request of a custom job looks like: as a form, as the body of the API, and as text."""

from __future__ import annotations

from training.commands import services
from training.commands.forms import CommandForm
from training.commands.models import Command
from training.commands.serializers import CommandIn
from training.commands.services import CommandRequest
from training.programs.request_schemas import RequestSchema


class CommandSchema(RequestSchema):
    kind, model, service = services.KIND, Command, services
    request, serializer, form_class = CommandRequest, CommandIn, CommandForm
    plain = (
        "command", "name", "output_path", "home_path", "writes_checkpoints", "nodes", "gpus_per_node", "share", "cpus",
        "launcher", "processes", "worker_command", "array", "preemptible", "root_inside",
    )  # fmt: skip


SCHEMA = CommandSchema()
