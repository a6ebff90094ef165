"""The audit trail for scripts."""

from __future__ import annotations

from typing import Any

from django.utils.dateparse import parse_datetime
from django.utils.timezone import is_naive, make_aware
from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin

from accounts.access.permissions import Action
from accounts.models import AuditEntry
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import NumberedViewSet
from aiplatform.lib.errors import Invalid


class AuditOut(OutMixin, serializers.ModelSerializer):
    class Meta:
        model = AuditEntry
        fields = [
            "id",
            "at",
            "actor_id",
            "actor",
            "behind",
            "verb",
            "target_kind",
            "target_id",
            "target",
            "facts",
            "address",
            "request_id",
        ]


class AuditViewSet(ListModelMixin, RetrieveModelMixin, NumberedViewSet):
    """Who did what, newest first. `since` is an ISO 8601 time."""

    needs = {"list": Action.AUDIT_VIEW, "retrieve": Action.AUDIT_VIEW}
    asks = {"list": ("q", "verb", "actor", "since")}
    serializer_class = AuditOut

    def get_queryset(self) -> Any:
        rows, filters = AuditEntry.objects.visible_to(self.request.user), self.request.query_params
        if text := filters.get("q", "").strip()[:100]:
            rows = rows.containing(text)
        for name in ("verb", "actor"):
            if value := filters.get(name, "")[:100]:
                rows = rows.filter(**{name: value})
        if since := filters.get("since"):
            try:
                moment = parse_datetime(since)
            except ValueError:
                moment = None
            if moment is None:
                raise Invalid(_("“since” must be a time such as 2026-01-31T08:00:00Z."), field="since")
            rows = rows.filter(at__gte=make_aware(moment) if is_naive(moment) else moment)
        return rows
