"""What a person may see of templates."""

from __future__ import annotations

from typing import Self

from django.db.models import Count, Max

from accounts.access.querysets import OwnedQuerySet


class TemplateQuerySet(OwnedQuerySet):
    visibility_path = "visibility"
    shared = ("job_templates.jobtemplate", "pk")

    def for_list(self) -> Self:
        """With the number of the newest version, and of the jobs that were made."""
        return self.select_related("owner").annotate(
            newest_number=Max("versions__number"), uses=Count("versions__uses", distinct=True)
        )
