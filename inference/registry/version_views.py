"""Pages of the registry beyond a model's first: versions, history, card, stages, aliases."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from accounts.presentation import audit_sentences
from aiplatform.lib import ids
from aiplatform.lib.pages import errors_as_messages, errors_shown_on, needs
from datasets.models import DatasetVersion
from inference.registry import (
    aliases,
    card_drafts,
    cards,
    history,
    lineage,
    lineage_layout,
    model_page,
    retention,
    stages,
    version_labels,
    version_tables,
)
from inference.registry.models import Model, ModelVersion
from inference.registry.version_forms import AliasForm, CardForm, StageForm


@needs(Action.MODELS_VIEW)
def model_versions(request: SignedInRequest, pk: int) -> HttpResponse:
    """All versions of a model with their stages and aliases, and some of them fact by fact.

    `?compare=1&compare=3` are those, `?base=1` what the others are measured against; `?all=1`: also what is the same.
    """
    context = model_page.context(request, pk, "model-versions")
    if len(context["versions"]) > 1:
        numbers = [number for text in request.GET.getlist("compare") if (number := ids.number(text)) is not None]
        base, everything = ids.number(request.GET.get("base", "")), request.GET.get("all") == "1"
        with errors_as_messages(request):
            beside, first = version_tables.select_versions(context["model"], numbers, base)
            context |= {
                "beside": beside,
                "base": first,
                "lines": version_labels.lines(beside, first, everything=everything),
                "everything": everything,
                "same_data": version_tables.same_data(beside),
                "asked": "&".join(f"compare={version.number}" for version in beside),
            }
    return render(request, "inference/model_versions.html", context)


@needs(Action.MODELS_VIEW)
def model_lineage(request: SignedInRequest, pk: int) -> HttpResponse:
    """Where the chosen version came from and what came of it, as a drawing and as lists."""
    context = model_page.context(request, pk, "model-lineage")
    version = context["chosen"]
    if version is not None:
        graph = lineage.build_graph(version, request.user)
        drawn = lineage_layout.draw(graph)
        context |= {
            "graph": graph,
            "drawing": drawn,
            "before": [box for box in drawn.boxes if box.node.column < 0],
            "after": [box for box in drawn.boxes if box.node.column > 0],
            "users": retention.users_of(version) if context["may_edit"] else [],
        }
    return render(request, "inference/model_lineage.html", context)


@needs(Action.MODELS_VIEW)
def model_history(request: SignedInRequest, pk: int) -> HttpResponse:
    """Who did what to a model."""
    context = model_page.context(request, pk, "model-history")
    entries = history.list_entries(context["model"])
    audit_sentences.add_display(entries, reader=request.user)
    return render(request, "inference/model_history.html", context | {"entries": entries})


@needs(Action.MODELS_MANAGE)
def model_card(request: SignedInRequest, pk: int) -> HttpResponse:
    """Write the card of a model; sent with "preview", it shows the card and keeps nothing."""
    model = get_object_or_404(Model.objects.editable_by(request.user), pk=pk)
    stored = cards.read(model)
    draft = {} if any(stored.values()) else _card_draft(request, model)
    form = CardForm(request.POST or None, initial=stored | draft)
    if request.htmx and "preview" in request.POST:
        written = {field.name: request.POST.get(field.name, "")[: field.longest] for field in cards.FIELDS}
        return render(request, "inference/_card_parts.html", {"card_parts": cards.parts(written)})
    if form.is_valid():
        with errors_shown_on(form):
            cards.write(model=model, by=request.user, card=form.cleaned_data)
            return redirect("inference:model-detail", pk)
    context = {"model": model, "form": form, "is_draft": bool(draft), "card_parts": cards.parts(stored | draft)}
    return render(request, "inference/model_card.html", context, status=422 if form.errors else 200)


def _card_draft(request: SignedInRequest, model: Model) -> dict[str, str]:
    """Return the draft of the newest version in use."""
    version = model.versions.in_use().order_by("-number").first()
    if version is None:
        return {}
    visible = DatasetVersion.objects.visible_to(request.user)
    return card_drafts.draft(version, visible.filter(pk=version.dataset_version_id or 0).first())


@needs(Action.MODELS_MANAGE)
def version_stage(request: SignedInRequest, pk: int) -> HttpResponse:
    """Move a version to another stage; `?stage=` fills one in."""
    version = _own(request, pk)
    form = StageForm(request.POST or None, version=version, initial={"stage": request.GET.get("stage", "")})
    if form.is_valid():
        with errors_shown_on(form):
            values = form.cleaned_data
            stages.move(version=version, to=values["stage"], by=request.user, reason=values["reason"])
            return redirect(f"{reverse('inference:model-detail', args=[version.model_id])}?version={version.number}")
    lead = _(
        "An archived version is not offered for new endpoints and training jobs; endpoints that use it continue to run."
    )
    texts = {"title": _("Stage of version %(n)s") % {"n": version.number}, "lead": lead}
    return _form(request, version.model, form, texts)


@needs(Action.MODELS_MANAGE)
def model_alias(request: SignedInRequest, pk: int) -> HttpResponse:
    """Set an alias; `?version=` and `?name=` fill in what is known."""
    model = get_object_or_404(Model.objects.editable_by(request.user), pk=pk)
    initial = {name: request.GET[name] for name in ("version", "name") if name in request.GET}
    form = AliasForm(request.POST or None, model=model, initial=initial)
    if form.is_valid():
        with errors_shown_on(form):
            aliases.assign(version=form.cleaned_data["version"], name=form.cleaned_data["name"], by=request.user)
            return redirect("inference:model-versions", pk)
    lead = _("Programs and commands refer to the version by its alias, such as %(name)s@champion. It moves atomically.")
    return _form(request, model, form, {"title": _("Alias"), "lead": lead % {"name": model.name}})


@require_POST
@needs(Action.MODELS_MANAGE)
def model_alias_remove(request: SignedInRequest, pk: int) -> HttpResponse:
    """Take an alias away."""
    model = get_object_or_404(Model.objects.editable_by(request.user), pk=pk)
    with errors_as_messages(request):
        aliases.remove(model=model, name=request.POST.get("name", ""), by=request.user)
    return redirect("inference:model-versions", pk)


def _own(request: SignedInRequest, pk: int) -> ModelVersion:
    rows = ModelVersion.objects.editable_by(request.user).select_related("model")
    version: ModelVersion = get_object_or_404(rows, pk=pk)
    return version


def _form(request: SignedInRequest, model: Model, form: object, texts: dict[str, str]) -> HttpResponse:
    status = 422 if getattr(form, "errors", None) else 200
    return render(request, "inference/model_form.html", {"model": model, "form": form, **texts}, status=status)
