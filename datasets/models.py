"""Tables of datasets: datasets, immutable versions, images, uploads, imports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q, TextChoices
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from aiplatform.lib import class_colors
from aiplatform.lib.message_field import MessageField
from datasets.formats import annotation_kinds
from datasets.formats.neutral import NONE
from datasets.querysets import AssetQuerySet, DatasetQuerySet, ImportQuerySet, UploadQuerySet, VersionQuerySet

#: Last part of the codes of stories of drafts, such as prediction.draft.
DRAFT = "draft"


class Dataset(models.Model):
    """A named set of images that grows by versions."""

    class Visibility(TextChoices):
        PRIVATE = "private", _("Private")
        GROUP = "group", _("My groups")
        PUBLIC = "public", _("Public")

    class Source(TextChoices):
        UPLOAD = "upload", _("Upload in the browser")
        SERVER = "server", _("Data already on the server")

    name = models.CharField(_("name"), max_length=25)
    intro = models.CharField(_("description"), max_length=50)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="datasets")
    visibility = models.CharField(_("visible to"), max_length=8, choices=Visibility, default=Visibility.PRIVATE)
    source = models.CharField(_("source"), max_length=8, choices=Source, default=Source.UPLOAD)
    server_path = models.CharField(_("path on the server"), max_length=500, blank=True)  # with source "server"
    deleting = models.BooleanField(default=False)  # hidden from everybody; a sweep finishes the removal
    created_at = models.DateTimeField(default=now)
    updated_at = models.DateTimeField(auto_now=True)

    objects = DatasetQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="dataset_name_once_per_owner")]

    def __str__(self) -> str:
        return self.name

    @property
    def newest(self) -> DatasetVersion | None:
        """The newest version that is ready; None before the first."""
        version: DatasetVersion | None = (
            self.versions.filter(state=DatasetVersion.State.READY).order_by("-number").first()
        )
        return version

    @property
    def is_locked(self) -> bool:
        """Whether data has been imported, after which who may see it cannot change."""
        return self.versions.exists() or self.imports.filter(state=Import.State.COMMITTING).exists()


class DatasetVersion(models.Model):
    """Images, labels and splits that never change once `ready`; a training pins one."""

    class State(TextChoices):
        IMPORTING = "importing", _("Importing")
        READY = "ready", _("Ready")
        FAILED = "failed", _("Failed")

    dataset = models.ForeignKey(Dataset, models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=State, default=State.IMPORTING)
    task = models.CharField(max_length=15, choices=annotation_kinds.choices, default=NONE)  # what its images carry
    annotated = models.BooleanField(_("annotated"), default=False)
    parent = models.ForeignKey("self", models.SET_NULL, null=True, blank=True, related_name="children")
    note = models.CharField(max_length=200, blank=True)  # what changed, written by a user
    story = MessageField()  # what the platform did to make it
    root = models.CharField(max_length=500, blank=True)  # folder of dataset.json, manifest.jsonl, images/
    images_root = models.CharField(max_length=500, blank=True)  # where images/ points for data left in place; else ""
    classes = models.JSONField(default=list)  # [{"id": 1, "name": "RBC", "supercategory": "cell"}, …]
    colors = models.JSONField(default=dict, editable=False)  # {"1": "#4353d6", …}; classes that are missing: default
    splits = models.JSONField(default=dict)  # {"train": 205, "val": 87, "test": 72}
    image_count = models.PositiveIntegerField(default=0)
    annotation_count = models.PositiveIntegerField(default=0)
    size_bytes = models.PositiveBigIntegerField(default=0)
    figures = models.JSONField(null=True, editable=False)  # see formats.figures; None: not counted yet
    manifest_sha256 = models.CharField(max_length=64, blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=now)

    objects = VersionQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [models.UniqueConstraint(fields=["dataset", "number"], name="version_number_once")]

    def __str__(self) -> str:
        return f"{self.dataset} v{self.number}"

    @property
    def is_draft(self) -> bool:
        """Whether its annotations wait for correction: predictions, or images that a model got wrong."""
        return self.story.code.rpartition(".")[2] == DRAFT

    @property
    def tag(self) -> str:
        return f"v{self.number}"

    @property
    def path(self) -> Path:
        return Path(self.root)

    @property
    def images_path(self) -> Path:
        """Folder asset paths are relative to."""
        return Path(self.images_root) if self.images_root else self.path / "images"

    @property
    def folders(self) -> list[Path]:
        """What a job must be able to read: the version's folder and, for images left in place, where they lie."""
        if not self.images_root:
            return [self.path]
        return list(dict.fromkeys([self.path, self.images_path, self.images_path.resolve()]))

    @property
    def class_names(self) -> dict[int, str]:
        return {item["id"]: item["name"] for item in self.classes}

    @property
    def class_colors(self) -> dict[int, str]:
        """Class id → color such as #4353d6."""
        return class_colors.complete(self.classes, self.colors)

    @property
    def colored_classes(self) -> list[dict[str, Any]]:
        """The classes, each with its `color`."""
        colors = self.class_colors
        return [item | {"color": colors[item["id"]]} for item in self.classes]

    @property
    def is_ready(self) -> bool:
        return self.state == self.State.READY

    @property
    def changed(self) -> str:
        """What changed, in the reader's language where the platform did it."""
        return str(self.story) or self.note


