from django.urls import path

from aiplatform.pages.sample import views

app_name = "sample"
urlpatterns = [
    path("create/", views.create, name="create"),
    path("remove/", views.remove, name="remove"),
]
