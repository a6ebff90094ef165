from django.apps import AppConfig
from django.urls import reverse
from django.utils.translation import gettext_lazy as _


class StudiesConfig(AppConfig):
    name = "training.studies"
    verbose_name = _("Hyperparameter search")

    def ready(self) -> None:
        from accounts.access import ownership, sharing
        from accounts.access.permissions import Action
        from aiplatform.frame import navigation as side_bar
        from aiplatform.lib import palette, sweeps
        from training.studies import messages, navigation
        from training.studies.models import Study

        messages.register()
        palette.register(
            palette.Command(
                "studies.new", _("New hyperparameter search"), "plus", Action.TRAINING_SUBMIT, "studies:new"
            )
        )
        sweeps.register("studies.advance_due")
        sharing.register(
            sharing.Shareable(
                "study",
                _("Study"),
                Study,
                (sharing.VIEW, sharing.MANAGE),
                needs=Action.TRAINING_SUBMIT,
                url=lambda row: reverse("studies:detail", args=[row.pk]),
            )
        )
        ownership.register(ownership.Owned("studies", _("Hyperparameter search"), Study))
        side_bar.register(navigation.tabs)
