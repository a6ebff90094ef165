"""The page that splits a version again: shares, a preview by class, then the next version."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.text import get_text_list
from django.utils.translation import gettext as _

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.pages import errors_shown_on, needs
from datasets.forms.splits import SplitForm
from datasets.models import DatasetVersion
from datasets.services import splits
from datasets.views.datasets import own


@needs(Action.DATASETS_EDIT)
def version_split(request: SignedInRequest, dataset_id: int, number: int) -> HttpResponse:
    """GET shows the split for the shares in the address; POST makes the version."""
    dataset = own(request, dataset_id)
    visible = DatasetVersion.objects.visible_to(request.user).filter(dataset=dataset).select_related("dataset")
    version = get_object_or_404(visible, number=number)
    data = request.POST if request.method == "POST" else request.GET if "train" in request.GET else None
    start = {name: field.initial for name, field in SplitForm(version=version).fields.items()}
    form = SplitForm(start if data is None else data, version=version)
    shown = None
    if form.is_valid():
        with errors_shown_on(form):
            wish = form.wish()
            if request.method == "POST":
                row = splits.start(version=version, wish=wish, by=request.user)
                return redirect("datasets:import", dataset.pk, row.pk)
            shown = splits.preview(version, wish)
    empty = [split for split in form.wish().ratios if not shown.images[split]] if shown else []
    context = {
        "dataset": dataset,
        "version": version,
        "form": form,
        "preview": shown,
        "total": sum(shown.images.values()) if shown else 0,
        "empty": empty,
        "empty_splits": get_text_list(empty, _("and")),
        "classes": [(name, shown.classes[id_].values()) for id_, name in version.class_names.items()] if shown else [],
    }
    return render(request, "datasets/split.html", context, status=422 if form.errors else 200)
