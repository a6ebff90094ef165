from django.urls import path

from workers.access.proxy import views

app_name = "ports"
urlpatterns = [
    path("ports/", views.index, name="list"),
    path("jobs/<int:pk>/ports/", views.publish, name="publish"),
    path("jobs/<int:pk>/ports/<slug:name>/withdraw/", views.withdraw, name="withdraw"),
    path("jobs/<int:pk>/ports/<slug:name>/open/", views.open_port, name="open"),
]
