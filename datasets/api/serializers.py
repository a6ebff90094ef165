"""Serializers of the API of datasets."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers

from aiplatform.lib import ids
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import StrictMixin
from aiplatform.lib.units import Count
from datasets.formats import detect, mask_pairs, scaling
from datasets.models import Asset, Dataset, DatasetVersion, Import, Upload
from datasets.services import import_summary
from datasets.services.datasets import INTRO_MAX, NAME_MAX
from datasets.services.import_options import Options
from datasets.services.report_wording import meaning, to_display
from datasets.services.splits import SEED_MAX, wish_of

#: An import's states as scripts read them: the same words jobs use where they mean the same.
STATES = {"reported": "checked", "done": "succeeded", "cancelled": "stopped"}
FORMATS = ["auto", *detect.FORMATS.names()]


class DatasetOut(OutMixin, serializers.ModelSerializer):
    """A dataset with the figures of its newest version."""

    description = serializers.CharField(source="intro")
    owner = serializers.CharField(source="owner.username")
    public = serializers.SerializerMethodField()
    latest_version = serializers.IntegerField(source="newest_number", allow_null=True)
    annotated = serializers.BooleanField(source="newest_annotated", allow_null=True)
    images = serializers.IntegerField(source="newest_images", allow_null=True)
    size_bytes = serializers.IntegerField(source="newest_bytes", allow_null=True)
    task = serializers.CharField(source="newest_task", allow_null=True)

    class Meta:
        model = Dataset
        fields = [
            "id",
            "name",
            "intro",
            "description",
            "owner",
            "visibility",
            "public",
            "source",
            "latest_version",
            "annotated",
            "images",
            "size_bytes",
            "task",
            "created_at",
            "updated_at",
        ]

    def get_public(self, dataset: Dataset) -> bool:
        return dataset.visibility == Dataset.Visibility.PUBLIC


class DatasetIn(StrictMixin, serializers.Serializer):
    """A new dataset. `intro` (or `description`) is the name where none is given."""

    name = serializers.CharField(max_length=NAME_MAX)
    intro = serializers.CharField(max_length=INTRO_MAX, required=False, allow_blank=True)
    description = serializers.CharField(max_length=INTRO_MAX, required=False, allow_blank=True)
    visibility = serializers.ChoiceField(choices=Dataset.Visibility.choices, required=False)
    public = serializers.BooleanField(required=False)
    annotated = serializers.BooleanField(
        required=False,
        allow_null=True,
        default=None,
        help_text="true insists on annotations, false takes images only; null takes annotations where there are any.",
    )
    upload = serializers.CharField(max_length=32, required=False, allow_blank=True)
    server_path = serializers.CharField(max_length=500, required=False, allow_blank=True)

    def validate(self, data: dict[str, Any]) -> dict[str, Any]:
        public = data.pop("public", False)
        path = data.pop("server_path", "")
        return {
            "name": data["name"],
            "intro": data.get("intro") or data.get("description") or data["name"],
            "visibility": data.get("visibility") or ("public" if public else "private"),
            "annotated": data["annotated"],
            "upload_id": data.get("upload", ""),
            "source": "server" if path else "upload",
            "server_path": path,
        }


class DatasetEdit(StrictMixin, serializers.Serializer):
    """What may change. Names stay."""

    intro = serializers.CharField(max_length=INTRO_MAX, required=False)
    visibility = serializers.ChoiceField(choices=Dataset.Visibility.choices, required=False)


class VersionEdit(StrictMixin, serializers.Serializer):
    """What may change of a version."""

    colors = serializers.DictField(
        child=serializers.CharField(max_length=7), help_text="Class id → color such as #1c7ed6; others keep theirs."
    )


class VersionOut(OutMixin, serializers.ModelSerializer):
    dataset_name = serializers.CharField(source="dataset.name")
    images = serializers.IntegerField(source="image_count")
    annotations = serializers.IntegerField(source="annotation_count")
    note = serializers.CharField(source="changed")
    figures = serializers.JSONField(allow_null=True)
    leaks = serializers.SerializerMethodField()
    classes = serializers.JSONField(source="colored_classes", help_text="Each with `id`, `name` and `color`.")
    parent = serializers.IntegerField(source="parent_id", allow_null=True)  # type: ignore[assignment]  # a field of that name, not DRF's attribute

    class Meta:
        model = DatasetVersion
        fields = [
            "id",
            "dataset",
            "dataset_name",
            "number",
            "state",
            "task",
            "annotated",
            "classes",
            "splits",
            "images",
            "annotations",
            "size_bytes",
            "manifest_sha256",
            "parent",
            "note",
            "leaks",
            "figures",
            "created_at",
        ]

    def get_leaks(self, version: DatasetVersion) -> list[dict[str, Any]]:
        """Images that stand in two splits: so many of `total` images `of` a split stand in `also` too."""
        return (version.figures or {}).get("leaks", [])


class Shares(StrictMixin, serializers.Serializer):
    """How images are dealt out, in percent. Equal files stay together in any case."""

    train = serializers.IntegerField(min_value=0, max_value=100, default=80)
    val = serializers.IntegerField(min_value=0, max_value=100, default=10)
    test = serializers.IntegerField(min_value=0, max_value=100, default=10)
    seed = serializers.IntegerField(min_value=0, max_value=SEED_MAX, default=0)
    stratify = serializers.BooleanField(default=True)
    group = serializers.ChoiceField(choices=["folder", "prefix"], default="", allow_blank=True)


class SplitIn(Shares):
    """How to split a version again. With `dry_run` nothing is made; the response shows the resulting split."""

    dry_run = serializers.BooleanField(default=False)


class SplitPreview(serializers.Serializer):
    """Images by split, in all and by class id; bundles that stay together; images that change their split."""

    images = serializers.DictField(child=serializers.IntegerField())
    classes = serializers.DictField(child=serializers.DictField(child=serializers.IntegerField()))
    groups = serializers.IntegerField()
    moved = serializers.IntegerField()


class AssetOut(OutMixin, serializers.ModelSerializer):
    class Meta:
        model = Asset
        fields = ["id", "path", "sha256", "width", "height", "split", "label", "object_count", "shapes"]


class ReadingIn(StrictMixin, serializers.Serializer):
    """How data is read on import."""

    format = serializers.ChoiceField(choices=FORMATS, default="auto")
    split = Shares(required=False, help_text="Split all images again; if omitted, the splits of the data are used.")
    allow_unlabelled = serializers.BooleanField(
        default=False,
        help_text="Import images although no annotation of the annotation files beside them can be used.",
    )
    encoding = serializers.CharField(
        max_length=40, required=False, help_text="Of text files that are not UTF-8, such as gb18030. Default: detected."
    )
    sizes = serializers.ChoiceField(
        choices=[scaling.SCALE, scaling.KEEP],
        required=False,
        help_text="Scale shapes, or keep them, where all stated sizes differ from the images' by one factor.",
    )
    mask_folders = serializers.DictField(
        child=serializers.ChoiceField(choices=[mask_pairs.MASKS, mask_pairs.IMAGES]),
        required=False,
        help_text="Folder → masks or images, where the report names a folder that may be either.",
    )

    @staticmethod
    def reading(data: dict[str, Any]) -> dict[str, Any]:
        """Remove the fields of reading from the request data and return them as arguments of `imports.start`."""
        split = data.pop("split", None)
        return {
            "wanted": data.pop("format"),
            "split": wish_of(**split).as_dict() if split is not None else None,
            "options": Options(
                allow_unlabelled=data.pop("allow_unlabelled"),
                encoding=data.pop("encoding", ""),
                sizes=data.pop("sizes", ""),
                mask_folders=data.pop("mask_folders", {}),
            ),
        }


class ImportIn(ReadingIn):
    """Where the data of an import is: a complete upload, or a path on the server.

    With `dry_run` the import stops at its report and waits for `commit`.
    """

    upload = serializers.CharField(max_length=32, required=False)
    path = serializers.CharField(max_length=500, required=False)
    dry_run = serializers.BooleanField(default=False)

    def validate(self, data: dict[str, Any]) -> dict[str, Any]:
        if bool(data.get("upload")) == bool(data.get("path")):
            raise serializers.ValidationError({"upload": [_("Specify either upload or path.")]})
        path = data.get("path", "")
        return {
            "upload_id": data.get("upload", ""),
            "server_path": f"{path.rstrip('/')}/" if path else "",
            "agreed": not data["dry_run"],
            **self.reading(data),
        }


class CommitIn(StrictMixin, serializers.Serializer):
    """Options for agreeing to a report."""

    classes = serializers.DictField(
        child=serializers.CharField(max_length=200),
        required=False,
        help_text="Class id → name, for data that does not name its classes: masks, YOLO. Others keep their names.",
    )

    allow_unlabelled = serializers.BooleanField(
        default=False, help_text="Agree to a version without annotations although annotation files are there."
    )

    def validate_classes(self, classes: dict[str, str]) -> dict[int, str]:
        if wrong := [key for key in classes if ids.number(key) is None]:
            raise serializers.ValidationError(_("“%(id)s” is not a class id.") % {"id": wrong[0][:40]})
        return {int(key): name for key, name in classes.items()}


class ReportField(serializers.JSONField):
    """The report with its messages in the reader's language, and with their codes and facts."""

    def to_representation(self, value: Any) -> Any:
        return super().to_representation(to_display(value))