class Asset(models.Model):
    """One image of a version."""

    class Content(models.IntegerChoices):
        UNSEEN = 0, _("Not annotated")
        EMPTY = 1, _("Annotated, without objects")
        OBJECTS = 2, _("With objects")

    version = models.ForeignKey(DatasetVersion, models.CASCADE, related_name="assets")
    path = models.CharField(max_length=500)  # relative to images/
    sha256 = models.CharField(max_length=64)
    width = models.PositiveIntegerField()  # EXIF-upright pixels
    height = models.PositiveIntegerField()
    split = models.CharField(max_length=10, blank=True)  # train, val, test or ""
    label = models.IntegerField(null=True, blank=True)  # class id, where images carry one class
    content = models.PositiveSmallIntegerField(choices=Content, default=Content.UNSEEN)
    object_count = models.PositiveIntegerField(default=0)  # drawn on it; 1 where the image carries a class
    # [[class id, name of a shape kind, [x0, y0, x1, y1, …]], …] in pixels, points as the kind's `drawn` gives them: a
    # box as two corners, a shape of several parts as several entries. For drawing: annotations.json is the record.
    shapes = models.JSONField(default=list)

    objects = AssetQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["version", "path"], name="asset_path_once")]
        indexes = [  # rows are long with their shapes, so that indexes answer filters and orders
            models.Index(fields=["version", "split", "id"], name="asset_split"),
            models.Index(fields=["version", "content", "id"], name="asset_content"),
            models.Index(fields=["version", "split", "content", "id"], name="asset_split_content"),
            models.Index(fields=["version", "object_count", "id"], name="asset_object_count"),
        ]

    def __str__(self) -> str:
        return self.path


class AssetClass(models.Model):
    """Which classes stand on which image: the gallery's class filter without reading shapes."""

    asset = models.ForeignKey(Asset, models.CASCADE, related_name="class_rows")
    version = models.ForeignKey(DatasetVersion, models.CASCADE, related_name="+")
    class_id = models.IntegerField()
    split = models.CharField(max_length=10, blank=True)  # the image's, so that both are found in one index

    class Meta:
        constraints = [models.UniqueConstraint(fields=["asset", "class_id"], name="asset_class_once")]
        indexes = [
            models.Index(fields=["version", "class_id", "asset"], name="asset_by_class"),
            models.Index(fields=["version", "class_id", "split", "asset"], name="asset_by_class_and_split"),
        ]


