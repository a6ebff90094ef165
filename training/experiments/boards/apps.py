from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class BoardsConfig(AppConfig):
    name = "training.experiments.boards"
    verbose_name = _("TensorBoard")

    def ready(self) -> None:
        from training.experiments.boards import panel
        from training.experiments.boards.kind import BoardKind
        from workers.core import kinds
        from workers.jobs import job_page, job_tabs

        kinds.register(BoardKind())
        job_page.PANELS.register(job_page.Panel("board", "boards/_panel.html", panel.shown, 30, job_tabs.PORTS))
