from django.apps import AppConfig
from django.urls import reverse
from django.utils.translation import gettext_lazy as _


class JobTemplatesConfig(AppConfig):
    name = "training.job_templates"
    verbose_name = _("Templates")

    def ready(self) -> None:
        from accounts.access import ownership, sharing
        from accounts.access.permissions import Action
        from aiplatform.frame import navigation as side_bar
        from training.job_templates import navigation
        from training.job_templates.models import JobTemplate
        from training.job_templates.panels import PANEL, REQUEST_PANEL
        from training.job_templates.starting_points import SOURCE
        from training.programs import starting_points
        from workers.jobs import job_page

        starting_points.SOURCES.register(SOURCE)
        job_page.PANELS.register(REQUEST_PANEL)
        job_page.PANELS.register(PANEL)
        sharing.register(
            sharing.Shareable(
                "template",
                _("Template"),
                JobTemplate,
                (sharing.VIEW, sharing.USE, sharing.MANAGE),
                needs=Action.JOBS_SUBMIT,
                url=lambda row: reverse("templates:detail", args=[row.pk]),
            )
        )
        ownership.register(ownership.Owned("job_templates", _("Templates"), JobTemplate))
        side_bar.register(navigation.tabs)
