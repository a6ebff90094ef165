from django.urls import URLPattern, path

from datasets.files import views

app_name = "files"
urlpatterns: list[URLPattern] = [
    path("", views.index, name="list"),
    path("show/", views.show, name="show"),
    path("shared/", views.shared, name="shared"),
    path("folder/", views.folder, name="folder"),
    path("move/", views.move, name="move"),
    path("delete/", views.delete, name="delete"),
    path("put/", views.store_files, name="put"),
    path("share/", views.share, name="share"),
    path("dataset/", views.dataset, name="dataset"),
]
