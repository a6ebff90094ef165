"""Filters and orders of the list of images, for pages and API."""

from __future__ import annotations

from django.db.models import Value
from django.db.models.functions import Coalesce, Lower
from django.utils.translation import gettext_lazy as _

from aiplatform.lib.ordering import Ordering
from aiplatform.objects.filters import Choice, Mine, ObjectFilters, Words
from workers.images.models import Image


class ImageFilters(ObjectFilters):
    search = Words("name", "tag", "description", label=_("Name, tag or description"))
    kind = Choice("kind", Image.Kind.choices, all_label=_("All kinds"), label=_("Kind"))
    mine = Mine()
    orders = Ordering(
        "-created",
        created="pk",
        name=Lower("name"),
        kind="kind",
        owner=Coalesce(Lower("owner__username"), Value("")),
    )
