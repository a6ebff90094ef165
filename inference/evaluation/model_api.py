"""API of models with their promotion rules, which read evaluations."""

from __future__ import annotations

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from aiplatform.lib.api import parse_request
from aiplatform.lib.idempotency import once
from inference.evaluation import promotion
from inference.evaluation.models import PromotionRule
from inference.evaluation.promotion_serializers import PromotionRuleOut, RuleIn
from inference.registry.api import ModelViewSet
from inference.registry.models import Model


class ModelWithRulesViewSet(ModelViewSet):
    needs = ModelViewSet.needs | {
        "rules": Action.MODELS_VIEW,
        "add_rule": Action.MODELS_MANAGE,
        "remove_rule": Action.MODELS_MANAGE,
    }

    @extend_schema(responses=PromotionRuleOut(many=True))
    @action(detail=True, methods=["get"], pagination_class=None)
    def rules(self, request: ApiRequest, pk: str) -> Response:
        """The promotion rules of the model, each with its recent verdicts."""
        model = get_object_or_404(Model.objects.visible_to(request.user), pk=pk)
        rows = PromotionRule.objects.visible_to(request.user).filter(model=model)
        return Response(PromotionRuleOut(rows, many=True).data)

    @extend_schema(request=RuleIn, responses={201: PromotionRuleOut})
    @rules.mapping.post
    @once
    def add_rule(self, request: ApiRequest, pk: str) -> Response:
        """Make a promotion rule; it judges evaluations that end from now on."""
        model = self.own_model(pk)
        serializer = RuleIn(data=request.data, context=self.get_serializer_context())
        rule = promotion.add(model=model, by=request.user, **parse_request(serializer, promotion.check, model=model))
        return Response(PromotionRuleOut(rule).data, status=201)

    @extend_schema(responses={204: None})
    @action(detail=True, methods=["delete"], url_path=r"rules/(?P<rule>[0-9]{1,18})")
    def remove_rule(self, request: ApiRequest, pk: str, rule: str) -> Response:
        """Remove a promotion rule; what it gave stays."""
        promotion.remove(model=self.own_model(pk), number=int(rule), by=request.user)
        return Response(status=204)
