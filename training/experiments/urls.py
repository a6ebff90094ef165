from django.urls import URLPattern, path

from training.experiments import views

app_name = "experiments"
urlpatterns: list[URLPattern] = [
    path("", views.index, name="table"),
    path("runs/<int:pk>/", views.run, name="run"),
    path("runs/by-id/<slug:uid>/", views.run_by_uid, name="run-by-uid"),
]
