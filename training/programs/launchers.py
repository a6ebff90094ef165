"""The ways to start a program on its machines, as requests name them."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class Launcher(models.TextChoices):
    ONCE = "once", _("Once per node")
    PROCESSES = "processes", _("Several processes per node")
    TORCHRUN = "torchrun", _("torchrun")
    MPI = "mpi", _("mpirun")
    FIRST = "first", _("Once, on the first node")


HELP = _(
    "Each process gets RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. With mpirun, the command "
    "runs once on the first node, which starts the processes on the others."
)
