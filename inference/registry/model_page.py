"""What all tabs of a model's page share: the model, its chosen version, what the reader may do with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from django.db.models import Count, Value
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext_lazy as _

from accounts.http import SignedInRequest
from aiplatform.lib.columns import USER_NAMES, narrow
from aiplatform.lib.registry import Registry, dotted_name
from aiplatform.objects.pages import ObjectPages
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
#: Pages whose lists the page of a model links, filtered by the model.
LISTS: Registry[type[ObjectPages[Any]]] = Registry("list on the page of a model", name=attrgetter("basename"))


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


def filtered_lists(request: SignedInRequest, model: Model) -> list[tuple[Any, str, int]]:
    """Return label, URL and number of rows of the visible lists of what was made of the model."""
    query = urlencode({"model": model.pk})
    kinds = [kind for kind in LISTS if request.user.can(kind.view_permission)]
    counts = _counts(request, model, kinds)
    return [
        (kind.title, f"{reverse(kind().names.list)}?{query}", count) for kind, count in zip(kinds, counts, strict=True)
    ]


def _counts(request: SignedInRequest, model: Model, kinds: Sequence[type[ObjectPages[Any]]]) -> list[int]:
    """Return how many rows each list will show, all by one query."""
    counted = []
    for number, kind in enumerate(kinds):
        objects: Any = kind.model._default_manager
        shown = kind.filters({"model": model.pk}, queryset=objects.visible_to(request.user), request=request).qs
        counted.append(shown.order_by().annotate(list=Value(number)).values_list("list").annotate(rows=Count("pk")))
    rows_by_list = dict(counted[0].union(*counted[1:], all=True)) if counted else {}
    return [rows_by_list.get(number, 0) for number in range(len(kinds))]


def sections(request: SignedInRequest, version: ModelVersion) -> dict[str, Any]:
    """Return what other packages show of a version on its page."""
    context: dict[str, Any] = {}
    for section in SECTIONS:
        context |= section(request, version)
    return context
