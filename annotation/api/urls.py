from typing import Any

from django.urls import URLPattern, path

from annotation.api.tasks import TaskViewSet
from annotation.api.views import ExportViewSet, LabelViewSet, ProjectViewSet, SetViewSet

PROJECT = "annotation/projects/<int:project_pk>/"
TASK = PROJECT + "tasks/<int:pk>/"
LABELS = PROJECT + "datasets/<int:set_pk>/labels/"
ALL: dict[str, Any] = {"get": "list", "post": "create"}
ONE: dict[str, Any] = {"get": "retrieve", "patch": "partial_update", "delete": "destroy"}

urlpatterns: list[URLPattern] = [
    path("annotation/projects/", ProjectViewSet.as_view(ALL), name="annotation-project-list"),
    path(PROJECT, ProjectViewSet.as_view(ONE), name="annotation-project-detail"),
    path(
        PROJECT + "members/",
        ProjectViewSet.as_view({"get": "members", "post": "add_member"}, pagination_class=None),
        name="annotation-member-list",
    ),
    path(
        PROJECT + "members/<int:user_pk>/",
        ProjectViewSet.as_view({"patch": "change_member", "delete": "remove_member"}),
        name="annotation-member-detail",
    ),
    path(PROJECT + "datasets/", SetViewSet.as_view(ALL), name="annotation-set-list"),
    path(PROJECT + "datasets/<int:pk>/", SetViewSet.as_view(ONE), name="annotation-set-detail"),
    path(LABELS, LabelViewSet.as_view(ALL), name="annotation-label-list"),
    path(LABELS + "<int:pk>/", LabelViewSet.as_view(ONE), name="annotation-label-detail"),
    path(PROJECT + "tasks/", TaskViewSet.as_view({"get": "list"}), name="annotation-task-list"),
    path(TASK, TaskViewSet.as_view({"get": "retrieve"}), name="annotation-task-detail"),
    path(TASK + "next/", TaskViewSet.as_view({"get": "next"}), name="annotation-task-next"),
    path(TASK + "previous/", TaskViewSet.as_view({"get": "previous"}), name="annotation-task-previous"),
    path(TASK + "image/", TaskViewSet.as_view({"get": "image"}), name="annotation-task-image"),
    path(TASK + "submit/", TaskViewSet.as_view({"post": "submit"}), name="annotation-task-submit"),
    path(
        TASK + "reviews/",
        TaskViewSet.as_view({"get": "reviews", "post": "review"}, pagination_class=None),
        name="annotation-task-reviews",
    ),
    path(
        TASK + "shapes/", TaskViewSet.as_view({"get": "shapes", "post": "edit_shapes"}), name="annotation-task-shapes"
    ),
    path(TASK + "changes/", TaskViewSet.as_view({"get": "changes"}), name="annotation-task-changes"),
    path(PROJECT + "exports/", ExportViewSet.as_view(ALL), name="annotation-export-list"),
    path(PROJECT + "exports/<int:pk>/", ExportViewSet.as_view({"get": "retrieve"}), name="annotation-export-detail"),
    path(
        PROJECT + "exports/<int:pk>/download/",
        ExportViewSet.as_view({"get": "download"}),
        name="annotation-export-download",
    ),
]
