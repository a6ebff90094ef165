"""Serializers of the annotation API. Those of requests are plain, those of answers are model ones."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import VisibleField
from annotation.models import (
    AnnotationProject,
    AnnotationSet,
    Export,
    ImageTask,
    LabelClass,
    ProjectMember,
    Review,
    targets,
)
from annotation.models.projects import drawn_as
from datasets import shapes
from datasets.models import DatasetVersion
from datasets.services.datasets import NAME_MAX


class ProjectIn(serializers.Serializer):
    name = serializers.CharField(max_length=100)
    intro = serializers.CharField(max_length=500, default="", allow_blank=True)


class ProjectOut(OutMixin, serializers.ModelSerializer):
    intro = serializers.CharField()
    owner = serializers.CharField(source="owner.username", read_only=True)
    datasets = serializers.IntegerField(source="set_count", read_only=True, default=0)

    class Meta:
        model = AnnotationProject
        fields = ["id", "name", "intro", "owner", "datasets", "created_at", "updated_at"]


class MemberIn(serializers.Serializer):
    username = serializers.CharField(max_length=50)
    role = serializers.ChoiceField(ProjectMember.Role.choices, default=ProjectMember.Role.ANNOTATOR)


class MemberChange(serializers.Serializer):
    role = serializers.ChoiceField(ProjectMember.Role.choices)


class MemberOut(OutMixin, serializers.ModelSerializer):
    id = serializers.IntegerField(source="user_id")
    username = serializers.CharField(source="user.username")

    class Meta:
        model = ProjectMember
        fields = ["id", "username", "role", "created_at"]


class ShapeKindField(serializers.ChoiceField):
    """A kind that users can draw, or any. Created with every serializer, so a kind registered later counts too."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(choices=drawn_as(), **kwargs)


class LabelIn(serializers.Serializer):
    name = serializers.CharField(max_length=50)
    supercategory = serializers.CharField(max_length=50, default="", allow_blank=True)
    shape = ShapeKindField(default=shapes.DEFAULT.name)
    colour = serializers.RegexField(r"^#[0-9a-fA-F]{6}\Z", default="")


class LabelChange(serializers.Serializer):
    name = serializers.CharField(max_length=50, required=False)
    supercategory = serializers.CharField(max_length=50, required=False, allow_blank=True)
    shape = ShapeKindField(required=False)
    colour = serializers.RegexField(r"^#[0-9a-fA-F]{6}\Z", required=False)


class LabelOut(OutMixin, serializers.ModelSerializer):
    supercategory = serializers.CharField()

    class Meta:
        model = LabelClass
        fields = ["id", "coco_id", "name", "supercategory", "shape", "colour"]


class SetIn(serializers.Serializer):
    name = serializers.CharField(max_length=100)
    intro = serializers.CharField(max_length=500, default="", allow_blank=True)
    visibility = serializers.ChoiceField(AnnotationSet.Visibility.choices, default=AnnotationSet.Visibility.PRIVATE)
    source = VisibleField(DatasetVersion, to_use=True)  # type: ignore[assignment]  # a field of that name, not DRF's attribute
    labels = LabelIn(many=True, required=False, default=list)
    with_shapes = serializers.BooleanField(default=True)


class SetChange(serializers.Serializer):
    name = serializers.CharField(max_length=100, required=False)
    intro = serializers.CharField(max_length=500, required=False, allow_blank=True)
    visibility = serializers.ChoiceField(AnnotationSet.Visibility.choices, required=False)


class SetOut(OutMixin, serializers.ModelSerializer):
    source: serializers.PrimaryKeyRelatedField[DatasetVersion] = serializers.PrimaryKeyRelatedField(read_only=True)  # type: ignore[assignment]  # a field of that name, not DRF's attribute
    intro = serializers.CharField()
    progress = serializers.SerializerMethodField()
    conversion = serializers.SerializerMethodField()

    class Meta:
        model = AnnotationSet
        fields = [
            "id", "project", "name", "intro", "visibility", "kind", "source", "filled", "progress", "conversion",
            "created_at",
        ]  # fmt: skip

    def get_progress(self, annotation_set: AnnotationSet) -> dict[str, int]:
        progress = self.context["progress"][annotation_set.pk]
        return {
            "total": progress.total, "new": progress.new, "in_progress": progress.in_progress,
            "submitted": progress.submitted, "rejected": progress.rejected, "accepted": progress.accepted,
        }  # fmt: skip

    def get_conversion(self, annotation_set: AnnotationSet) -> str | None:
        newest = self.context["conversions"].get(annotation_set.pk)
        return newest.state if newest else None


class TaskOut(OutMixin, serializers.ModelSerializer):
    dataset = serializers.IntegerField(source="set_id")
    name = serializers.CharField(source="asset.path")
    width = serializers.IntegerField(source="asset.width")
    height = serializers.IntegerField(source="asset.height")

    class Meta:
        model = ImageTask
        fields = [
            "id", "dataset", "number", "name", "width", "height", "state", "empty", "remark", "shape_count", "rev",
            "updated_at",
        ]  # fmt: skip


class SubmitIn(serializers.Serializer):
    empty = serializers.BooleanField(default=False)


class ReviewIn(serializers.Serializer):
    verdict = serializers.ChoiceField(Review.Verdict.choices)
    comment = serializers.CharField(max_length=500, default="", allow_blank=True)
    rev = serializers.IntegerField(min_value=0, default=None, allow_null=True, help_text="Revision looked at.")


class ReviewOut(OutMixin, serializers.ModelSerializer):
    by = serializers.CharField(source="by.username", default=None)

    class Meta:
        model = Review
        fields = ["id", "verdict", "comment", "rev", "by", "at"]


class ExportIn(serializers.Serializer):
    dataset = VisibleField(AnnotationSet)
    target = serializers.ChoiceField(targets(), default="coco")
    make_version = serializers.BooleanField(default=True)
    new_dataset = serializers.CharField(
        max_length=NAME_MAX, default="", allow_blank=True,
        help_text="Name of a new dataset for the version; empty: a version of the dataset of the images.",
    )  # fmt: skip


class ExportOut(OutMixin, serializers.ModelSerializer):
    dataset = serializers.IntegerField(source="set_id")
    version: serializers.PrimaryKeyRelatedField[DatasetVersion] = serializers.PrimaryKeyRelatedField(read_only=True)

    class Meta:
        model = Export
        fields = [
            "id", "dataset", "target", "state", "make_version", "version", "sha256", "size_bytes", "images",
            "annotations", "left_out", "detail", "created_at", "ended_at",
        ]  # fmt: skip
