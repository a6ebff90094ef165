from django.urls import URLPattern, path

from training.studies import starting, views

app_name = "studies"
urlpatterns: list[URLPattern] = [
    path("new/", starting.new, name="new"),
    *views.StudyPages.urls(),
]
