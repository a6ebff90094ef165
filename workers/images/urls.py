from django.urls import path

from workers.images import views

app_name = "images"
urlpatterns = [
    path("", views.index, name="list"),
    path("new/", views.new, name="new"),
    path("save/<int:pk>/", views.save, name="save"),
    path("<int:pk>/", views.detail, name="detail"),
    path("<int:pk>/build/", views.build, name="build"),
    path("<int:pk>/edit/", views.edit, name="edit"),
    path("<int:pk>/delete/", views.delete, name="delete"),
    path("forget/<int:pk>/", views.forget, name="forget"),
]
