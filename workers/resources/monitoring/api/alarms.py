"""`/api/v1/alarms/`, `alarm-rules/`, `alarm-addresses/`: for those who manage the machines."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access.permissions import Action
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import OldestFirstPagination, StrictMixin, parse_request
from aiplatform.lib.idempotency import once
from aiplatform.objects.filters import Choice, ObjectFilters
from aiplatform.objects.viewsets import ChangeObject, CreateObject, DeleteObject, ObjectViewSet
from workers.core.models import Alarm, AlarmAddress, AlarmRule, Severity
from workers.resources.monitoring import alarms
from workers.resources.monitoring.rules import RULES


class AlarmOut(OutMixin, serializers.ModelSerializer):
    """An alarm: raised at `raised_at` once it lasted, over at `ended_at`."""

    rule = serializers.CharField(source="rule.key")
    sentence = serializers.SerializerMethodField()

    class Meta:
        model = Alarm
        fields = [
            "id",
            "rule",
            "subject",
            "severity",
            "sentence",
            "value",
            "seen_at",
            "raised_at",
            "ended_at",
            "told_at",
        ]

    def get_sentence(self, alarm: Alarm) -> str:
        return alarms.words(alarm)


class SilenceIn(StrictMixin, serializers.Serializer):
    """Hours without notifications."""

    hours = serializers.FloatField()


class SilenceOut(serializers.Serializer):
    """End of the time without notifications."""

    until = serializers.DateTimeField()


class RuleOut(OutMixin, serializers.ModelSerializer):
    """A rule as it is set; without a unit its threshold means nothing."""

    label = serializers.SerializerMethodField()  # type: ignore[assignment]  # a field of that name, not DRF's attribute
    unit = serializers.SerializerMethodField()

    class Meta:
        model = AlarmRule
        fields = ["id", "key", "label", "enabled", "severity", "threshold", "unit", "for_s", "send"]

    def get_label(self, rule: AlarmRule) -> str:
        return str(RULES[rule.key].label) if rule.key in RULES else rule.key

    def get_unit(self, rule: AlarmRule) -> str:
        return RULES[rule.key].unit_of(rule.threshold) if rule.key in RULES else ""


class RuleIn(StrictMixin, serializers.Serializer):
    """What is left out stays."""

    enabled = serializers.BooleanField(required=False)
    severity = serializers.ChoiceField(choices=Severity.choices, required=False)
    threshold = serializers.FloatField(required=False)
    for_s = serializers.IntegerField(min_value=0, max_value=7 * 86400, required=False)
    send = serializers.BooleanField(required=False)


class AddressOut(OutMixin, serializers.ModelSerializer):
    """Address that alarms are sent to."""

    class Meta:
        model = AlarmAddress
        fields = ["id", "channel", "target", "least", "enabled", "made_at"]


class AddressMade(AddressOut):
    """A new address; `secret` signs what a webhook is sent, and is empty for mail."""

    class Meta(AddressOut.Meta):
        fields = [*AddressOut.Meta.fields, "secret"]
        read_only_fields = ["secret"]


class AddressIn(StrictMixin, serializers.Serializer):
    """A mail address or a webhook."""

    channel = serializers.ChoiceField(choices=AlarmAddress.Channel.choices)
    target = serializers.CharField(max_length=500)
    least = serializers.ChoiceField(choices=Severity.choices, default=Severity.WARNING)
    enabled = serializers.BooleanField(default=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["channel"] == AlarmAddress.Channel.MAIL:
            serializers.EmailField().run_validation(attrs["target"])
        return attrs


def _in_state(rows: Any, _name: str, state: str) -> Any:
    if state == "ended":
        return rows.exclude(ended_at=None)
    return rows.filter(ended_at=None, raised_at__isnull=state == "pending")


class AlarmFilters(ObjectFilters):
    state = Choice("ended_at", [(name, name) for name in ("firing", "pending", "ended")], method=_in_state)


class AlarmViewSet(ObjectViewSet):
    """Alarms, newest first. Filter: `state` (firing, pending, ended)."""

    view_permission = change_permission = Action.CLUSTER_MANAGE
    serializer_class = AlarmOut
    filters = AlarmFilters

    def get_queryset(self) -> Any:
        return super().get_queryset().select_related("rule")

    @extend_schema(request=SilenceIn, responses={201: SilenceOut})
    @action(detail=True, methods=["post"])
    @once
    def silence(self, request: Request, pk: str) -> Response:
        """Silence this alarm for a while."""
        alarm: Alarm = self.get_object()
        values = parse_request(SilenceIn(data=request.data))
        row = alarms.silence(by=self.request.user, hours=values["hours"], rule=alarm.rule, subject=alarm.subject)
        return Response(SilenceOut(row).data, status=201)


class AlarmRuleViewSet(ChangeObject, ObjectViewSet):
    """The built-in rules as they are set here."""

    view_permission = change_permission = Action.CLUSTER_MANAGE
    serializer_class, change_serializer_class = RuleOut, RuleIn
    pagination_class = OldestFirstPagination

    def change_object(self, rule: AlarmRule, **values: Any) -> AlarmRule:
        return alarms.set_rule(rule, by=self.request.user, **values)


class AlarmAddressViewSet(CreateObject, DeleteObject, ObjectViewSet):
    """Addresses that alarms are sent to."""

    view_permission = change_permission = Action.CLUSTER_MANAGE
    serializer_class, create_serializer_class = AddressOut, AddressIn
    pagination_class = OldestFirstPagination

    def get_serializer_class(self) -> Any:
        return AddressMade if self.action == "create" else AddressOut

    def create_object(self, **values: Any) -> AlarmAddress:
        return alarms.save_address(None, by=self.request.user, **values)

    def delete_object(self, address: AlarmAddress) -> None:
        alarms.remove_address(address, by=self.request.user)
