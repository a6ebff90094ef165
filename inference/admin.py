"""Models, evaluations and services in the admin site: read, filter, stop."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin

from aiplatform.lib.admin import LookOnly, LookOnlyInline, MadeByServices
from inference.conversion.models import Conversion, ConvertedVariant
from inference.delivery.push.models import Push, PushTarget
from inference.evaluation.models import Evaluation
from inference.registry.models import Model, ModelVersion
from inference.serving import endpoints
from inference.serving.keys.models import ServiceKey
from inference.serving.models import Service


class ModelVersionInline(LookOnlyInline):
    model = ModelVersion
    fields = ["number", "task", "source", "size_bytes", "job", "dataset_label", "created_at"]


@admin.register(Model)
class ModelAdminPage(MadeByServices, ModelAdmin):
    list_display = ["name", "owner", "visibility", "created_at"]
    list_filter = ["visibility"]
    search_fields = ["name", "owner__username"]
    readonly_fields = ["name", "owner", "created_at"]
    fields = ["name", "owner", "description", "visibility", "created_at"]
    inlines = [ModelVersionInline]


@admin.register(Evaluation)
class EvaluationAdminPage(LookOnly):
    list_display = ["job", "model_label", "version_label", "split", "task"]
    list_filter = ["task", "job__state"]
    list_select_related = ["job"]
    search_fields = ["job__name", "model_label", "version_label"]


class ConvertedVariantInline(LookOnlyInline):
    model = ConvertedVariant
    fields = ["target", "state", "made"]


@admin.register(Conversion)
class ConversionAdminPage(LookOnly):
    list_display = ["job", "model_label", "data_label", "split", "fastest"]
    list_filter = ["job__state"]
    list_select_related = ["job"]
    search_fields = ["job__name", "model_label", "data_label"]
    inlines = [ConvertedVariantInline]


class ServiceKeyInline(LookOnlyInline):
    model = ServiceKey
    fields = ["name", "prefix", "per_minute", "expires_at", "revoked_at", "last_used_at"]


@admin.register(PushTarget)
class PushTargetAdminPage(LookOnly):
    list_display = ["name", "owner", "kind", "address", "visibility", "tested_at"]
    list_filter = ["kind", "visibility"]
    list_select_related = ["owner"]
    search_fields = ["name", "address", "owner__username"]
    fields = ["name", "owner", "kind", "address", "options", "visibility", "created_at", "tested_at", "message"]


@admin.register(Push)
class PushAdminPage(LookOnly):
    list_display = ["model_name", "target_name", "owner", "state", "sent_bytes", "size_bytes", "created_at", "ended_at"]
    list_filter = ["state", "content"]
    list_select_related = ["owner"]
    search_fields = ["model_name", "target_name", "owner__username"]


@admin.register(Service)
class ServiceAdminPage(LookOnly):
    inlines = [ServiceKeyInline]
    list_display = ["name", "owner", "model_name", "visibility", "now", "created_at"]
    list_filter = ["visibility"]
    list_select_related = ["owner", "model_version__model", "job"]
    search_fields = ["name", "slug", "owner__username"]
    actions = ["stop_services"]

    @admin.display(description=_("state"))
    def now(self, service: Service) -> str:
        return service.state

    @admin.action(description=_("Stop selected endpoints"))
    def stop_services(self, request: HttpRequest, services: QuerySet[Service]) -> None:
        for service in services.select_related("job"):
            if service.is_up:
                endpoints.stop(service=service, by=request.user)  # type: ignore[arg-type]  # signed in, by `needs` or the admin site
