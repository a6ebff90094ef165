from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class WorkersConfig(AppConfig):
    name = "workers"
    verbose_name = _("Machines and jobs")

    def ready(self) -> None:
        from workers import kinds
        from workers.kind import CommandKind

        kinds.register(CommandKind())
