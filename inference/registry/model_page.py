"""What all tabs of a model's page share: the model, its chosen version, what the reader may do with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.columns import USER_NAMES, narrow
from aiplatform.lib.registry import Registry, dotted_name
from inference.registry import pretrained_weights, withdrawals
from inference.registry.models import Model, ModelVersion

#: Context that other packages add to the overview of a version: (request, version) → names and values.
SECTIONS: Registry[Callable[[SignedInRequest, ModelVersion], dict[str, Any]]] = Registry(
    "section of the page of a model", name=dotted_name
)
TABS = (
    ("model-detail", _("Overview")),
    ("model-versions", _("Versions")),
    ("model-lineage", _("Lineage")),
    ("model-rules", _("Promotion")),
    ("model-history", _("History")),
)
#: Lists of the platform that the page links, each filtered by the name of the model: URL name, label, permission.
LISTS = (
    ("inference:evaluation-list", _("Evaluations"), Action.EVALUATIONS_VIEW),
    ("inference:conversion-list", _("Conversions"), Action.EVALUATIONS_VIEW),
    ("inference:service-list", _("Endpoints"), Action.SERVICES_VIEW),
    ("inference:edge-list", _("Edge groups"), Action.SERVICES_VIEW),
)


def context(request: SignedInRequest, pk: int, tab: str) -> dict[str, Any]:
    """The model at `pk`, all its versions, and the one that `?version=2` chooses: else the newest that is in use."""
    models = narrow(Model.objects.visible_to(request.user).select_related("owner"), owner=USER_NAMES)
    model: Model = get_object_or_404(models, pk=pk)
    rows = model.versions.select_related("job", "dataset_version__dataset", "created_by", "stage_by", "model__owner")
    rows = narrow(
        rows,
        job=("name", "kind"),
        dataset_version=("number",),
        dataset_version__dataset=("name",),
        created_by=USER_NAMES,
        stage_by=USER_NAMES,
        model=("name", "visibility"),
        model__owner=USER_NAMES,
    )
    versions: list[ModelVersion] = list(rows.prefetch_related("aliases").order_by("-number"))
    number = request.GET.get("version", "")
    in_use = next((v for v in versions if not v.is_archived), versions[0] if versions else None)
    chosen = next((v for v in versions if str(v.number) == number), in_use)
    return {
        "model": model,
        "versions": versions,
        "chosen": chosen,
        "tabs": TABS,
        "tab": tab,
        "lists": filtered_lists(request, model),
        "may_edit": Model.objects.editable_by(request.user).filter(pk=pk).exists(),
        "fine_tune": pretrained_weights.full_name(chosen) if chosen and pretrained_weights.goes_on(chosen) else "",
        "others": withdrawals.count_others(model),
    }


def filtered_lists(request: SignedInRequest, model: Model) -> list[tuple[Any, str]]:
    """Return label and URL of the lists of what was made of the model, as far as the user may see them."""
    query = urlencode({"q": model.name})
    return [(label, f"{reverse(page)}?{query}") for page, label, needs in LISTS if request.user.can(needs)]


def sections(request: SignedInRequest, version: ModelVersion) -> dict[str, Any]:
    """Return what other packages show of a version on its page."""
    context: dict[str, Any] = {}
    for section in SECTIONS:
        context |= section(request, version)
    return context
