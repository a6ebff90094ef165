"""What lists show beside the rows themselves, in a fixed number of queries."""

from __future__ import annotations

from typing import Any

from django.db.models import Max
from django.http import FileResponse
from django.utils.text import slugify
from django.utils.translation import gettext as _

from aiplatform.lib.errors import NotFound
from annotation.models import AnnotationSet, Export
from annotation.services import work


def facts_of(sets: list[AnnotationSet]) -> dict[str, Any]:
    """`progress` and the newest `conversions` of sets, by set id."""
    newest = Export.objects.filter(set__in=sets).order_by().values("set").annotate(last=Max("pk")).values("last")
    conversions = {export.set_id: export for export in Export.objects.filter(pk__in=newest).select_related("version")}
    return {"progress": work.progress(sets), "conversions": conversions}


def download(export: Export) -> FileResponse:
    """The converted file as an attachment.

    Raises:
        NotFound: it is not converted, or its file was cleaned away.
    """
    if export.state != Export.State.SUCCESS or not export.file.is_file():
        raise NotFound(_("There is no file of this conversion."))
    name = f"{slugify(export.set.name, allow_unicode=True) or 'annotations'}-{export.target}-{export.pk}.json"
    answer = FileResponse(export.file.open("rb"), as_attachment=True, filename=name, content_type="application/json")
    answer["X-Content-SHA256"] = export.sha256
    return answer
