"""Statistics of the rows of lists, in a fixed number of queries."""

from __future__ import annotations

from typing import Any

from django.db.models import Max
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.text import slugify
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.downloads import send_file
from aiplatform.lib.errors import NotFound
from aiplatform.lib.files import open_beneath
from annotation.models import AnnotationSet, Export
from annotation.services import work
from datasets.models import DatasetVersion
from datasets.services import next_actions

OWN_ACTION = "annotate"  # of the ways on from a version, the one that leads back here


def facts_of(sets: list[AnnotationSet]) -> dict[str, Any]:
    """`progress` and the newest `conversions` of sets, by set id."""
    newest = Export.objects.filter(set__in=sets).order_by().values("set").annotate(last=Max("pk")).values("last")
    conversions = {export.set_id: export for export in Export.objects.filter(pk__in=newest).select_related("version")}
    return {"progress": work.progress(sets), "conversions": conversions}


def next_steps(annotation_set: AnnotationSet, user: User) -> dict[str, Any]:
    """Return the newest conversion of a set, and the newest version made of it with its next actions.

    Returns {conversion, version, offers}: a later conversion without a version does not hide an earlier one.
    """
    conversion = facts_of([annotation_set])["conversions"].get(annotation_set.pk)
    made = Export.objects.filter(set=annotation_set, state=Export.State.SUCCESS).exclude(version=None).order_by("-pk")
    visible = DatasetVersion.objects.visible_to(user).select_related("dataset")
    version = visible.filter(pk__in=made.values("version")[:1]).first()
    offered = next_actions.offers(version, user) if version is not None else []
    offers = [offer for offer in offered if offer.name != OWN_ACTION]
    return {"conversion": conversion, "version": version, "offers": offers}


def download(request: HttpRequest, export: Export) -> HttpResponseBase:
    """The converted file, with Range.

    Raises:
        NotFound: it is not converted, or its file was cleaned away.
    """
    stem = slugify(export.set.name, allow_unicode=True) or "annotations"
    name = f"{stem}-{export.target}-{export.pk}{export.file.suffix}"
    try:
        if export.state != Export.State.SUCCESS:
            raise FileNotFoundError
        answer = send_file(request, open_beneath(export.file.parent, export.file.name), name)
    except FileNotFoundError:
        raise NotFound(_("This conversion has no file.")) from None
    answer["X-Content-SHA256"] = export.sha256
    return answer
