from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class EnvironmentsConfig(AppConfig):
    name = "training.environments"
    verbose_name = _("Workspaces")

    def ready(self) -> None:
        from accounts.access.permissions import Action
        from accounts.services import audit
        from aiplatform.lib import palette, sweeps
        from datasets.services import usage as dataset_usage
        from training.environments import messages, panel, usage, vscode
        from training.environments.kind import EnvironmentKind
        from training.environments.request_schema import SCHEMA
        from training.programs import request_schemas
        from workers.access.proxy.port_access import STARTERS, Starter
        from workers.core import kinds
        from workers.jobs.job_page import PANELS, Panel

        kinds.register(EnvironmentKind())
        request_schemas.register(SCHEMA)
        messages.register()
        STARTERS.register(Starter(EnvironmentKind.name, vscode.NAME, vscode.start))
        dataset_usage.register(usage.environments_on)
        palette.register(
            palette.Command("workspaces.new", _("New workspace"), "plus", Action.JOBS_SUBMIT, "environments:new")
        )
        sweeps.register("environments.look")
        audit.register_verbs({"environment_deleted": _("deleted the workspace")})
        PANELS.register(Panel("environment", "environments/_panel.html", panel.context, order=10))
