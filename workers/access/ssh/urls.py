from django.urls import path

from workers.access.ssh import views

app_name = "ssh"
urlpatterns = [
    path("jobs/<int:pk>/ssh/password/", views.password, name="password"),
    path("jobs/<int:pk>/ssh/sessions/<int:session>/end/", views.session_end, name="session-end"),
]
