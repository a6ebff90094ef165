"""Views that send bytes of a dataset; each looks up the object for this person first."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.pages import needs
from datasets.models import Asset, DatasetVersion
from datasets.transfer.responses import covers_response, download, download_forms, image_response, thumbnail_response
from datasets.views import gallery

MAX_COVERS = 100  # the longest page of the list


def _asset(request: SignedInRequest, asset_id: int) -> Asset:
    asset: Asset = get_object_or_404(
        Asset.objects.visible_to(request.user).select_related("version__dataset"), pk=asset_id
    )
    return asset


@needs(Action.DATASETS_VIEW)
def asset_thumbnail(request: SignedInRequest, asset_id: int) -> HttpResponseBase:
    return thumbnail_response(request, _asset(request, asset_id))


@needs(Action.DATASETS_VIEW)
def covers(request: SignedInRequest) -> HttpResponseBase:
    """The thumbnails of the images `?of=7,12` as one image; those that the reader may not see are left empty."""
    numbers = request.GET.get("of", "").split(",")
    if len(numbers) > MAX_COVERS or not all(pk.isdecimal() and len(pk) < 19 for pk in numbers):
        raise Http404
    wanted = [int(pk) for pk in numbers]
    visible = Asset.objects.visible_to(request.user).select_related("version__dataset").in_bulk(wanted)
    return covers_response(request, [visible.get(pk) for pk in wanted])


@needs(Action.DATASETS_VIEW)
def asset_image(request: SignedInRequest, asset_id: int) -> HttpResponseBase:
    return image_response(request, _asset(request, asset_id))


@needs(Action.DATASETS_VIEW)
def asset_detail(request: SignedInRequest, asset_id: int) -> HttpResponse:
    """One image, large, with its shapes and the way to its neighbours."""
    asset = _asset(request, asset_id)
    version = asset.version
    others = Asset.objects.visible_to(request.user).filter(version=version)
    counts: dict[int, int] = {}
    for class_id, _kind, _points in asset.shapes:
        counts[class_id] = counts.get(class_id, 0) + 1
    shown = {
        "asset": asset,
        "version": version,
        "dataset": version.dataset,
        "drawing": gallery.drawing(asset, version.class_colors, limit=5000, names=version.class_names),
        "objects": gallery.objects(asset, version.colored_classes),
        "objects_left_out": max(0, len(asset.shapes) - gallery.OBJECTS_MAX),
        "classes": [item | {"count": counts[item["id"]]} for item in version.colored_classes if item["id"] in counts],
        "label_name": version.class_names.get(asset.label, "") if asset.label is not None else "",
        "next": others.filter(pk__gt=asset.pk).order_by("pk").first(),
        "previous": others.filter(pk__lt=asset.pk).order_by("-pk").first(),
    }
    return render(request, "datasets/asset.html", shown)


@needs(Action.DATASETS_VIEW)
def version_download(request: SignedInRequest, dataset_id: int, number: int) -> HttpResponseBase:
    """The whole version, as `?as=` says; a tar where it says nothing."""
    visible = DatasetVersion.objects.visible_to(request.user).select_related("dataset")
    version = get_object_or_404(visible, dataset_id=dataset_id, number=number)
    form = request.GET.get("as", "tar")
    if form not in download_forms(version):
        raise Http404
    return download(request, version, form)
