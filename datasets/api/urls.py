"""Routes below /api/v1/."""

from typing import Any

from django.urls import URLPattern, path

from datasets.api.views import AssetViewSet, DatasetViewSet, ImportViewSet, UploadViewSet, VersionViewSet

DATASET = "datasets/<int:dataset_pk>/"
ASSETS = DATASET + "versions/<int:version_pk>/assets/"
ONE: dict[str, Any] = {"get": "retrieve"}

urlpatterns: list[URLPattern] = [
    path("datasets/", DatasetViewSet.as_view({"get": "list", "post": "create"}), name="dataset-list"),
    path(
        DATASET,
        DatasetViewSet.as_view(ONE | {"patch": "partial_update", "delete": "destroy"}),
        name="dataset-detail",
    ),
    path(DATASET + "versions/", VersionViewSet.as_view({"get": "list"}), name="dataset-version-list"),
    path(DATASET + "versions/<int:pk>/", VersionViewSet.as_view(ONE), name="dataset-version-detail"),
    path(ASSETS, AssetViewSet.as_view({"get": "list"}), name="asset-list"),
    path(ASSETS + "<int:pk>/", AssetViewSet.as_view(ONE), name="asset-detail"),
    path(
        "versions/<int:pk>/",
        VersionViewSet.as_view(ONE | {"patch": "partial_update", "delete": "destroy"}),
        name="version-detail",
    ),
    path("versions/<int:pk>/download/", VersionViewSet.as_view({"get": "download"}), name="version-download"),
    path("versions/<int:pk>/split/", VersionViewSet.as_view({"post": "split"}), name="version-split"),
    path("assets/<int:pk>/image/", AssetViewSet.as_view({"get": "image"}), name="asset-image"),
    path("assets/<int:pk>/thumbnail/", AssetViewSet.as_view({"get": "thumbnail"}), name="asset-thumbnail"),
    path(DATASET + "import/", ImportViewSet.as_view({"post": "create"}), name="dataset-import"),
    path(DATASET + "imports/", ImportViewSet.as_view({"get": "list", "post": "create"}), name="import-list"),
    path(DATASET + "imports/<int:pk>/", ImportViewSet.as_view(ONE), name="import-detail"),
    path(DATASET + "imports/<int:pk>/commit/", ImportViewSet.as_view({"post": "commit"}), name="import-commit"),
    path(DATASET + "imports/<int:pk>/cancel/", ImportViewSet.as_view({"post": "cancel"}), name="import-cancel"),
    path("uploads/", UploadViewSet.as_view({"get": "list"}), name="upload-list"),
    path("uploads/<slug:pk>/", UploadViewSet.as_view(ONE), name="upload-detail"),
]
