from django.urls import URLPattern, path

from training.experiments import views

app_name = "experiments"
urlpatterns: list[URLPattern] = [
    path("", views.index, name="table"),
    path("runs/<int:pk>/", views.run, name="run"),
]
