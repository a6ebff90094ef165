from django.urls import URLPattern, path

from annotation.views import annotator, conversions, labels, projects, sets

app_name = "annotation"
PROJECT = "projects/<int:project_pk>/"
SET = PROJECT + "datasets/<int:pk>/"
TASK = PROJECT + "tasks/<int:pk>/"

urlpatterns: list[URLPattern] = [
    path("", projects.project_list, name="project-list"),
    path("projects/new/", projects.project_create, name="project-create"),
    path(PROJECT, projects.project_detail, name="project-detail"),
    path(PROJECT + "edit/", projects.project_edit, name="project-edit"),
    path(PROJECT + "delete/", projects.project_delete, name="project-delete"),
    path(PROJECT + "members/", projects.member_add, name="member-add"),
    path(PROJECT + "members/<int:user_pk>/remove/", projects.member_remove, name="member-remove"),
    path(PROJECT + "members/<int:user_pk>/role/", projects.member_role, name="member-role"),
    path(PROJECT + "datasets/new/", sets.set_create, name="set-create"),
    path(SET, sets.task_list, name="task-list"),
    path(SET + "edit/", sets.set_edit, name="set-edit"),
    path(SET + "delete/", sets.set_delete, name="set-delete"),
    path(SET + "row/", sets.set_row, name="set-row"),
    path(SET + "convert/", conversions.convert, name="convert"),
    path(SET + "conversion/", conversions.newest, name="conversion"),
    path(PROJECT + "exports/<int:pk>/download/", conversions.download, name="export-download"),
    path(SET + "classes/", labels.label_list, name="label-list"),
    path(SET + "classes/<int:label_pk>/", labels.label_edit, name="label-edit"),
    path(SET + "classes/<int:label_pk>/remove/", labels.label_remove, name="label-remove"),
    path(TASK, annotator.annotate, name="annotate"),
    path(TASK + "image/", annotator.image, name="image"),
    path(TASK + "thumbnail/", annotator.thumbnail, name="thumbnail"),
]
