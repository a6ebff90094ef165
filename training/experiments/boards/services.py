"""Show the event files of a job in TensorBoard: a small job of its own that reads their folder."""

from __future__ import annotations

from datetime import timedelta
from itertools import islice
from pathlib import Path

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import files
from aiplatform.lib.errors import DomainError, NotAllowed
from training.experiments.boards.models import Board
from workers.access.proxy import addresses, published_ports
from workers.core.models import Job
from workers.images.services import uses
from workers.images.store import catalog
from workers.jobs import resource_request, submission
from workers.jobs.output import files as outputs

KIND = "board"
PORT_NAME = "tensorboard"
MAX_LOOKED_AT = 2000  # files; event files lie near the top
CPUS = 0.5
LASTS = timedelta(hours=8)


class NoEvents(DomainError, code="no_event_files"): ...


def folder(source: Job) -> Path | None:
    """The newest outputs of a job that hold event files, None where none do."""
    for attempt in outputs.attempts(source):
        root = outputs.folder_of(source, attempt)
        paths = islice(files.walk_beneath(root, lenient=True), MAX_LOOKED_AT) if root else ()
        if any("tfevents" in path for path in paths):
            return root
    return None


@transaction.atomic
def show(source: Job, *, by: User) -> Job:
    """Start a TensorBoard on a job's event files, or return the one there is.

    Raises:
        NotAllowed: the job is somebody else's.
        NoEvents, PortsOff: there is nothing to show, or no way to show it.
        NotAMember, OverLimit, NeverFits: as for every job.
    """
    if source.owner_id != by.pk:
        raise NotAllowed(_("Only the owner of a job can open its event files in TensorBoard."))
    if not addresses.are_ports_enabled():
        raise published_ports.PortsOff(_("Ports are disabled on this platform. Ask an administrator."))
    live = Board.objects.live_of(source).select_related("job").first()
    if live is not None:
        return live.job
    if folder(source) is None:
        raise NoEvents(_("This job has no event files (events.out.tfevents…) in its outputs."))
    cluster = resource_request.cluster_for(by, source.cluster)
    name = _("TensorBoard of %(name)s") % {"name": source.name}
    job = submission.submit(owner=by, kind=KIND, name=name, cluster=cluster, cpus=CPUS, max_runtime=LASTS)
    Board.objects.create(job=job, source=source, source_name=source.name)
    uses.attach(job, catalog.builtin(catalog.TENSORBOARD), boxed=False)
    return job


def port_of(job: Job) -> int:
    """The port a board listens on; of its own where sandboxes share the machine's loopback."""
    return published_ports.PORTS[job.pk % len(published_ports.PORTS)]
