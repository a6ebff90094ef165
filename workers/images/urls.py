from django.urls import path

from workers.images import views
from workers.images.containers import views as containers

app_name = "images"
urlpatterns = [
    *views.ImagePages.urls(),
    *containers.LoginPages.urls(),
    path("container/", containers.new, name="container"),
    path("save/<int:pk>/", views.save, name="save"),
    path("forget/<int:pk>/", views.forget, name="forget"),
]
