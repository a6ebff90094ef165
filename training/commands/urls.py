from django.urls import URLPattern, path

from training.commands import views

app_name = "commands"
urlpatterns: list[URLPattern] = [
    path("", views.index, name="list"),
    path("new/", views.new, name="new"),
    path("fit/", views.fit, name="fit"),
]
