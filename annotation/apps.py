from __future__ import annotations

from typing import TYPE_CHECKING

from django.apps import AppConfig
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from datasets.models import DatasetVersion


class AnnotationConfig(AppConfig):
    name = "annotation"
    verbose_name = _("Annotation")

    def ready(self) -> None:
        from accounts.access import ownership, sharing
        from accounts.access.permissions import Action
        from accounts.services import finding
        from aiplatform.frame import badges
        from aiplatform.lib import palette, search, sweeps
        from aiplatform.pages.home import sections as home_sections
        from annotation import searching
        from annotation.models import AnnotationProject, AnnotationSet
        from annotation.services import home, projects, todo
        from datasets.services import next_actions, related, usage

        def annotated_in(version: DatasetVersion) -> list[str]:
            sets = AnnotationSet.objects.filter(source=version).select_related("project")
            return [str(_("annotation project %(name)s") % {"name": row.project.name}) for row in sets]

        usage.register(annotated_in)
        related.register(related.Related("projects", _("Annotation"), Action.ANNOTATION_VIEW, searching.list_projects))
        next_actions.register(
            next_actions.NextAction(
                "annotate",
                _("Annotate this dataset"),
                "annotation",
                needs=Action.ANNOTATION_MANAGE,
                url=lambda version: f"{reverse('annotation:project-create')}?source={version.pk}",
                fits=lambda version: version.image_count > 0,
                rank=20,
                draft_fields=lambda version: {"name": version.dataset.name, "with_shapes": "on"},
            )
        )
        palette.register(
            palette.Command(
                "annotation.new",
                _("New annotation project"),
                "plus",
                Action.ANNOTATION_MANAGE,
                "annotation:project-create",
            )
        )
        badges.register(
            badges.Badge("annotation", Action.ANNOTATION_ANNOTATE, todo.count_sent_back, todo.sent_back_words)
        )
        search.register("project", _("Annotation"), "annotation", needs=Action.ANNOTATION_VIEW, find=searching.projects)
        sweeps.register("annotation.sweep")
        home_sections.SECTIONS.register(home.ANNOTATION)
        sharing.register(
            sharing.Shareable(
                "project",
                _("Annotation project"),
                AnnotationProject,
                (sharing.VIEW, sharing.ANNOTATE, sharing.REVIEW, sharing.MANAGE),
                needs=Action.ANNOTATION_MANAGE,
                url=lambda row: reverse("annotation:project-detail", args=[row.pk]),
            )
        )
        finding.register(finding.Company("projects", projects.mates))
        ownership.register(ownership.Owned("projects", _("Annotation projects"), AnnotationProject))
