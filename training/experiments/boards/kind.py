"""The job kind `board`: TensorBoard on the event files of another job."""

from __future__ import annotations

import dataclasses

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from training.experiments.boards import services
from training.experiments.boards.models import Board
from workers.access.proxy import addresses, published_ports
from workers.core.kinds import Capabilities, Fact, JobKind, Launch
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir
from workers.images.services import launch as launching
from workers.images.services import uses

FINISH_GRACE_S = 5.0


class BoardKind(JobKind):
    """A server of curves. It reads one folder and has no network but its own loopback."""

    name = services.KIND
    label = gettext_lazy("TensorBoard")
    icon = "chart"
    order = 95
    step = False
    exec_server = True
    idle_guard = False
    can = Capabilities(pause=False, finish=False, restore=True)
    related = ("board",)

    def prepare(self, job: Job, attempt: Attempt, run: RunDir) -> Launch:
        """Publish its port, and read the newest event files of its source."""
        board = Board.objects.select_related("source").get(pk=job.pk)
        folder = services.folder(board.source) if board.source else None
        port, under = services.port_of(job), addresses.base_path(job.pk, services.PORT_NAME)
        published_ports.provide(job, name=services.PORT_NAME, port=port, keeps_path=True)
        launch = Launch(argv=[], read_only=[folder] if folder else [], own_network=True, finish_grace_s=FINISH_GRACE_S)
        launch = launching.with_image(launch, job)
        options = ["--logdir", str(folder or run.outputs), "--host", "127.0.0.1", "--port", str(port)]
        options += ["--path_prefix", under.rstrip("/")] if under != "/" else []
        return dataclasses.replace(launch, argv=[launching.python(job), "-m", "tensorboard.main", *options])

    def check_restore(self, job: Job) -> None:
        uses.check_restore(job)

    def facts(self, job: Job) -> list[Fact]:
        board = Board.objects.filter(pk=job.pk).first()
        return [Fact(_("Event files of"), board.source_name)] if board else []
