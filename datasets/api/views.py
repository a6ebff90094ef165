"""API of datasets, their versions and images, imports, uploads."""

from __future__ import annotations

from typing import Any

from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from aiplatform.lib import ids, queries
from aiplatform.lib.api import KeysetPagination, PlatformViewSet, parse_request
from aiplatform.lib.errors import Invalid
from aiplatform.lib.idempotency import once
from datasets.api import serializers as wire
from datasets.formats.exports import FORMATS
from datasets.formats.neutral import NO_SPLIT
from datasets.models import Asset, Dataset, DatasetVersion, Import, Upload
from datasets.services import datasets, imports, splits, versions
from datasets.services.orders import DATASETS
from datasets.transfer.responses import download, download_forms, image_response, thumbnail_response

VIEW, CREATE, EDIT, DELETE = (
    Action.DATASETS_VIEW,
    Action.DATASETS_CREATE,
    Action.DATASETS_EDIT,
    Action.DATASETS_DELETE,
)
FORMS = ["zip", "tar", *FORMATS.names()]
_BYTES = extend_schema(responses={(200, "application/octet-stream"): OpenApiTypes.BINARY})


class DatasetRooted(PlatformViewSet):
    """Base of views below one dataset; a stranger's does not exist."""

    def dataset(self, *, change: bool = False) -> Dataset:
        visible = Dataset.objects.visible_to(self.request.user)
        dataset: Dataset = get_object_or_404(visible.select_related("owner"), pk=self.kwargs["dataset_pk"])
        if change and not Dataset.objects.editable_by(self.request.user).filter(pk=dataset.pk).exists():
            raise datasets.NotOwner(_("Only the owner can change this dataset."))
        return dataset


class DatasetViewSet(ListModelMixin, RetrieveModelMixin, DatasetRooted):
    needs = {"list": VIEW, "retrieve": VIEW, "create": CREATE, "partial_update": EDIT, "destroy": DELETE}
    asks = {"list": ("search", "name", "visibility", "annotated")}
    orders = DATASETS
    serializer_class = wire.DatasetOut
    lookup_url_kwarg = "dataset_pk"

    def get_queryset(self) -> Any:
        rows = Dataset.objects.visible_to(self.request.user).for_list()
        filters = queries.read_filters(self.request)
        rows = rows.named_like(filters.get("search", ""))
        if name := filters.get("name", "")[:100]:
            rows = rows.filter(name=name)
        if visibility := queries.read_choice(filters, "visibility", *Dataset.Visibility.values):
            rows = rows.filter(visibility=visibility)
        if annotated := queries.read_choice(filters, "annotated", "true", "false"):
            rows = rows.filter(newest_annotated=annotated == "true")
        return rows

    def _shown(self, dataset: Dataset, status: int = 200) -> Response:
        row = Dataset.objects.visible_to(self.request.user).for_list().get(pk=dataset.pk)
        return Response(wire.DatasetOut(row).data, status=status)

    @extend_schema(request=wire.DatasetIn, responses={201: wire.DatasetOut})
    @once
    def create(self, request: ApiRequest) -> Response:
        fields = parse_request(wire.DatasetIn(data=request.data), datasets.check, owner=request.user)
        return self._shown(datasets.create(owner=request.user, **fields), 201)

    @extend_schema(request=wire.DatasetEdit, responses=wire.DatasetOut)
    def partial_update(self, request: ApiRequest, dataset_pk: int) -> Response:
        dataset = self.dataset(change=True)
        serializer = wire.DatasetEdit(data=request.data)
        serializer.is_valid(raise_exception=True)
        return self._shown(datasets.edit(dataset, **serializer.validated_data))

    @extend_schema(responses={204: None})
    def destroy(self, request: ApiRequest, dataset_pk: int) -> Response:
        datasets.delete(self.dataset(change=True))
        return Response(status=204)


class VersionViewSet(ListModelMixin, RetrieveModelMixin, DatasetRooted):
    """Complete versions, numbered below their dataset, or by id below versions/."""

    needs = {"list": VIEW, "retrieve": VIEW, "destroy": DELETE, "download": VIEW, "split": EDIT, "partial_update": EDIT}
    asks = {"download": ("as",)}
    serializer_class = wire.VersionOut

    def get_queryset(self) -> Any:
        rows = DatasetVersion.objects.visible_to(self.request.user).select_related("dataset")
        return rows.filter(dataset=self.kwargs["dataset_pk"]) if "dataset_pk" in self.kwargs else rows

    def list(self, request: Request, dataset_pk: int) -> Response:
        self.dataset()
        return super().list(request)

    @extend_schema(request=wire.VersionEdit, responses=wire.VersionOut)
    def partial_update(self, request: ApiRequest, pk: int) -> Response:
        """Change colors of classes; images, annotations and splits of a version never change."""
        version = self.get_object()
        self.kwargs["dataset_pk"] = version.dataset_id
        self.dataset(change=True)
        serializer = wire.VersionEdit(data=request.data)
        serializer.is_valid(raise_exception=True)
        return Response(wire.VersionOut(versions.set_colors(version, **serializer.validated_data)).data)

    @extend_schema(responses={204: None})
    def destroy(self, request: ApiRequest, pk: int) -> Response:
        version = self.get_object()
        self.kwargs["dataset_pk"] = version.dataset_id
        self.dataset(change=True)
        versions.delete(version, by=request.user)
        return Response(status=204)

    @extend_schema(
        parameters=[OpenApiParameter("as", enum=FORMS, description="A zip where nothing is said; all can be resumed.")],
        responses={(200, "application/octet-stream"): OpenApiTypes.BINARY},
    )
    def download(self, request: ApiRequest, pk: int) -> HttpResponseBase:
        version = self.get_object()
        form = queries.read_choice(queries.read_filters(request), "as", *download_forms(version)) or "zip"
        return download(request._request, version, form)

    @extend_schema(request=wire.SplitIn, responses={200: wire.SplitPreview, 202: wire.ImportOut})
    @once
    def split(self, request: ApiRequest, pk: int) -> Response:
        """Split the images again into the next version; with `dry_run` only show the resulting split."""
        version = self.get_object()
        self.kwargs["dataset_pk"] = version.dataset_id
        self.dataset(change=True)
        serializer = wire.SplitIn(data=request.data)
        serializer.is_valid(raise_exception=True)
        fields = dict(serializer.validated_data)
        dry = fields.pop("dry_run")
        wish = splits.wish_of(**fields)
        if dry:
            return Response(wire.SplitPreview(splits.preview(version, wish)).data)
        row = splits.start(version=version, wish=wish, by=request.user)
        where = f"/api/v1/datasets/{version.dataset_id}/imports/{row.pk}/"
        return Response(wire.ImportOut(row).data, status=202, headers={"Location": where})


