"""The gallery of a version: a page of its images with their shapes, narrowed down by a filter bar."""

from __future__ import annotations

from typing import Any

from django.utils.html import escape
from django.utils.safestring import SafeString

from accounts.http import SignedInRequest
from aiplatform.lib import class_colors, keyset
from datasets import shapes
from datasets.formats.neutral import SHAPES
from datasets.forms.datasets import GalleryForm
from datasets.models import Asset, DatasetVersion

PAGE = 60
DEFAULT_COLOR = class_colors.default_at(0)  # of shapes whose class the version does not list
OBJECTS_MAX = 200  # named on one image and listed beside it
LUMA = (0.299, 0.587, 0.114)  # how bright red, green and blue look
DRAWN_MAX = 300  # more shapes than this on a thumbnail are a blur


def shown(request: SignedInRequest, version: DatasetVersion) -> dict[str, Any]:
    """What the gallery's template needs. Totals come from the version's row: nothing is counted here."""
    form = GalleryForm(request.GET, version=version)
    wanted = form.wanted()
    rows = Asset.objects.visible_to(request.user).of_version(version.pk, **wanted)
    page = keyset.page(request, rows, order=form.order, size=PAGE, count=False, total=_total(version, **wanted))
    colors = version.class_colors
    for asset in page.rows:
        asset.drawing = drawing(asset, colors)
        asset.label_name = version.class_names.get(asset.label, "") if asset.label is not None else ""
        asset.label_color = colors.get(asset.label, "")
    return {
        "page": page,
        "filters": {name: list(field.choices) for name, field in form.fields.items() if hasattr(field, "choices")},
        "classes": version.colored_classes,
        "has_shapes": version.task == SHAPES,
    }


def _total(
    version: DatasetVersion, *, split: str | None, class_id: int | None, content: int | None, text: str
) -> int | None:
    """Return the number of images, if the version knows it."""
    if text or (class_id is not None and content is not None):
        return None
    counted = version.figures
    if class_id is not None:
        return _sum(counted["images"], split, str(class_id)) if counted else None
    if content is not None:
        return _contents(version, content, split) if counted else None
    return version.image_count if split is None else version.splits.get(split, 0)


def _sum(images: dict[str, dict[str, int]], split: str | None, key: str) -> int:
    chosen = images.values() if split is None else [images.get(split, {})]
    return sum(counts.get(key, 0) for counts in chosen)


def _contents(version: DatasetVersion, content: int, split: str | None) -> int:
    counted = version.figures or {}
    everything = version.splits if split is None else {split: version.splits.get(split, 0)}
    counts = {
        Asset.Content.UNSEEN: sum(counted["unannotated"].get(name, 0) for name in everything),
        Asset.Content.EMPTY: sum(counted["empty"].get(name, 0) for name in everything),
    }
    counts[Asset.Content.OBJECTS] = sum(everything.values()) - sum(counts.values())
    return counts[Asset.Content(content)]


def extents(points: list[float]) -> tuple[float, float, float, float]:
    """Left, top, width and height of the drawn points of a shape."""
    across, down = points[::2], points[1::2]
    return min(across), min(down), max(across) - min(across), max(down) - min(down)


def objects(asset: Asset, classes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first shapes of an asset with the name and the color of their class, and their size in pixels."""
    by_id = {item["id"]: item for item in classes}
    listed = []
    for class_id, _kind, points in asset.shapes[:OBJECTS_MAX]:
        _left, _top, width, height = extents(points)
        item = by_id.get(class_id, {"name": str(class_id), "color": DEFAULT_COLOR})
        listed.append(item | {"width": round(width), "height": round(height)})
    return listed


def _chip(asset: Asset, points: list[float], name: str, color: str) -> str:
    """The name of a class at the upper left corner of its shape; it stays inside of the image."""
    size = max(asset.width / 1000, asset.height / 650) * 12
    left, top, _width, _height = extents(points)
    x, y = max(left, 0) + size * 0.3, max(top - size * 0.4, size * 1.2)
    ink = "#fff" if sum(w * v for w, v in zip(LUMA, class_colors.rgb_of(color), strict=True)) < 120 else "#14161a"
    style = f'font-size="{size:.1f}" stroke-width="{size * 0.5:.1f}" fill="{ink}" color="{color}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(name)}</text>'


def drawing(
    asset: Asset, colors: dict[int, str], *, limit: int = DRAWN_MAX, names: dict[int, str] | None = None
) -> SafeString:
    """The asset's shapes as an SVG over its upright image; "" without any.

    Markup is put together here: a template took half of a page's time for it. All that goes in are numbers, colors
    and escaped names.

    Args:
        names: of classes, shown at their shapes; None: shapes alone.
    """
    paths = []
    for class_id, name, points in asset.shapes[:limit]:
        kind = shapes.get(name)
        open_line = "" if kind.covers_area else ' class="is-open"'
        paths.append(f'<path color="{colors.get(class_id, DEFAULT_COLOR)}"{open_line} d="{kind.svg(points)}"/>')
    if names is not None:
        for class_id, _kind, points in asset.shapes[:OBJECTS_MAX]:
            name = names.get(class_id, str(class_id))
            paths.append(_chip(asset, points, name, colors.get(class_id, DEFAULT_COLOR)))
    if not paths:
        return SafeString("")
    box = f'viewBox="0 0 {asset.width:d} {asset.height:d}" preserveAspectRatio="xMidYMid meet"'
    return SafeString(f'<svg class="shapes" {box} aria-hidden="true">{"".join(paths)}</svg>')
