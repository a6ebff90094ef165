from django.urls import URLPattern

app_name = "workers"
urlpatterns: list[URLPattern] = []
