from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ExperimentsConfig(AppConfig):
    name = "training.experiments"
    verbose_name = _("Experiments")

    def ready(self) -> None:
        from accounts.access import ownership
        from training.experiments import records
        from training.experiments.models import Run, View
        from training.runs import recorders

        recorders.SUBMITTED.register(records.create_runs)
        recorders.RESTORED.register(records.change)

        ownership.register(
            ownership.Owned("runs", _("Runs in the experiments table"), Run, named=False),
            ownership.Owned("run_views", _("Views of the experiments table"), View),
        )
