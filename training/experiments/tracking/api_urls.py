from django.urls import URLPattern, path

from training.experiments import views
from training.experiments.tracking import door

urlpatterns: list[URLPattern] = [
    path("api/mlflow/", views.mlflow_link, name="mlflow-link"),
    path("api/mlflow/<path:call>", door.answer, name="mlflow"),
]
