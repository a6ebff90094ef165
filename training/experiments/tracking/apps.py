from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class TrackingConfig(AppConfig):
    name = "training.experiments.tracking"
    verbose_name = _("Tracking")

    def ready(self) -> None:
        from accounts.access import ownership
        from aiplatform.web import bodies
        from training.experiments.tracking import receivers, tokens, variables  # noqa: F401 - receivers listen once they are there
        from training.experiments.tracking.models import Experiment, LoggedModel, TrackedModel
        from workers.execution import launch

        bodies.CALLERS.register(tokens.of_scope)
        launch.ADDITIONS.register(variables.with_tracking)
        ownership.register(
            ownership.Owned("experiments", _("Experiments"), Experiment),
            ownership.Owned("logged_models", _("Models logged by scripts"), LoggedModel, named=False),
            ownership.Owned("tracked_models", _("Models registered by scripts"), TrackedModel),
        )
