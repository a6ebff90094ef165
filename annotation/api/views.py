"""API of annotation projects, their datasets, labels and exports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Never

from django.db.models import Model
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from aiplatform.lib.api import KeysetPagination, PlatformViewSet, parse_request
from aiplatform.lib.errors import NotAllowed
from aiplatform.lib.idempotency import once
from annotation.api import serializers as wire
from annotation.models import AnnotationProject, AnnotationSet, Export, LabelClass
from annotation.services import exports, listing, projects, sets

VIEW, DRAW, MANAGE = Action.ANNOTATION_VIEW, Action.ANNOTATION_ANNOTATE, Action.ANNOTATION_MANAGE


class InProject(PlatformViewSet):
    """Base of views inside a project; a stranger's project does not exist."""

    project_path = "set__project"
    model: type[Model]

    def get_queryset(self) -> Any:
        rows = self.model.objects.visible_to(self.request.user)  # type: ignore[attr-defined]  # our models have our querysets
        return rows.filter(**{self.project_path: self.kwargs["project_pk"]})

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if self.action == "list" and "project_pk" in self.kwargs:
            self.project()  # the list of a stranger's project is missing, not empty

    def project(self, *, manage: bool = False) -> AnnotationProject:
        visible = AnnotationProject.objects.visible_to(self.request.user)
        project: AnnotationProject = get_object_or_404(visible, pk=self.kwargs["project_pk"])
        if manage and not AnnotationProject.objects.editable_by(self.request.user).filter(pk=project.pk).exists():
            refuse()
        return project

    def valid(
        self, kind: type[Serializer], check: Callable[..., object] | None = None, *, partial: bool = False, **extra: Any
    ) -> dict[str, Any]:
        """Return the values of the request; `check` and `extra` as `parse_request` takes them."""
        context = self.get_serializer_context()
        return parse_request(kind(data=self.request.data, context=context, partial=partial), check, **extra)


def refuse() -> Never:
    raise NotAllowed(_("Only the owner and the managers of the project can do this."))


class ProjectViewSet(ListModelMixin, RetrieveModelMixin, InProject):
    needs = {
        "list": VIEW, "retrieve": VIEW, "create": MANAGE, "partial_update": MANAGE, "destroy": MANAGE,
        "members": VIEW, "add_member": MANAGE, "change_member": MANAGE, "remove_member": MANAGE,
    }  # fmt: skip
    serializer_class = wire.ProjectOut
    lookup_url_kwarg = "project_pk"

    def get_queryset(self) -> Any:
        return AnnotationProject.objects.visible_to(self.request.user).for_list()

    @once
    def create(self, request: ApiRequest) -> Response:
        project = projects.create(owner=request.user, **self.valid(wire.ProjectIn, projects.check, owner=request.user))
        return Response(wire.ProjectOut(project).data, status=201)

    def partial_update(self, request: ApiRequest, project_pk: int) -> Response:
        project = self.project(manage=True)
        fields = {"name": project.name, "intro": project.intro} | self.valid(wire.ProjectIn, partial=True)
        return Response(wire.ProjectOut(projects.edit(project, **fields)).data)

    def destroy(self, request: ApiRequest, project_pk: int) -> Response:
        projects.delete(self.project(manage=True))
        return Response(status=204)

    @extend_schema(responses=wire.MemberOut(many=True))
    def members(self, request: ApiRequest, project_pk: int) -> Response:
        rows = self.project().memberships.select_related("user").order_by("user__username")
        return Response(wire.MemberOut(rows, many=True).data)

    @once
    def add_member(self, request: ApiRequest, project_pk: int) -> Response:
        member = projects.add_member(self.project(manage=True), by=request.user, **self.valid(wire.MemberIn))
        return Response(wire.MemberOut(member).data, status=201)

    @extend_schema(request=wire.MemberChange, responses=wire.MemberOut)
    def change_member(self, request: ApiRequest, project_pk: int, user_pk: int) -> Response:
        project = self.project(manage=True)
        return Response(
            wire.MemberOut(projects.change_role(project, user_id=user_pk, **self.valid(wire.MemberChange))).data
        )

    def remove_member(self, request: ApiRequest, project_pk: int, user_pk: int) -> Response:
        projects.remove_member(self.project(manage=True), user_id=user_pk)
        return Response(status=204)


