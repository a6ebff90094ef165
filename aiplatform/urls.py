"""URL configuration: each app's pages under its own prefix, each app's API under /api/v1/."""

from django.contrib import admin
from django.urls import include, path
from django.views.decorators.http import require_safe
from django.views.generic import RedirectView
from drf_spectacular.views import SpectacularAPIView

from aiplatform.pages import api_docs, client, views
from aiplatform.pages.help.views import help_file
from aiplatform.pages.home import page as home_page

handler400 = "aiplatform.pages.views.bad_request"
handler403 = "aiplatform.pages.views.forbidden"
handler404 = "aiplatform.pages.views.not_found"
handler500 = "aiplatform.pages.views.server_error"

urlpatterns = [
    path("", home_page.home, name="overview"),
    path("guide/", home_page.switch_guide, name="guide"),
    path("sample/", include("aiplatform.pages.sample.urls")),
    path("healthz", views.healthz, name="healthz"),
    path("jsi18n/", views.texts, name="jsi18n"),
    path("search/", views.search, name="search"),
    path("current-cluster/", views.switch_cluster, name="switch-cluster"),
    path("help/", help_file, name="help"),
    path("help/<path:path>", help_file, name="help-file"),
    path("client/", client.client_page, name="client"),
    path("client/<str:name>", client.client_file, name="client-file"),
    path("about/", views.about, name="about"),
    path("styleguide/", views.styleguide, name="styleguide"),
    path("", include("accounts.urls")),
    path("datasets/", include("datasets.urls")),
    path("annotation/", include("annotation.urls")),
    path("training/", include("training.urls")),
    path("experiments/", include("training.experiments.urls")),
    path("reports/", include("training.experiments.reports.urls")),
    path("commands/", include("training.commands.urls")),
    path("files/", include("datasets.files.urls")),
    path("images/", include("workers.images.urls")),
    path("", include("training.job_templates.urls")),
    path("environments/", include("training.environments.urls")),
    path("studies/", include("training.studies.urls")),
    path("", include("inference.urls")),
    path("pipelines/", include("inference.pipelines.urls")),
    path("", include("workers.urls")),
    path("", include("workers.access.proxy.urls")),
    path("", include("training.experiments.boards.urls")),
    path("", include("workers.access.ssh.urls")),
    path("api/v1/", include("accounts.api.urls")),
    path("api/v1/", include("datasets.api.urls")),
    path("api/v1/", include("annotation.api.urls")),
    path("api/v1/", include("training.api_urls")),
    path("api/v1/", include("training.experiments.api_urls")),
    path("api/v1/", include("training.experiments.reports.api_urls")),
    path("", include("training.experiments.tracking.api_urls")),
    path("api/v1/", include("training.experiments.visualisation.api_urls")),
    path("api/v1/", include("training.commands.api_urls")),
    path("api/v1/", include("datasets.files.api_urls")),
    path("api/v1/", include("workers.images.api_urls")),
    path("api/v1/", include("training.job_templates.api_urls")),
    path("api/v1/", include("training.environments.api_urls")),
    path("api/v1/", include("training.studies.api_urls")),
    path("api/v1/", include("inference.api_urls")),
    path("api/v1/", include("inference.delivery.edge.api_urls")),
    path("api/v1/", include("inference.delivery.push.api_urls")),
    path("api/v1/", include("inference.pipelines.api_urls")),
    path("api/v1/", include("workers.api_urls")),
    path("api/v1/", include("aiplatform.pages.sample.api_urls")),
    path("api/v1/", include("workers.access.proxy.api_urls")),
    path("api/v1/", include("training.experiments.boards.api_urls")),
    path("api/v1/", include("workers.access.ssh.api_urls")),
    path("api/schema/", SpectacularAPIView.as_view(), name="schema"),
    path("api/docs/", api_docs.SwaggerView.as_view(url_name="schema"), name="api-docs"),
    path("api/redoc/", require_safe(RedirectView.as_view(pattern_name="api-docs")), name="api-redoc"),
    path("admin/login/", views.admin_login, name="admin-login"),
    path("admin/", admin.site.urls),
]
