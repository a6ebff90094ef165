"""Pages of promotion rules."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib import ids
from aiplatform.lib.pages import check_valid_fields, errors_as_messages, errors_shown_on, needs
from inference.evaluation import promotion
from inference.evaluation.models import Evaluation, PromotionRule
from inference.evaluation.promotion_forms import ALIASES, RuleForm
from inference.registry import model_page
from inference.registry.models import Model, ModelAlias


@needs(Action.MODELS_VIEW)
def model_rules(request: SignedInRequest, pk: int) -> HttpResponse:
    """The promotion rules of a model, and their recent verdicts."""
    context = model_page.context(request, pk, "model-rules")
    rules = PromotionRule.objects.visible_to(request.user).filter(model=pk).select_related("created_by")
    visible = Evaluation.objects.visible_to(request.user)
    latest = promotion.latest_verdicts(rules)
    context["rules"] = [(rule, latest.get(rule.pk)) for rule in rules]
    context["verdicts"] = [
        {"verdict": verdict, "evaluation": visible.filter(pk=verdict.evaluation_id).select_related("job").first()}
        for verdict in promotion.newest_verdicts(context["model"])
    ]
    return render(request, "inference/model_rules.html", context)


@needs(Action.MODELS_MANAGE)
def model_rule_new(request: SignedInRequest, pk: int) -> HttpResponse:
    """Make a promotion rule."""
    model = get_object_or_404(Model.objects.editable_by(request.user), pk=pk)
    form = RuleForm(request.POST or None, user=request.user, model=model, initial=_initial(request, model))
    if form.is_valid():
        with errors_shown_on(form):
            promotion.add(model=model, by=request.user, **form.cleaned_data)
            return redirect("inference:model-rules", pk)
    else:
        check_valid_fields(form, promotion.check, model=model)
    aliases = ModelAlias.objects.filter(model=model).order_by("name").values_list("name", flat=True)
    context = {"model": model, "form": form, "aliases_id": ALIASES, "aliases": aliases}
    return render(request, "inference/model_rule_form.html", context, status=422 if form.errors else 200)


def _initial(request: SignedInRequest, model: Model) -> dict[str, Any]:
    """Return the data of the newest evaluation of the model, which the next ones will probably be compared on."""
    rows = Evaluation.objects.visible_to(request.user).filter(model_version__model=model, published_attempt__gt=0)
    values = rows.order_by("-pk").values("version", "split").first()
    return values or {}


@require_POST
@needs(Action.MODELS_MANAGE)
def model_rule_remove(request: SignedInRequest, pk: int) -> HttpResponse:
    """Remove a promotion rule; what it gave stays."""
    model = get_object_or_404(Model.objects.editable_by(request.user), pk=pk)
    with errors_as_messages(request):
        promotion.remove(model=model, number=ids.number(request.POST.get("rule", "")) or 0, by=request.user)
    return redirect("inference:model-rules", pk)