class SetViewSet(ListModelMixin, RetrieveModelMixin, InProject):
    needs = {"list": VIEW, "retrieve": VIEW, "create": MANAGE, "partial_update": MANAGE, "destroy": MANAGE}
    model = AnnotationSet
    project_path = "project"
    serializer_class = wire.SetOut

    def get_queryset(self) -> Any:
        return super().get_queryset().for_list()

    def get_serializer(self, *args: Any, **kwargs: Any) -> Any:
        if not args:  # only its shape is asked for
            return super().get_serializer(**kwargs)
        rows = args[0]
        sets = list(rows) if kwargs.get("many") else [rows]
        kwargs["context"] = {**self.get_serializer_context(), **listing.facts_of(sets)}
        return wire.SetOut(sets if kwargs.get("many") else sets[0], **kwargs)

    @once
    def create(self, request: ApiRequest, project_pk: int) -> Response:
        project = self.project(manage=True)
        fields = self.valid(wire.SetIn, sets.check, project=project)
        made = sets.create(project=project, by=request.user, **fields)
        return Response(self.get_serializer(made).data, status=201)

    def partial_update(self, request: ApiRequest, project_pk: int, pk: int) -> Response:
        self.project(manage=True)
        row: AnnotationSet = self.get_object()
        fields = {"name": row.name, "intro": row.intro, "visibility": row.visibility} | self.valid(wire.SetChange)
        return Response(self.get_serializer(sets.edit(row, **fields)).data)

    def destroy(self, request: ApiRequest, project_pk: int, pk: int) -> Response:
        self.project(manage=True)
        sets.delete(self.get_object())
        return Response(status=204)


class LabelViewSet(ListModelMixin, RetrieveModelMixin, InProject):
    """Classes of one dataset of the project."""

    needs = {"list": VIEW, "retrieve": VIEW, "create": MANAGE, "partial_update": MANAGE, "destroy": MANAGE}
    model = LabelClass
    serializer_class = wire.LabelOut
    pagination_class = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if self.action == "list":
            visible = AnnotationSet.objects.visible_to(self.request.user).filter(project=self.kwargs["project_pk"])
            get_object_or_404(visible, pk=self.kwargs["set_pk"])

    def get_queryset(self) -> Any:
        return super().get_queryset().filter(set=self.kwargs["set_pk"], retired=False)

    @once
    def create(self, request: ApiRequest, project_pk: int, set_pk: int) -> Response:
        self.project(manage=True)
        visible = AnnotationSet.objects.visible_to(request.user).filter(project=project_pk)
        label = sets.add_label(get_object_or_404(visible, pk=set_pk), **self.valid(wire.LabelIn))
        return Response(wire.LabelOut(label).data, status=201)

    def partial_update(self, request: ApiRequest, project_pk: int, set_pk: int, pk: int) -> Response:
        self.project(manage=True)
        label: LabelClass = self.get_object()
        now = {name: getattr(label, name) for name in ("name", "supercategory", "shape", "colour")}
        return Response(wire.LabelOut(sets.edit_label(label, **now | self.valid(wire.LabelChange))).data)

    def destroy(self, request: ApiRequest, project_pk: int, set_pk: int, pk: int) -> Response:
        self.project(manage=True)
        sets.remove_label(self.get_object())
        return Response(status=204)


class ExportPages(KeysetPagination):
    page_size = 20


class ExportViewSet(ListModelMixin, RetrieveModelMixin, InProject):
    needs = {"list": VIEW, "retrieve": VIEW, "create": MANAGE, "download": MANAGE}
    model = Export
    serializer_class = wire.ExportOut
    pagination_class = ExportPages

    @extend_schema(request=wire.ExportIn, responses={202: wire.ExportOut})
    @once
    def create(self, request: ApiRequest, project_pk: int) -> Response:
        project = self.project(manage=True)
        fields = self.valid(wire.ExportIn)
        pick: AnnotationSet = fields["dataset"]
        annotation_set = get_object_or_404(AnnotationSet.objects.visible_to(request.user), pk=pick.pk, project=project)
        chosen = {name: fields[name] for name in ("target", "make_version", "new_dataset")}
        export = exports.start(annotation_set=annotation_set, by=request.user, **chosen)
        return Response(wire.ExportOut(export).data, status=202, headers={"Location": f"{request.path}{export.pk}/"})

    @extend_schema(responses={(200, "application/json"): OpenApiTypes.BINARY})
    def download(self, request: ApiRequest, project_pk: int, pk: int) -> HttpResponseBase:
        self.project(manage=True)
        return listing.download(request._request, self.get_object())