class AssetPages(KeysetPagination):
    ordering = "id"


class AssetViewSet(ListModelMixin, RetrieveModelMixin, PlatformViewSet):
    """Images of a version, paged by key, so that late pages cost what the first costs."""

    needs = {"list": VIEW, "retrieve": VIEW, "image": VIEW, "thumbnail": VIEW}
    asks = {"list": ("split", "class", "annotated", "search")}
    serializer_class = wire.AssetOut
    pagination_class = AssetPages

    def get_queryset(self) -> Any:
        rows = Asset.objects.visible_to(self.request.user)
        if "version_pk" not in self.kwargs:
            return rows.select_related("version")
        visible = DatasetVersion.objects.visible_to(self.request.user)
        version = get_object_or_404(visible, pk=self.kwargs["version_pk"], dataset=self.kwargs["dataset_pk"])
        filters = queries.read_filters(self.request)
        class_id = None
        if class_text := filters.get("class", ""):
            class_id = ids.number(class_text.removeprefix("-"))
            if class_id is None:
                raise Invalid(_("class must be the number of a class."))
            class_id = -class_id if class_text.startswith("-") else class_id
        split, annotated = filters.get("split"), queries.read_choice(filters, "annotated", "true", "false")
        return rows.of_version(
            version.pk,
            split="" if split == NO_SPLIT else split,
            class_id=class_id,
            annotated=annotated == "true" if annotated else None,
            text=filters.get("search", ""),
        )

    @_BYTES
    def image(self, request: ApiRequest, pk: int) -> HttpResponseBase:
        return image_response(request._request, self.get_object())

    @_BYTES
    def thumbnail(self, request: ApiRequest, pk: int) -> HttpResponseBase:
        return thumbnail_response(request._request, self.get_object())


class ImportViewSet(ListModelMixin, RetrieveModelMixin, DatasetRooted):
    """Imports: data is checked, reported, then made a version."""

    needs = {"list": VIEW, "retrieve": VIEW, "create": CREATE, "commit": CREATE, "cancel": CREATE}
    serializer_class = wire.ImportOut

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if self.action == "list":
            self.dataset()  # the list of a stranger's dataset is missing, not empty

    def get_queryset(self) -> Any:
        return Import.objects.visible_to(self.request.user).filter(dataset=self.kwargs["dataset_pk"])

    def retrieve(self, request: Request, dataset_pk: int, pk: int) -> Response:
        row = self.get_object()
        imports.nudge_if_forgotten(row)
        return Response(wire.ImportOut(row).data)

    @extend_schema(request=wire.ImportIn, responses={202: wire.ImportOut})
    @once
    def create(self, request: ApiRequest, dataset_pk: int) -> Response:
        dataset = self.dataset(change=True)
        serializer = wire.ImportIn(data=request.data)
        serializer.is_valid(raise_exception=True)
        row = imports.start(dataset=dataset, by=request.user, **serializer.validated_data)
        where = f"/api/v1/datasets/{dataset.pk}/imports/{row.pk}/"
        return Response(wire.ImportOut(row).data, status=202, headers={"Location": where})

    @extend_schema(request=wire.CommitIn, responses=wire.ImportOut)
    def commit(self, request: ApiRequest, dataset_pk: int, pk: int) -> Response:
        row = self.get_object()
        serializer = wire.CommitIn(data=request.data)
        serializer.is_valid(raise_exception=True)
        fields = serializer.validated_data
        allowed = fields["allow_unlabelled"]
        agreed = imports.commit(row, by=request.user, names=fields.get("classes"), allow_unlabelled=allowed)
        return Response(wire.ImportOut(agreed).data, status=202)

    @extend_schema(request=None, responses=wire.ImportOut)
    def cancel(self, request: ApiRequest, dataset_pk: int, pk: int) -> Response:
        return Response(wire.ImportOut(imports.cancel(self.get_object())).data)


class UploadPages(KeysetPagination):
    ordering = "-created_at"


class UploadViewSet(ListModelMixin, RetrieveModelMixin, PlatformViewSet):
    """Own uploads; bytes go to /uploads/tus/ (tus 1.0)."""

    needs = {"list": CREATE, "retrieve": CREATE}
    serializer_class = wire.UploadOut
    pagination_class = UploadPages

    def get_queryset(self) -> Any:
        return Upload.objects.visible_to(self.request.user)
