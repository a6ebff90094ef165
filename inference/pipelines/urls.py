from django.urls import URLPattern, path

from inference.pipelines import views

app_name = "pipelines"
urlpatterns: list[URLPattern] = [
    path("", views.index, name="list"),
    path("new/", views.new, name="new"),
    path("<int:pk>/", views.detail, name="detail"),
    path("<int:pk>/edit/", views.edit, name="edit"),
    path("<int:pk>/about/", views.change, name="change"),
    path("<int:pk>/delete/", views.delete, name="delete"),
    path("<int:pk>/run/", views.run_new, name="run-new"),
    path("runs/<int:pk>/", views.run_detail, name="run"),
    path("runs/<int:pk>/cancel/", views.run_act, {"verb": "cancel"}, name="run-cancel"),
    path("runs/<int:pk>/retry/", views.run_act, {"verb": "retry"}, name="run-retry"),
    path("runs/<int:pk>/skip/", views.run_act, {"verb": "skip"}, name="run-skip"),
    path("approvals/<int:pk>/", views.approval_answer, name="approval"),
]
