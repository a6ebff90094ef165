from django.urls import URLPattern, path

from training.studies import starting, views

app_name = "studies"
urlpatterns: list[URLPattern] = [
    path("", views.index, name="list"),
    path("new/", starting.new, name="new"),
    path("<int:pk>/", views.detail, name="detail"),
    path("<int:pk>/pause/", views.act, {"verb": "pause"}, name="pause"),
    path("<int:pk>/resume/", views.act, {"verb": "resume"}, name="resume"),
    path("<int:pk>/stop/", views.act, {"verb": "stop"}, name="stop"),
    path("<int:pk>/enqueue/", views.enqueue, name="enqueue"),
    path("<int:pk>/best/", views.best, name="best"),
    path("<int:pk>/limits/", views.limits, name="limits"),
    path("<int:pk>/delete/", views.delete, name="delete"),
]
