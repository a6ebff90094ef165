from django.urls import URLPattern, path

from training.job_templates import expert, views

app_name = "templates"
urlpatterns: list[URLPattern] = [
    path("templates/", views.index, name="list"),
    path("templates/new/", views.new, name="new"),
    path("templates/<int:pk>/", views.detail, name="detail"),
    path("templates/<int:pk>/edit/", views.edit, name="edit"),
    path("templates/<int:pk>/use/", views.use, name="use"),
    path("templates/<int:pk>/delete/", views.delete, name="delete"),
    path("expert/", expert.show, name="expert"),
    path("expert/text/", expert.to_text, name="expert-text"),
    path("expert/form/", expert.to_form, name="expert-form"),
]
