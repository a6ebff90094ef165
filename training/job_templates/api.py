"""`/api/v1/templates/`: stored requests with parameters, and the jobs that are made of them."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access.permissions import Action
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import StrictMixin, VisibleField, parse_request
from aiplatform.lib.errors import NotFound
from aiplatform.lib.idempotency import once_in_parts, store_response
from aiplatform.objects.viewsets import ChangeObject, CreateObject, DeleteObject, ObjectViewSet
from training.job_templates import parameters, services
from training.job_templates.filters import TemplateFilters
from training.job_templates.models import JobTemplate, TemplateVersion
from training.job_templates.services import Content
from workers.core.models import Job


class DefaultField(serializers.JSONField):
    """A text, a number, true, false or null."""

    def to_internal_value(self, data: Any) -> Any:
        if data is not None and not isinstance(data, str | int | float | bool):
            raise serializers.ValidationError(_("Enter a text, a number, true or false."))
        return data


class ParameterSerializer(StrictMixin, serializers.Serializer[Any]):
    """A parameter; a default of null has to be given at use."""

    name = serializers.RegexField(r"\A[A-Za-z_][A-Za-z0-9_]{0,39}\Z")
    default = DefaultField(allow_null=True, required=False, default=None)
    about = serializers.CharField(max_length=200, allow_blank=True, default="")


class TemplateOut(OutMixin, serializers.ModelSerializer[JobTemplate]):
    """A template as its newest version says it. `{{ name }}` in the request is the place of a parameter."""

    owner = serializers.CharField(source="owner.username")
    version = serializers.SerializerMethodField()
    request = serializers.SerializerMethodField()
    parameters = serializers.SerializerMethodField()
    url = serializers.SerializerMethodField()

    class Meta:
        model = JobTemplate
        fields = (
            "id", "name", "description", "kind", "owner", "visibility", "version", "request", "parameters",
            "created_at", "updated_at", "url",
        )  # fmt: skip

    def get_version(self, template: JobTemplate) -> int:
        return template.newest.number

    def get_request(self, template: JobTemplate) -> dict[str, Any]:
        return dict(services.content_of(template.newest).request)

    def get_parameters(self, template: JobTemplate) -> list[dict[str, Any]]:
        return list(template.newest.parameters)

    def get_url(self, template: JobTemplate) -> str:
        return f"/templates/{template.pk}/"


class TemplateIn(StrictMixin, serializers.Serializer[Any]):
    """A request with parameters under a name, or with `job` the request of a job that there was."""

    name = serializers.CharField(max_length=100)
    kind = serializers.CharField(max_length=20, default="command")
    description = serializers.CharField(max_length=500, allow_blank=True, default="")
    visibility = serializers.ChoiceField(choices=JobTemplate.Visibility.choices, default="private")
    request = serializers.DictField(required=False)
    parameters = ParameterSerializer(many=True, required=False)
    job = VisibleField(Job, required=False, allow_null=True, default=None)


class TemplateChangeIn(StrictMixin, serializers.Serializer[Any]):
    """What changes; what is left out stays. Another request or other parameters become a new version."""

    name = serializers.CharField(max_length=100, required=False)
    description = serializers.CharField(max_length=500, allow_blank=True, required=False)
    visibility = serializers.ChoiceField(choices=JobTemplate.Visibility.choices, required=False)
    request = serializers.DictField(required=False)
    parameters = ParameterSerializer(many=True, required=False)


class UseIn(StrictMixin, serializers.Serializer[Any]):
    """Values of the parameters, other fields in place of the template's, and which version (the newest)."""

    values = serializers.DictField(required=False, default=dict)
    request = serializers.DictField(required=False, default=dict)
    version = serializers.IntegerField(min_value=1, required=False, allow_null=True, default=None)


class MadeOut(serializers.Serializer[Any]):
    """The job that was queued, or the first one of an array."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    array = serializers.IntegerField(allow_null=True)
    url = serializers.CharField()


class TemplateViewSet(CreateObject, ChangeObject, DeleteObject, ObjectViewSet):
    """Templates that the caller may see: own, public, and shared ones."""

    view_permission, change_permission = Action.JOBS_VIEW, Action.JOBS_SUBMIT
    serializer_class, create_serializer_class, change_serializer_class = TemplateOut, TemplateIn, TemplateChangeIn
    filters = TemplateFilters
    reach = {"use": "usable_by"}

    def create_object(self, *, job: Job | None, **values: Any) -> JobTemplate:
        content = Content(request=values.pop("request", {}), parameters=_parameters(values.pop("parameters", ())))
        if job:
            content, values["kind"] = services.from_job(job, user=self.request.user), job.kind
        return services.create(user=self.request.user, content=content, **values)

    def change_object(self, template: JobTemplate, **values: Any) -> None:
        content = None
        if "request" in values or "parameters" in values:
            before = services.content_of(template.newest)
            rows = values.pop("parameters", None)
            content = Content(
                request=values.pop("request", before.request),
                parameters=before.parameters if rows is None else _parameters(rows),
            )
        services.change(template, user=self.request.user, content=content, **values)

    def delete_object(self, template: JobTemplate) -> None:
        services.delete(template)

    @extend_schema(request=UseIn, responses={201: MadeOut})
    @action(detail=True, methods=["post"])
    @once_in_parts
    def use(self, request: Request, pk: str) -> Response:
        """Queue the job that it says, with these values of its parameters."""
        user: Any = request.user
        template = self.get_object()
        data = parse_request(UseIn(data=request.data))
        version = _version(template, data["version"])
        with transaction.atomic():
            job = services.use(version, user=user, values=data["values"], instead=data["request"])
            body = {"id": job.pk, "name": job.name, "array": job.array_id, "url": f"/jobs/{job.pk}/"}
            return store_response(request, Response(MadeOut(body).data, status=201))


def _version(template: JobTemplate, number: int | None) -> TemplateVersion:
    version: TemplateVersion | None = template.versions.filter(number=number).first() if number else template.newest
    if version is None:
        raise NotFound(_("%(name)s has no version %(number)s.") % {"name": template.name, "number": number})
    return version


def _parameters(rows: Any) -> list[parameters.Parameter]:
    return [parameters.Parameter(name=row["name"], default=row["default"], about=row["about"]) for row in rows]
