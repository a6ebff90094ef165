from django.apps import AppConfig
from django.urls import reverse
from django.utils.translation import gettext_lazy as _


class PipelinesConfig(AppConfig):
    name = "inference.pipelines"
    verbose_name = _("Pipelines")

    def ready(self) -> None:
        from accounts.access import ownership, sharing
        from accounts.access.permissions import Action
        from accounts.services import named_secrets
        from aiplatform.frame import badges
        from aiplatform.frame import navigation as side_bar
        from aiplatform.lib import palette, search, sweeps
        from aiplatform.pages.home import approvals as home_approvals
        from inference.pipelines import home, loop, messages, navigation, secret_usage, trigger_settings
        from inference.pipelines.models import Pipeline
        from inference.pipelines.steps import register as register_steps
        from workers.jobs import listeners

        messages.register()
        register_steps()
        home_approvals.SOURCES.register(home.APPROVALS)
        named_secrets.register(secret_usage.in_pipelines)
        sweeps.register("pipelines.advance_due", "pipelines.fire_due", "pipelines.prune")
        listeners.register(listeners.Listener("pipelines", loop.job_ended, loop.is_of_run))
        sharing.register(
            sharing.Shareable(
                "pipeline",
                _("Pipeline"),
                Pipeline,
                (sharing.VIEW, sharing.MANAGE),
                needs=Action.JOBS_SUBMIT,
                url=lambda row: reverse("pipelines:detail", args=[row.pk]),
            )
        )
        new = palette.Command("pipelines.new", _("New pipeline"), "plus", Action.JOBS_SUBMIT, "pipelines:new")
        palette.register(new)
        find = search.in_rows(Pipeline, "name", "pipelines:detail")
        search.register("pipeline", _("Pipeline"), "pipeline", needs=Action.JOBS_VIEW, find=find)
        ownership.register(ownership.Owned("pipelines", _("Pipelines"), Pipeline), trigger_settings.Handed())
        side_bar.register(navigation.tabs)
        badges.register(navigation.BADGE)
