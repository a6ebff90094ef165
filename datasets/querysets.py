"""What a person may see of datasets."""

from __future__ import annotations

from accounts.querysets import OwnedQuerySet


class DatasetQuerySet(OwnedQuerySet):
    visibility_path = "visibility"


class VersionQuerySet(OwnedQuerySet):
    owner_path = "dataset__owner"
    visibility_path = "dataset__visibility"


class AssetQuerySet(OwnedQuerySet):
    owner_path = "version__dataset__owner"
    visibility_path = "version__dataset__visibility"
