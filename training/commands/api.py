"""`/api/v1/commands/`: the same services as the pages. What a command does then is under `/api/v1/jobs/{id}/`."""

from __future__ import annotations

from training.commands.filters import CommandFilters
from training.commands.request_schema import SCHEMA
from training.commands.serializers import CommandIn, CommandOut
from training.programs.api import ProgramViewSet


class CommandViewSet(ProgramViewSet):
    request_schema, filters = SCHEMA, CommandFilters
    serializer_class, create_serializer_class = CommandOut, CommandIn
