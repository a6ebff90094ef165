from django.urls import path

from training.experiments.boards import views

app_name = "boards"
urlpatterns = [path("jobs/<int:pk>/board/", views.show, name="show")]
