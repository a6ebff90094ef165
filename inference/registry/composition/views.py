"""The page where versions are composed of others."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from accounts.models import User
from aiplatform.lib.pages import errors_shown_on, needs
from inference.kit.model_io.spec import CHAIN, ENSEMBLE
from inference.registry.composition import composition
from inference.registry.composition.forms import FORMS
from inference.registry.composition.models import VersionPart
from inference.registry.models import ModelVersion

KIND_LABELS = {ENSEMBLE: _("Ensemble"), CHAIN: _("Chain")}
LEADS = {
    ENSEMBLE: _("All models process the image; their predictions are combined."),
    CHAIN: _("A detector finds objects, a second model classifies each."),
}


@needs(Action.MODELS_MANAGE)
def model_compose(request: SignedInRequest) -> HttpResponse:
    """Compose a version; `?kind=` chooses the form, `?part1=` or `?first=` fill in a version."""
    kind = request.GET.get("kind", ENSEMBLE)
    kind = kind if kind in FORMS else ENSEMBLE
    form = FORMS[kind](request.POST or None, user=request.user, initial=request.GET.dict())
    if form.is_valid():
        with errors_shown_on(form):
            version = composition.compose(user=request.user, **form.submission())
            return redirect(f"{reverse('inference:model-detail', args=[version.model_id])}?version={version.number}")
    context = {"form": form, "kind": kind, "kinds": KIND_LABELS, "lead": LEADS[kind]}
    return render(request, "inference/model_compose.html", context, status=422 if form.errors else 200)


def parts_of(version: ModelVersion, user: User) -> list[dict[str, object]]:
    """Return the parts of a version, each with its source version if this user may see it."""
    rows = list(VersionPart.objects.visible_to(user).filter(version=version))
    visible = (
        ModelVersion.objects.visible_to(user).filter(pk__in=[row.source_id for row in rows]).select_related("model")
    )
    by_key = {source.pk: source for source in visible}
    return [{"row": row, "source": by_key.get(row.source_id)} for row in rows]