class Upload(models.Model):
    """A file that is being uploaded (tus), then the archive of an import."""

    class State(TextChoices):
        OPEN = "open", _("Uploading")
        DONE = "done", _("Uploaded")
        USED = "used", _("Imported")

    id = models.CharField(primary_key=True, max_length=32)  # random hex, also its folder's name
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="uploads")
    filename = models.CharField(max_length=255, blank=True)
    length = models.PositiveBigIntegerField()  # bytes announced
    state = models.CharField(max_length=5, choices=State, default=State.OPEN)
    sha256 = models.CharField(max_length=64, blank=True)
    metadata = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=now)
    expires_at = models.DateTimeField(null=True, blank=True)

    objects = UploadQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["expires_at"], condition=Q(state="open"), name="upload_expiry")]

    def __str__(self) -> str:
        return self.filename or self.id

    @property
    def folder(self) -> Path:
        return Path(settings.DATA_ROOT) / "uploads" / self.id

    @property
    def file(self) -> Path:
        return self.folder / "data"

    @property
    def offset(self) -> int:
        """Bytes that have arrived; the file is the truth."""
        try:
            return self.file.stat().st_size
        except FileNotFoundError:
            return 0


class Import(models.Model):
    """Data on its way into a dataset: unpacked, checked, reported, and only then made a version.

    The row says what is wanted and how far it is; the holder of the claim works on it. A worker that dies
    lets the claim run out and the next one goes on from the files that are there.
    """

    class State(TextChoices):
        WAITING = "waiting", _("Waiting for a worker")
        CHECKING = "checking", _("Reading and checking")
        REPORTED = "reported", _("Ready to import")
        COMMITTING = "committing", _("Importing")
        DONE = "done", _("Imported")
        FAILED = "failed", _("Failed")
        CANCELLED = "cancelled", _("Cancelled")

    OPEN = (State.WAITING, State.CHECKING, State.REPORTED, State.COMMITTING)
    WORKING = (State.WAITING, State.CHECKING, State.COMMITTING)

    dataset = models.ForeignKey(Dataset, models.CASCADE, related_name="imports")
    upload = models.ForeignKey(Upload, models.SET_NULL, null=True, blank=True, related_name="imports")
    server_path = models.CharField(max_length=500, blank=True)
    source_version = models.ForeignKey(DatasetVersion, models.SET_NULL, null=True, blank=True, related_name="+")
    split = models.JSONField(default=dict)  # a `splitting.Wish`; {} keeps the splits the data has
    annotated = models.BooleanField(default=False)  # whether annotations in the data are to be used
    wanted = models.CharField(max_length=20, blank=True)  # a format by name, "auto", or "" to go by `annotated`
    creates_dataset = models.BooleanField(default=False)  # its dataset goes with it, when it is discarded
    options = models.JSONField(default=dict)  # `import_options.Options`: what a user decided about the data
    agreed = models.BooleanField(default=False)  # commit by itself when nothing forbids it
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    phase = models.CharField(max_length=20, blank=True)  # what the worker does now
    done = models.PositiveBigIntegerField(default=0)
    total = models.PositiveBigIntegerField(default=0)  # 0: not known yet
    format = models.CharField(max_length=20, blank=True)
    report = models.JSONField(default=dict)
    error = models.CharField(max_length=500, blank=True)
    version = models.OneToOneField(DatasetVersion, models.SET_NULL, null=True, blank=True, related_name="origin")
    tries = models.PositiveSmallIntegerField(default=0)  # workers that took it on and never came back
    holder = models.CharField(max_length=100, blank=True)  # the worker that has it in hand, see services.claims
    renewed_at = models.DateTimeField(null=True, blank=True)  # last sign of life of the holder
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=now)
    updated_at = models.DateTimeField(auto_now=True)

    objects = ImportQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["dataset"],
                condition=Q(state__in=["waiting", "checking", "reported", "committing"]),
                name="one_open_import_per_dataset",
            )
        ]
        indexes = [
            models.Index(
                fields=["renewed_at"],
                condition=Q(state__in=["waiting", "checking", "committing"]),
                name="import_sweep",
            )
        ]

    def __str__(self) -> str:
        return f"{self.dataset} import {self.pk}"

    @property
    def is_open(self) -> bool:
        return self.state in self.OPEN

    @property
    def is_working(self) -> bool:
        return self.state in self.WORKING

    @property
    def folder(self) -> Path:
        """Unpacked files, checked images and the plan, until the import is over."""
        return Path(settings.DATA_ROOT) / "imports" / str(self.pk)
