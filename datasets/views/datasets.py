"""Pages of datasets: list, new dataset, gallery, edit, delete."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db.models import Q
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST, require_safe

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from accounts.models import User
from aiplatform import env
from aiplatform.lib.pages import check_valid_fields, errors_as_messages, errors_shown_on, is_name_confirmed, needs
from aiplatform.objects import bulk
from datasets.forms.datasets import CreateForm, EditForm, FilterForm, SourceForm, may_change
from datasets.models import Dataset, DatasetVersion, Import
from datasets.services import datasets, imports, next_actions, related, versions
from datasets.services.orders import DATASETS
from datasets.transfer.responses import download_choices
from datasets.views import figures, gallery

SIZES = (20, 50, 100)
COVER_HEIGHT_PX = 42  # of a row; its width is 56
CLASSES_NAMED = 3  # in a row of the list; the others are counted

BULK = (
    bulk.delete(
        "/api/v1/datasets/0/",
        gettext_lazy("All versions with their images are deleted. Datasets in use are kept."),
        needs=Action.DATASETS_DELETE,
    ),
)


@needs(Action.DATASETS_VIEW)
def dataset_list(request: SignedInRequest) -> HttpResponse:
    """Own, public and (for operators) all datasets. htmx gets the table alone."""
    filters = FilterForm(request.GET)
    rows = filtered(Dataset.objects.visible_to(request.user).for_list(), filters, request)
    size_text = request.GET.get("size", "")
    size = int(size_text) if size_text in {str(size) for size in SIZES} else SIZES[0]
    page = DATASETS.page(request, rows, size=size)
    covers = faced(page.rows, request.user)
    sizes = [(str(n), _("%(n)s per page") % {"n": n}) for n in SIZES]
    shown = {
        "page": page,
        "covers": covers,
        "filters": filters.fields,
        "sizes": sizes,
        "usual_size": sizes[0][0],
        "bulk": BULK,
    }
    return render(request, "datasets/_table.html" if request.htmx else "datasets/list.html", shown)


def faced(rows: list[Any], user: User) -> dict[str, Any]:
    """Give the datasets of a page `cover` and `classes` of their newest version, and `more`, how many go unnamed.

    `cover` is where its tile begins in the image of all covers, whose address and height are returned; None: no image.
    """
    newest = DatasetVersion.objects.visible_to(user).filter(pk__in=[row.newest_id for row in rows if row.newest_id])
    faces = {pk: (cover, classes) for pk, cover, classes in newest.with_cover().values_list("pk", "cover", "classes")}
    assets: list[str] = []
    for row in rows:
        asset, classes = faces.get(row.newest_id, (None, []))
        row.cover = None if asset is None else len(assets) * COVER_HEIGHT_PX
        assets += [] if asset is None else [str(asset)]
        row.classes = [item["name"] for item in classes[:CLASSES_NAMED]]
        row.more = len(classes) - len(row.classes)
    return {"url": f"{reverse('datasets:covers')}?of={','.join(assets)}", "height": len(assets) * COVER_HEIGHT_PX}


def filtered(rows: Any, filters: FilterForm, request: SignedInRequest) -> Any:
    """Apply the filter bar."""
    rows = rows.named_like(filters.chosen("q"))
    if (annotated := filters.chosen("annotated")) == "yes":
        rows = rows.filter(newest_annotated=True)
    elif annotated == "no":
        rows = rows.filter(Q(newest_annotated=False) | Q(newest_annotated=None))
    if (visibility := filters.chosen("visibility")) == "mine":
        rows = rows.filter(owner=request.user)
    elif visibility:
        rows = rows.filter(visibility=visibility)
    if (state := filters.chosen("state")) == "ready":
        rows = rows.exclude(newest_number=None)
    elif state == "open":
        rows = rows.filter(imports__state__in=Import.OPEN)
    elif state == "empty":
        rows = rows.filter(newest_number=None)
    return rows


@needs(Action.DATASETS_CREATE)
def dataset_create(request: SignedInRequest) -> HttpResponse:
    """The form of a new dataset; the file is uploaded by tus while the rest is filled in."""
    form = CreateForm(request.POST or None)
    if form.is_valid():
        fields = {key: value for key, value in form.cleaned_data.items() if key in form.fields}
        with errors_shown_on(form):
            dataset = datasets.create(owner=request.user, **fields)
            row = dataset.imports.order_by("-pk").first()
            return redirect("datasets:import", dataset.pk, row.pk) if row else redirect("datasets:detail", dataset.pk)
    else:
        check_valid_fields(form, datasets.check, owner=request.user)
    shown = {"form": form, "max_upload": env.MAX_UPLOAD_BYTES, "kept": form.kept_upload(request.user)}
    return render(request, "datasets/create.html", shown, status=422 if form.errors else 200)


@needs(Action.DATASETS_VIEW)
@require_safe
def dataset_related(request: SignedInRequest, dataset_id: int) -> HttpResponse:
    """What was made with a dataset, loaded into its page."""
    dataset = get_object_or_404(Dataset.objects.visible_to(request.user), pk=dataset_id)
    rows = related.list_related(request.user, dataset)
    return render(request, "datasets/_related.html", {"dataset": dataset, "rows": rows})


@needs(Action.DATASETS_VIEW)
def dataset_detail(request: SignedInRequest, dataset_id: int, number: int | None = None) -> HttpResponse:
    """Gallery first, facts at the side, versions as a list with what changed."""
    visible = Dataset.objects.visible_to(request.user).select_related("owner")
    dataset = get_object_or_404(visible, pk=dataset_id)
    ready = list(
        DatasetVersion.objects.visible_to(request.user)
        .filter(dataset=dataset)
        .select_related("created_by", "parent")
        .order_by("-number")
    )
    version = next((v for v in ready if number is None or v.number == number), None)
    if version is None and number is not None:
        raise Http404
    if version and request.htmx:
        return render(request, "datasets/_images.html", gallery.shown(request, version))
    changeable = may_change(dataset, request.user)
    shown: dict[str, Any] = {
        "dataset": dataset,
        "versions": ready,
        "version": version,
        "may_change": changeable,
        "open_import": dataset.imports.filter(state__in=Import.OPEN).first() if changeable else None,
        "report": _report_of(request, version) if changeable and version else None,
        "failed_import": _last_failed(dataset, ready) if changeable else None,
    }
    if version:
        shown |= gallery.shown(request, version) | figures.shown(version)
        version.dataset = dataset  # known already
        shown["downloads"] = download_choices(version)
        shown["offers"] = next_actions.offers(version, request.user) if _usable(dataset, version, request.user) else []
    return render(request, "datasets/detail.html", shown)


def _usable(dataset: Dataset, version: DatasetVersion, user: User) -> bool:
    return dataset.owner_id == user.pk or DatasetVersion.objects.usable_by(user).filter(pk=version.pk).exists()


def _last_failed(dataset: Dataset, ready: list[DatasetVersion]) -> Import | None:
    """The newest import, where it failed."""
    last: Import | None = dataset.imports.order_by("-pk").first()
    return last if last and last.state == Import.State.FAILED else None


def _report_of(request: SignedInRequest, version: DatasetVersion) -> int | None:
    """Number of the import that made the version, whose report can still be read."""
    number: int | None = (
        Import.objects.visible_to(request.user).filter(version=version).values_list("pk", flat=True).first()
    )
    return number


def own(request: SignedInRequest, dataset_id: int) -> Dataset:
    """Return a dataset this person may change; public ones of others answer 403, the rest 404."""
    dataset = get_object_or_404(Dataset.objects.visible_to(request.user).select_related("owner"), pk=dataset_id)
    if not may_change(dataset, request.user):
        raise datasets.NotOwner(_("Only the owner can change this dataset."))
    return dataset


@needs(Action.DATASETS_EDIT)
def dataset_edit(request: SignedInRequest, dataset_id: int) -> HttpResponse:
    dataset = own(request, dataset_id)
    form = EditForm(request.POST or None, dataset=dataset)
    if form.is_valid():
        with errors_shown_on(form):
            visibility = form.cleaned_data["visibility"] or None
            datasets.edit(dataset, intro=form.cleaned_data["intro"], visibility=visibility)
            return redirect("datasets:detail", dataset.pk)
    shown = {"form": form, "dataset": dataset}
    return render(request, "datasets/edit.html", shown, status=422 if form.errors else 200)


@needs(Action.DATASETS_DELETE)
@require_POST
def dataset_delete(request: SignedInRequest, dataset_id: int) -> HttpResponse:
    dataset = own(request, dataset_id)
    if not is_name_confirmed(request, dataset.name):
        return redirect("datasets:detail", dataset.pk)
    datasets.delete(dataset)
    messages.success(request, _("%(name)s was deleted.") % {"name": dataset.name})
    return redirect("datasets:list")


@needs(Action.DATASETS_DELETE)
@require_POST
def version_delete(request: SignedInRequest, dataset_id: int, number: int) -> HttpResponse:
    dataset = own(request, dataset_id)
    visible = DatasetVersion.objects.visible_to(request.user).filter(dataset=dataset)
    version = get_object_or_404(visible, number=number)
    if not is_name_confirmed(request, f"v{number}"):
        return redirect("datasets:version", dataset.pk, number)
    versions.delete(version, by=request.user)
    messages.success(request, _("Version %(number)d was deleted.") % {"number": number})
    return redirect("datasets:detail", dataset.pk)


@needs(Action.DATASETS_EDIT)
@require_POST
def version_colors(request: SignedInRequest, dataset_id: int, number: int) -> HttpResponse:
    """Change the colors of the classes: fields `color-1`, `color-2`, … by class id."""
    dataset = own(request, dataset_id)
    visible = DatasetVersion.objects.visible_to(request.user).filter(dataset=dataset)
    version = get_object_or_404(visible, number=number)
    chosen = {key.removeprefix("color-"): str(value) for key, value in request.POST.items() if key[:6] == "color-"}
    with errors_as_messages(request):
        versions.set_colors(version, chosen)
    return redirect("datasets:version", dataset.pk, number)


@needs(Action.DATASETS_EDIT)
def version_add(request: SignedInRequest, dataset_id: int) -> HttpResponse:
    """More data for a dataset: the next version."""
    dataset = own(request, dataset_id)
    form = SourceForm(request.POST or None)
    if form.is_valid():
        with errors_shown_on(form):
            row = imports.start(
                dataset=dataset,
                by=request.user,
                annotated=form.cleaned_data["annotated"],
                upload_id=form.cleaned_data["upload_id"],
                server_path=form.cleaned_data["server_path"],
                split=form.cleaned_data["split"],
            )
            return redirect("datasets:import", dataset.pk, row.pk)
    shown = {
        "form": form,
        "dataset": dataset,
        "max_upload": env.MAX_UPLOAD_BYTES,
        "kept": form.kept_upload(request.user),
    }
    return render(request, "datasets/version_add.html", shown, status=422 if form.errors else 200)
