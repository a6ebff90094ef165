"""The ways to start a program on its machines, as requests name them."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class Launcher(models.TextChoices):
    ONCE = "once", _("Once on each machine")
    PROCESSES = "processes", _("As several processes on each machine")
    TORCHRUN = "torchrun", _("By torchrun")
    MPI = "mpi", _("By mpirun")
    FIRST = "first", _("Once, on the first machine")


HELP = _(
    "Each process is told RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. By mpirun, and once on "
    "the first machine, that one starts what runs on the others."
)
