"""`/api/v1/images/`: the same services as the pages."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.shortcuts import get_object_or_404
from django.utils.functional import cached_property
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import StrictMixin, VisibleField, parse_request
from aiplatform.lib.idempotency import once
from aiplatform.objects.viewsets import ChangeObject, CreateObject, DeleteObject, ObjectViewSet, object_action
from workers.core.models import Job, VirtualCluster
from workers.images.containers import adding
from workers.images.filters import ImageFilters
from workers.images.models import Image, RegistryLogin, Visibility
from workers.images.services import images, saving
from workers.images.store import below, boxes, catalog, engines


class NamedIn(StrictMixin, serializers.Serializer[Any]):
    name = serializers.CharField(max_length=100)
    tag = serializers.CharField(max_length=50, default="", allow_blank=True)
    description = serializers.CharField(max_length=500, default="", allow_blank=True)
    visibility = serializers.ChoiceField(Visibility.choices, default=Visibility.PRIVATE)


class BuildIn(NamedIn):
    """An engine: packages, one a line."""

    requirements = serializers.CharField(
        max_length=engines.MAX_LENGTH, default="", allow_blank=True, trim_whitespace=False
    )
    with_platform = serializers.BooleanField(default=True, help_text="Also see the platform's own packages.")
    cluster = VisibleField(VirtualCluster, required=False, allow_null=True, default=None)


class SaveIn(NamedIn):
    """What was installed in a job."""

    job = VisibleField(Job)


class ContainerIn(NamedIn):
    """A container image: registry.example.org/lab/torch:2.1, with the credentials of that registry."""

    reference = serializers.CharField(max_length=300)
    source = serializers.ChoiceField(Image.Source.choices, default=Image.Source.HUB)  # type: ignore[assignment]  # fields leave the class as it is made
    policy = serializers.ChoiceField(Image.Policy.choices, default=Image.Policy.PINNED)
    login = VisibleField(RegistryLogin, required=False, allow_null=True, default=None)


class EditIn(StrictMixin, serializers.Serializer[Any]):
    description = serializers.CharField(max_length=500, required=False, allow_blank=True)
    visibility = serializers.ChoiceField(Visibility.choices, required=False)


class ImageOut(OutMixin, serializers.ModelSerializer[Image]):
    """An image. `state` is new, building, saving, looking, ready or failed; `message` says why it failed."""

    owner = serializers.CharField(source="owner.username", allow_null=True, help_text="null: the platform's.")
    description = serializers.SerializerMethodField()
    state = serializers.CharField(source="status")
    message = serializers.CharField(source="why")
    login = serializers.PrimaryKeyRelatedField[RegistryLogin](
        read_only=True, help_text="Credentials of its registry, see registry-logins."
    )
    size_bytes = serializers.IntegerField(source="total_bytes")
    requirements = serializers.SerializerMethodField()
    facts = serializers.SerializerMethodField(help_text="python, torch, cuda, packages, architecture.")
    build_job = serializers.SerializerMethodField(help_text="The newest job that builds its engine.")
    used_by = serializers.IntegerField(source="used", help_text="How many jobs and images need it.")
    url = serializers.SerializerMethodField()

    class Meta:
        model = Image
        fields = [
            "id", "kind", "name", "tag", "description", "owner", "visibility", "built_in", "state", "message",
            "size_bytes", "unpacked_bytes", "sha256", "parent", "job", "build_job", "requirements", "facts",
            "left_out", "source", "reference", "digest", "policy", "login", "used_by", "created_at", "url",
        ]  # fmt: skip
        read_only_fields = fields

    def get_description(self, image: Image) -> str:
        return catalog.describe(image)

    def get_requirements(self, image: Image) -> str:
        return image.engine.requirements if image.engine else ""

    def get_facts(self, image: Image) -> dict[str, Any]:
        if image.kind != Image.Kind.CONTAINER or "base" not in image.contents:
            return image.contents
        return below.shown_facts(image, self.context["view"].bases)

    def get_build_job(self, image: Image) -> int | None:
        return image.engine.job_id if image.engine else None

    def get_url(self, image: Image) -> str:
        return f"/images/{image.pk}/"


class ImageViewSet(CreateObject, ChangeObject, DeleteObject, ObjectViewSet):
    view_permission, change_permission = Action.JOBS_VIEW, Action.JOBS_SUBMIT
    needs = {"forget": Action.JOBS_CONTROL}
    serializer_class, create_serializer_class, change_serializer_class = ImageOut, BuildIn, EditIn
    filters = ImageFilters
    reach = {"build": "makeable_by"}
    forbids_change = True

    @cached_property
    def bases(self) -> set[int]:
        """Base images whose names the caller may see; read once for a list."""
        return below.bases_seen(self.request.user)

    def get_queryset(self) -> Any:
        catalog.create_all()
        return super().get_queryset()

    def service_check(self) -> Any:
        return partial(engines.check, user=self.request.user) if self.action == "create" else None

    def create_object(self, **values: Any) -> Image:
        """Ask for an engine; follow the job `build_job`."""
        return engines.build(user=self.request.user, **values)

    def change_object(self, image: Image, **values: Any) -> Image:
        current = {"description": image.description, "visibility": image.visibility}
        return images.edit(image=image, **current | values)

    def delete_object(self, image: Image) -> None:
        images.delete(image=image, by=self.request.user)

    @object_action()
    def build(self, image: Image) -> None:
        """Build an engine that is not there, or try again what failed: a build, or the saving of one's own image."""
        images.make(image, by=self.request.user)

    @object_action(url_path="look", url_name="look")
    def look_up(self, image: Image) -> None:
        """Look a container image up again: its tag may name another one now."""
        adding.look_up_again(image)

    @extend_schema(request=SaveIn, responses={201: ImageOut})
    @action(detail=False, methods=["post"])
    @once
    def save(self, request: ApiRequest) -> Response:
        """Save what was installed in a job, which goes on afterwards. Ask for the image until it is ready."""
        serializer = SaveIn(data=request.data, context=self.get_serializer_context())
        fields = parse_request(serializer, engines.check_name, user=request.user)
        if not Job.objects.editable_by(request.user).filter(pk=fields["job"].pk).exists():
            self.permission_denied(request)
        return self.answer(saving.request(by=request.user, **fields), 201)

    @extend_schema(responses={204: None})
    @action(detail=False, methods=["delete"], url_path="boxes/(?P<pk>[0-9]{1,18})")
    def forget(self, request: ApiRequest, pk: str) -> Response:
        """Delete the packages that were installed in a job, by its number; it starts from its image again."""
        job: Job = get_object_or_404(Job.objects.visible_to(request.user), pk=pk)
        if not Job.objects.editable_by(request.user).filter(pk=job.pk).exists():
            self.permission_denied(request)
        boxes.forget(job, by=request.user)
        return Response(status=204)

    @extend_schema(request=ContainerIn, responses={201: ImageOut})
    @action(detail=False, methods=["post"])
    @once
    def container(self, request: ApiRequest) -> Response:
        """Add a container image; it is looked up at once. Ask for it until it is ready or failed."""
        serializer = ContainerIn(data=request.data, context=self.get_serializer_context())
        fields = parse_request(serializer, adding.check, user=request.user)
        return self.answer(adding.add(user=request.user, **fields), 201)
