from django.urls import URLPattern, path

from training.environments import views

app_name = "environments"
urlpatterns: list[URLPattern] = [
    path("", views.index, name="list"),
    path("new/", views.new, name="new"),
    path("fit/", views.fit, name="fit"),
    path("<int:pk>/state/", views.state, name="state"),
    path("<int:pk>/keep/", views.mark_needed, name="keep"),
    path("<int:pk>/extend/", views.extend, name="extend"),
    path("<int:pk>/delete/", views.delete, name="delete"),
]
