from django.urls import URLPattern, path

from training.experiments.reports import views

app_name = "reports"
urlpatterns: list[URLPattern] = [
    path("", views.index, name="list"),
    path("new/", views.new, name="new"),
    path("preview/", views.preview, name="preview"),
    path("<int:pk>/", views.detail, name="detail"),
    path("<int:pk>/edit/", views.edit, name="edit"),
    path("<int:pk>/versions/", views.versions, name="versions"),
    path("<int:pk>/restore/", views.restore, name="restore"),
    path("<int:pk>/export/", views.export, name="export"),
    path("<int:pk>/delete/", views.delete, name="delete"),
]
