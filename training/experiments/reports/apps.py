from django.apps import AppConfig
from django.urls import reverse
from django.utils.translation import gettext_lazy as _


class ReportsConfig(AppConfig):
    name = "training.experiments.reports"
    verbose_name = _("Reports")

    def ready(self) -> None:
        from accounts.access import ownership, sharing
        from accounts.access.permissions import Action
        from aiplatform.frame import navigation as side_bar
        from aiplatform.lib import palette, search
        from training.experiments.reports import navigation
        from training.experiments.reports.models import Report

        sharing.register(
            sharing.Shareable(
                "report",
                _("Report"),
                Report,
                (sharing.VIEW, sharing.MANAGE),
                needs=Action.TRAINING_VIEW,
                url=lambda row: reverse("reports:detail", args=[row.pk]),
                help_text=_("Each reader sees only the runs they have access to."),
            )
        )
        ownership.register(ownership.Owned("reports", _("Reports"), Report, named=False))
        palette.register(palette.Command("reports.new", _("New report"), "plus", Action.TRAINING_SUBMIT, "reports:new"))
        find = search.in_rows(Report, "title", "reports:detail", "-updated_at")
        search.register("report", _("Report"), "file", needs=Action.TRAINING_VIEW, find=find)
        side_bar.register(navigation.tabs)
