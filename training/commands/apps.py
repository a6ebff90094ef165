from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class CommandsConfig(AppConfig):
    name = "training.commands"
    verbose_name = _("Custom jobs")

    def ready(self) -> None:
        from accounts.access.permissions import Action
        from aiplatform.lib import palette
        from datasets.services import usage as dataset_usage
        from training.commands import usage
        from training.commands.kind import CommandKind
        from training.commands.request_schema import SCHEMA
        from training.programs import request_schemas
        from workers.core import kinds

        kinds.register(CommandKind())
        request_schemas.register(SCHEMA)
        dataset_usage.register(usage.commands_on)
        palette.register(
            palette.Command("custom-jobs.new", _("New custom job"), "plus", Action.JOBS_SUBMIT, "commands:new")
        )
