"""`/api/v1/files/`: the caller's home folder, and folders that others share with them.

Paths are those of the answers: relative to the home, or to the shared folder where `shared` names one.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.db import transaction
from drf_spectacular.helpers import forced_singular_serializer
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from aiplatform import env
from aiplatform.lib import queries
from aiplatform.lib.api import PlatformViewSet, StrictMixin, parse_request
from aiplatform.lib.downloads import send_file
from aiplatform.lib.idempotency import once, once_in_parts, store_response
from aiplatform.lib.zips import send_zip
from datasets.api.serializers import ImportOut, ReadingIn
from datasets.files import changes, datasets, listing, packing, paths, preview, sharing, usage
from datasets.files.models import SharedFolder
from datasets.files.paths import Location
from datasets.services.datasets import NAME_MAX

PATH = OpenApiParameter("path", str, description="The home itself unless given.")
SHARED = OpenApiParameter("shared", int, description="The id of a shared folder; the own home unless given.")
PAGE = OpenApiParameter("page", int, description=f"{listing.PAGE} entries each, from 1 on.")
SEARCH = OpenApiParameter("search", str, description="Words that a name has.")


class EntryOut(serializers.Serializer):
    """A file, a folder, a link or a special file. Odd bytes of a name stand as `\\xNN`, a backslash as two."""

    name = serializers.CharField()
    path = serializers.CharField()
    kind = serializers.ChoiceField(choices=[listing.FOLDER, listing.FILE, listing.LINK, listing.OTHER])
    size_bytes = serializers.IntegerField()
    changed_at = serializers.DateTimeField()


class FolderOut(serializers.Serializer):
    path = serializers.CharField()
    total = serializers.IntegerField()
    more = serializers.BooleanField(help_text="There are more than are listed at all.")
    next = serializers.CharField(allow_null=True)
    results = EntryOut(many=True)


class SharedFolderOut(serializers.Serializer):
    """With whom it is shared is under `/api/v1/shares/folder/{id}/`, for its owner."""

    id = serializers.IntegerField(source="pk")
    owner = serializers.CharField(source="owner.username")
    path = serializers.SerializerMethodField(help_text="Below the owner's home; of others' folders the name alone.")
    name = serializers.CharField(source="__str__")

    def get_path(self, row: SharedFolder) -> str:
        return row.path if row.owner_id == self.context["request"].user.pk else str(row)


class HomeUsageOut(serializers.Serializer):
    size_bytes = serializers.IntegerField()
    files = serializers.IntegerField()
    whole = serializers.BooleanField(help_text="False: it holds at least this.")
    measured_at = serializers.DateTimeField()
    quota_bytes = serializers.SerializerMethodField(help_text="0: no limit.")

    def get_quota_bytes(self, _row: Any) -> int:
        return env.HOME_QUOTA_BYTES


class PathIn(StrictMixin, serializers.Serializer):
    path = serializers.CharField(max_length=16_000, trim_whitespace=False)


class MoveIn(PathIn):
    to = serializers.CharField(max_length=16_000, trim_whitespace=False)
    replace = serializers.BooleanField(default=False)


class PutIn(PathIn):
    upload = serializers.CharField(max_length=32, help_text="The id of an upload that has arrived.")
    replace = serializers.BooleanField(default=False)


class CheckIn(PathIn):
    size_bytes = serializers.IntegerField(min_value=0, max_value=2**62)
    replace = serializers.BooleanField(default=False)


class FilesDatasetIn(ReadingIn, PathIn):
    """A folder, an archive or an image that becomes a dataset."""

    path = serializers.CharField(max_length=16_000, trim_whitespace=False, default="", allow_blank=True)
    shared = serializers.IntegerField(required=False, help_text="The id of a shared folder; the own home unless given.")
    name = serializers.CharField(
        max_length=NAME_MAX, default="", allow_blank=True, help_text="If empty, the name of the folder."
    )


ONE_FOLDER = forced_singular_serializer(FolderOut)  # type: ignore[no-untyped-call]  # of drf-spectacular


class FilesViewSet(PlatformViewSet):
    """Files of the caller's home. Other users, operators included, read only the folders that their owner shares."""

    needs = {
        "list": Action.JOBS_VIEW,
        "about": Action.JOBS_VIEW,
        "content": Action.JOBS_VIEW,
        "zip": Action.JOBS_VIEW,
        "usage": Action.JOBS_VIEW,
        "shared": Action.JOBS_VIEW,
        "folder": Action.JOBS_SUBMIT,
        "move": Action.JOBS_SUBMIT,
        "remove": Action.JOBS_SUBMIT,
        "place": Action.JOBS_SUBMIT,
        "check": Action.JOBS_SUBMIT,
        "share": Action.JOBS_SUBMIT,
        "dataset": Action.DATASETS_CREATE,
    }
    asks = {
        "list": ("path", "shared", "search", "page"),
        "about": ("path", "shared"),
        "content": ("path", "shared", "inline"),
        "zip": ("path", "shared"),
    }
    orders = listing.ORDERING
    pagination_class = None
    serializer_class = EntryOut
    queryset = SharedFolder.objects.none()

    @extend_schema(responses=ONE_FOLDER, parameters=[PATH, SHARED, SEARCH, PAGE])
    def list(self, request: ApiRequest) -> Response:
        """List the entries of a folder, folders first."""
        filters = queries.read_filters(request)
        location = _location(request)
        folder = listing.list_folder(
            location, order=listing.ORDERING.demanded(request.query_params), text=filters.get("search", "")[:100]
        )
        number = listing.parse_page(filters.get("page", ""))
        rows, has_next = listing.page_of(folder, number)
        query = {**{name: str(value) for name, value in request.query_params.items()}, "page": str(number + 1)}
        url = request.build_absolute_uri(f"{request.path}?{urlencode(query)}") if has_next else None
        total = len(folder.entries)
        return Response(
            FolderOut({"path": location.path, "total": total, "more": folder.more, "next": url, "results": rows}).data
        )

    @extend_schema(responses=EntryOut, parameters=[PATH, SHARED])
    @action(detail=False)
    def about(self, request: ApiRequest) -> Response:
        """Return the entry at a path, of a link the link itself."""
        return Response(EntryOut(listing.get_entry(_location(request))).data)

    @extend_schema(parameters=[PATH, SHARED, OpenApiParameter("inline", bool, description="1: a preview image.")])
    @action(detail=False)
    def content(self, request: ApiRequest) -> Any:
        """Download one file; `Range` is supported."""
        location = _location(request)
        inline = request.query_params.get("inline") == "1"
        return send_file(request._request, preview.open_file(location), location.name, inline=inline)

    @extend_schema(parameters=[PATH, SHARED])
    @action(detail=False)
    def zip(self, request: ApiRequest) -> Any:
        """Download a folder with all its files as zip, without links; `Range` is supported."""
        location = _location(request)
        return send_zip(request._request, packing.entries(location), f"{location.name or request.user.username}.zip")

    @extend_schema(responses=HomeUsageOut)
    @action(detail=False)
    def usage(self, request: ApiRequest) -> Response:
        """How much the home holds and may hold."""
        return Response(HomeUsageOut(usage.for_user(request.user)).data)

    @extend_schema(responses=SharedFolderOut(many=True))
    @action(detail=False)
    def shared(self, request: ApiRequest) -> Response:
        """Folders that others share with the caller, and those that the caller shares."""
        rows = [*sharing.with_me(request.user), *sharing.with_others(request.user)]
        return Response(SharedFolderOut(rows, many=True, context={"request": request}).data)

    @extend_schema(request=PathIn, responses={201: EntryOut})
    @action(detail=False, methods=["post"])
    @once
    def folder(self, request: ApiRequest) -> Response:
        """Make a folder, with those above it."""
        data = parse_request(PathIn(data=request.data))
        return Response(EntryOut(changes.make_folder(request.user, data["path"])).data, 201)

    @extend_schema(request=MoveIn, responses=EntryOut)
    @action(detail=False, methods=["post"])
    @once_in_parts
    def move(self, request: ApiRequest) -> Response:
        """Give a file or folder another name or place."""
        data = parse_request(MoveIn(data=request.data))
        entry = changes.move(request.user, data["path"], data["to"], replace=data["replace"])
        return Response(EntryOut(entry).data)

    @extend_schema(request=PathIn, responses={204: None})
    @action(detail=False, methods=["post"])
    def remove(self, request: ApiRequest) -> Response:
        """Delete a file, or a folder with all in it."""
        changes.delete(request.user, parse_request(PathIn(data=request.data))["path"])
        return Response(status=204)

    @extend_schema(request=CheckIn, responses={204: None})
    @action(detail=False, methods=["post"])
    def check(self, request: ApiRequest) -> Response:
        """Whether a file of this size may come to this path; ask before it is sent."""
        data = parse_request(CheckIn(data=request.data))
        changes.check_upload_target(request.user, data["path"], data["size_bytes"], replace=data["replace"])
        return Response(status=204)

    @extend_schema(request=PutIn, responses={201: EntryOut})
    @action(detail=False, methods=["post"], url_path="put")
    @once_in_parts
    def place(self, request: ApiRequest) -> Response:
        """Bring a file that was uploaded (`/uploads/tus/`) to its path, with the folders above it."""
        data = parse_request(PutIn(data=request.data))
        entry = changes.store_upload(request.user, data["upload"], data["path"], replace=data["replace"])
        with transaction.atomic():
            return store_response(request, Response(EntryOut(entry).data, 201))

    @extend_schema(request=PathIn, responses={201: SharedFolderOut})
    @action(detail=False, methods=["post"])
    @once
    def share(self, request: ApiRequest) -> Response:
        """Make a folder one that can be shared; say with whom under `/api/v1/shares/folder/{id}/`."""
        row = sharing.prepare(request.user, parse_request(PathIn(data=request.data))["path"])
        return Response(SharedFolderOut(row, context={"request": request}).data, 201)

    @extend_schema(request=FilesDatasetIn, responses={202: ImportOut})
    @action(detail=False, methods=["post"])
    @once
    def dataset(self, request: ApiRequest) -> Response:
        """Import a folder, an archive or an image as a new dataset; it commits by itself unless a user must decide."""
        data = parse_request(FilesDatasetIn(data=request.data))
        reading = FilesDatasetIn.reading(data)
        location = paths.readable_by(request.user, data["path"], data.get("shared"))
        row = datasets.make(location, by=request.user, name=data["name"], **reading)
        where = f"/api/v1/datasets/{row.dataset_id}/imports/{row.pk}/"
        return Response(ImportOut(row).data, status=202, headers={"Location": where})


def _location(request: ApiRequest) -> Location:
    number = queries.read_int(request.query_params, "shared")
    return paths.readable_by(request.user, request.query_params.get("path", ""), number)
