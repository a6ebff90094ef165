"""What a request of a workspace looks like: as a form, as the body of the API, and as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accounts.models import User
from training.environments import services
from training.environments.forms import EnvironmentForm, TaskType
from training.environments.models import Environment
from training.environments.serializers import EnvironmentIn
from training.environments.services import EnvironmentRequest
from training.programs.request_schemas import Request, RequestSchema


class EnvironmentSchema(RequestSchema):
    kind, model, service = services.KIND, Environment, services
    request, serializer, form_class = EnvironmentRequest, EnvironmentIn, EnvironmentForm
    plain = (
        "name", "description", "folder", "idle_hours", "nodes", "gpus_per_node", "share", "cpus", "preemptible",
        "root_inside",
    )  # fmt: skip

    def more_initial(self, user: User, request: Request) -> dict[str, Any]:
        return _task_type(request["nodes"])

    def more_of_clone(self, user: User, row: Environment, values: Mapping[str, Any]) -> dict[str, Any]:
        return _task_type(values["nodes"]) | {"name": services.name_for(user)}


def _task_type(nodes: Any) -> dict[str, Any]:
    """The two fields of the form that say on how many nodes it runs."""
    if isinstance(nodes, int) and nodes > 1:
        return {"task_type": TaskType.DISTRIBUTED, "nodes": nodes}
    return {"task_type": TaskType.REGULAR, "nodes": None}


SCHEMA = EnvironmentSchema()
