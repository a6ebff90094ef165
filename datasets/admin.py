"""Datasets in the admin site: read and search."""

from __future__ import annotations

from django.contrib import admin

from aiplatform.lib.admin import LookOnly
from datasets.models import Dataset, DatasetVersion, Import, Upload


@admin.register(Dataset)
class DatasetAdmin(LookOnly):
    list_display = ["name", "owner", "visibility", "source", "deleting", "updated_at"]
    list_filter = ["visibility", "source", "deleting"]
    list_select_related = ["owner"]
    search_fields = ["name", "intro", "owner__username"]


@admin.register(DatasetVersion)
class VersionAdmin(LookOnly):
    list_display = ["dataset", "number", "state", "task", "image_count", "annotation_count", "size_bytes", "created_at"]
    list_filter = ["state", "task"]
    list_select_related = ["dataset"]
    search_fields = ["dataset__name", "manifest_sha256"]


@admin.register(Import)
class ImportAdmin(LookOnly):
    list_display = ["dataset", "state", "phase", "done", "total", "tries", "renewed_at", "updated_at"]
    list_filter = ["state"]
    list_select_related = ["dataset"]
    search_fields = ["dataset__name", "error"]


@admin.register(Upload)
class UploadAdmin(LookOnly):
    list_display = ["filename", "owner", "length", "state", "created_at", "expires_at"]
    list_filter = ["state"]
    list_select_related = ["owner"]
    search_fields = ["filename", "owner__username"]
