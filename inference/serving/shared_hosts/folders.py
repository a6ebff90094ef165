"""The folder of a shared process, made to hold what the rows say: a folder for each service with its model.

Whole folders are moved into place and out of it; the process looks and loads. Files are linked where the disk is the
same, so a model takes no room twice; the process sees them for reading only.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from inference.registry.models import ModelVersion
from inference.serving import host_assignment, launch, withdrawal
from inference.serving.addresses import is_shared, name_of
from inference.serving.models import Service
from inference.serving.server.host import ABOUT, MODEL
from workers.core.models import Job

log = logging.getLogger(__name__)
NEW, OLD = ".new-", ".old-"  # before they are in place, and on their way out
FORGOTTEN_S = 3600


def sync(job: Job) -> None:
    """Make the folder of a shared process hold exactly its services. Safe to run twice and concurrently."""
    home = host_assignment.folder(job.pk)
    if not is_shared(job):
        return
    if job.is_final:
        shutil.rmtree(home, ignore_errors=True)
        return
    home.mkdir(parents=True, exist_ok=True)
    wanted = dict(_hosted_services(job))
    for entry in list(home.iterdir()):
        if entry.name.startswith((NEW, OLD)):
            _delete_leftover(entry)
        elif entry.name not in wanted:
            _remove(entry)
    for name, (service, version) in wanted.items():
        settings_text = json.dumps({"env": launch.environment(service, version, service.options)})
        try:
            if _read_settings(home / name) != settings_text:
                _install(home, name, version.path, settings_text)
        except OSError as exc:  # another worker is at it, or the disk is full: the next sweep goes on
            log.warning("job=%s service=%s is not put into its process: %s", job.pk, service.pk, exc)


def _hosted_services(job: Job) -> Iterator[tuple[str, tuple[Service, ModelVersion]]]:
    """Yield name, service and version of all that the process serves, by current permissions."""
    for service in host_assignment.residents(job).select_related("owner", "model_version__model").order_by("pk"):
        pairs = ((service.job_id, service.model_version_id), (service.next_job_id, service.next_version_id))
        for number in [version for job_id, version in pairs if job_id == job.pk and version is not None]:
            try:
                version = withdrawal.usable_version(service, number)
            except withdrawal.ModelWithdrawn:
                continue
            yield name_of(service.pk, version.pk), (service, version)


def _read_settings(home: Path) -> str:
    try:
        return (home / ABOUT).read_text()
    except OSError:
        return ""


def _install(home: Path, name: str, source: Path, settings_text: str) -> None:
    """Make a service's folder and move it into place.

    Raises:
        OSError: it could not be.
    """
    new = Path(tempfile.mkdtemp(prefix=NEW, dir=home))
    try:
        (new / MODEL).mkdir()
        for file in source.iterdir():
            if file.is_file() and not file.is_symlink():
                _link(file, new / MODEL / file.name)
        (new / ABOUT).write_text(settings_text)
        new.chmod(0o755)
        if (home / name).exists():
            _remove(home / name)
        new.rename(home / name)
    except OSError:
        shutil.rmtree(new, ignore_errors=True)
        raise


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # another disk, or files of another user
        shutil.copyfile(source, target)


def _remove(path: Path) -> None:
    """Take a folder out of its place at once, then its files."""
    gone = path.with_name(f"{OLD}{path.name}-{time.time_ns()}")
    path.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def _delete_leftover(path: Path) -> None:
    """Remove what a worker that was killed has left."""
    try:
        if time.time() - path.lstat().st_mtime > FORGOTTEN_S:
            shutil.rmtree(path, ignore_errors=True)
    except OSError:  # its worker has moved it
        return
