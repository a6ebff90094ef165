from django.urls import URLPattern, path

from training.experiments.tracking import door

urlpatterns: list[URLPattern] = [path("api/mlflow/<path:call>", door.answer, name="mlflow")]
