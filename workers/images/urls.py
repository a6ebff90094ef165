from django.urls import path

from workers.images import views
from workers.images.containers import views as containers

app_name = "images"
urlpatterns = [
    path("", views.index, name="list"),
    path("new/", views.new, name="new"),
    path("container/", containers.new, name="container"),
    path("credentials/", containers.login_list, name="logins"),
    path("credentials/new/", containers.login_new, name="login-new"),
    path("credentials/<int:pk>/", containers.login_edit, name="login"),
    path("credentials/<int:pk>/test/", containers.login_test, name="login-test"),
    path("credentials/<int:pk>/delete/", containers.login_delete, name="login-delete"),
    path("<int:pk>/look/", containers.look_up, name="look"),
    path("save/<int:pk>/", views.save, name="save"),
    path("<int:pk>/", views.detail, name="detail"),
    path("<int:pk>/build/", views.build, name="build"),
    path("<int:pk>/edit/", views.edit, name="edit"),
    path("<int:pk>/delete/", views.delete, name="delete"),
    path("forget/<int:pk>/", views.forget, name="forget"),
]