class ImportOut(OutMixin, serializers.ModelSerializer):
    """The progress of an import and what it contains."""

    state = serializers.SerializerMethodField()
    sentence = serializers.SerializerMethodField()
    summary = serializers.SerializerMethodField()
    progress = serializers.SerializerMethodField()
    report = ReportField(read_only=True)
    problems = serializers.SerializerMethodField()
    version = serializers.IntegerField(source="version_id", allow_null=True)

    class Meta:
        model = Import
        fields = [
            "id",
            "dataset",
            "state",
            "sentence",
            "summary",
            "phase",
            "progress",
            "format",
            "report",
            "problems",
            "version",
            "created_at",
            "updated_at",
        ]

    def get_state(self, row: Import) -> str:
        return STATES.get(row.state, row.state)

    def get_sentence(self, row: Import) -> str:
        if row.error:
            return row.error
        report = row.report
        if not report or row.is_working:
            return ""
        lines = import_summary.lines(report)
        if report["fatal"]:
            lines.append(_("The import is blocked by problems. See the report."))
        return " ".join(lines)

    def get_summary(self, row: Import) -> dict[str, Any] | None:
        return import_summary.summary(row.report) if row.report and not row.is_working else None

    def get_progress(self, row: Import) -> float | None:
        return round(row.done / row.total, 4) if row.total else None

    def get_problems(self, row: Import) -> list[str]:
        """What forbids the import one by one; of the rest a line each, with a count and the first example."""
        report = to_display(row.report)
        groups, listed = report.get("groups"), report.get("problems", [])
        lines = [_line(problem) for problem in listed if groups is None or problem["fatal"]]
        for group in groups or []:
            first = group["examples"][0]
            if group["level"] == "problem" and group["count"] == 1:
                lines.append(_line(first))
            elif group["level"] != "fatal":
                what = meaning(group["code"], group["count"])
                told_so = {**_count(group["count"]), "what": what, "example": _line(first)}
                lines.append(_("%(count)s %(what)s, such as %(example)s") % told_so)
        return lines


def _count(count: int) -> dict[str, Any]:
    return {"count": Count(count)}


def _line(problem: dict[str, Any]) -> str:
    path, says = problem["path"], problem["message"]
    return _("%(path)s: %(says)s") % {"path": path, "says": says} if path else str(says)


class UploadOut(OutMixin, serializers.ModelSerializer):
    offset = serializers.IntegerField()
    url = serializers.SerializerMethodField()

    class Meta:
        model = Upload
        fields = ["id", "filename", "length", "offset", "state", "url", "created_at", "expires_at"]

    def get_url(self, upload: Upload) -> str:
        return f"/uploads/tus/{upload.pk}"
