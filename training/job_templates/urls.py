from django.urls import URLPattern, path

from training.job_templates import expert, views

app_name = "templates"
urlpatterns: list[URLPattern] = [
    *views.TemplatePages.urls(),
    path("expert/", expert.show, name="expert"),
    path("expert/text/", expert.to_text, name="expert-text"),
    path("expert/form/", expert.to_form, name="expert-form"),
]
