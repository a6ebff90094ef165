"""API of the jobs of one kind that run a user's program: list, one, create and preview."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

from django.db import transaction
from rest_framework.decorators import action
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from aiplatform.lib.idempotency import once_in_parts, store_response
from aiplatform.objects.viewsets import ObjectSchema, ObjectViewSet
from training.programs.request_schemas import RequestSchema
from workers.jobs.resource_request import Resources
from workers.scheduling import preview


class ProgramApiSchema(ObjectSchema):
    """`preview` takes what `create` takes."""

    def get_request_serializer(self) -> Any:
        view: Any = self.view
        return view.get_input_serializer() if view.action == "preview" else super().get_request_serializer()


class ProgramViewSet(ObjectViewSet):
    """A kind declares its request schema, serializers and filters; everything else of its jobs is under `jobs/`."""

    request_schema: ClassVar[RequestSchema]
    schema = ProgramApiSchema()
    view_permission, change_permission = Action.JOBS_VIEW, Action.JOBS_SUBMIT

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.queryset = None  # else the description calls numbers by their column, which is `job`

    def service_check(self) -> Any:
        return self.request_schema.check_parts

    @once_in_parts
    def create(self, request: ApiRequest) -> Response:
        """Queue a job. Follow it under `/api/v1/jobs/{id}/`."""
        program_request = self.request_schema.read(request.user, self.values())  # may copy code: not in a transaction
        with transaction.atomic():
            row = self.request_schema.service.submit(user=request.user, request=program_request)
            return store_response(request, self.answer(row, 201))

    create.status = 201  # type: ignore[attr-defined]  # read by ObjectSchema

    @action(detail=False, methods=["post"])
    def preview(self, request: ApiRequest) -> Response:
        """Return whether the request is valid and would start now; queue nothing."""
        resources = self.preview_resources(self.values())
        verdict = preview.preview_request(request.user, resources, kind=self.request_schema.kind)
        return Response(dataclasses.asdict(verdict))

    def preview_resources(self, data: dict[str, Any]) -> Resources:
        """The resources of a valid request."""
        return self.request_schema.check(self.request.user, data)
