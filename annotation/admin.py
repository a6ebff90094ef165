"""Annotation in the admin site: read only; shapes are changed in the annotator."""

from __future__ import annotations

from django.contrib import admin
from unfold.admin import ModelAdmin, TabularInline

from aiplatform.lib.admin import LookOnly
from annotation.models import (
    AnnotationProject,
    AnnotationSet,
    Export,
    ImageTask,
    LabelClass,
    ProjectMember,
    Review,
    Shape,
)


class MemberInline(TabularInline):
    model = ProjectMember
    fk_name = "project"
    extra = 0
    raw_id_fields = ["user"]
    exclude = ["added_by"]
    readonly_fields = ["created_at"]


@admin.register(AnnotationProject)
class ProjectAdmin(ModelAdmin):
    list_display = ["id", "name", "owner", "intro", "created_at"]
    search_fields = ["name", "owner__username"]
    raw_id_fields = ["owner"]
    inlines = [MemberInline]


class LabelInline(TabularInline):
    model = LabelClass
    extra = 0
    readonly_fields = ["coco_id", "retired"]
    can_delete = False


@admin.register(AnnotationSet)
class SetAdmin(ModelAdmin):
    list_display = ["id", "name", "project", "source", "visibility", "filled", "created_at"]
    list_filter = ["visibility"]
    search_fields = ["name", "project__name"]
    raw_id_fields = ["project", "source", "created_by"]
    inlines = [LabelInline]

    def has_add_permission(self, request: object) -> bool:
        return False  # a set comes with its image tasks: the page makes both


@admin.register(ImageTask)
class TaskAdmin(LookOnly):
    list_display = ["id", "set", "number", "state", "empty", "shape_count", "rev", "updated_by", "updated_at"]
    list_filter = ["state", "empty"]
    list_select_related = ["set", "updated_by"]
    show_full_result_count = False


@admin.register(Review)
class ReviewAdmin(LookOnly):
    list_display = ["id", "task", "verdict", "comment", "by", "at"]
    list_filter = ["verdict"]
    list_select_related = ["task__set", "by"]
    show_full_result_count = False


@admin.register(Shape)
class ShapeAdmin(LookOnly):
    list_display = ["id", "task", "label", "kind", "area", "rev", "deleted", "created_by", "updated_at"]
    list_filter = ["kind", "deleted"]
    list_select_related = ["task__set", "label", "created_by"]
    show_full_result_count = False


@admin.register(Export)
class ExportAdmin(LookOnly):
    list_display = ["id", "set", "target", "state", "images", "annotations", "left_out", "created_by", "ended_at"]
    list_filter = ["state", "target"]
    list_select_related = ["set", "created_by"]
